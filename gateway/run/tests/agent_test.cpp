#include <fabric/async/testing.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/kernel/fake_kernel.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remote.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBrokerNamespace;
using testing::kLocalNamespace;
using ::testing::SizeIs;

/// A cluster with one gateway node: its API server, its kernel, and the agent's process.
class Site {
 public:
  Site(async::TestLoop& loop, kube::fake::FakeApiServer& broker, std::string id, std::uint8_t number)
      : loop_(loop),
        broker_(broker),
        id_(std::move(id)),
        address_(net::IpAddress::v4(192, 0, 2, number)),
        server(loop.executor(), loop.clock()),
        entropy_(number) {
    Secret seed(32);
    seed.writable()[0] = number;
    seed_ = std::make_unique<Secret>(std::move(seed));
    kernel.facts.interfaces.push_back(
        {.name = "cni0", .addresses = {{.address = net::IpAddress::v4(10, number, 0, 1), .prefix_length = 24}}});
    api::Node node;
    node.metadata.name = "n1";
    node.spec.pod_cidrs = {fmt::format("10.{}.0.0/24", number)};
    node.status.addresses = {{.type = "InternalIP", .address = address_.to_string()}};
    server.put(node);
    api::Cluster cluster;
    cluster.metadata.name = id_;
    cluster.metadata.ns = kLocalNamespace;
    cluster.spec.cluster_id = id_;
    cluster.spec.cluster_cidr = {fmt::format("10.{}.0.0/16", number)};
    cluster.spec.service_cidr = {fmt::format("10.{}.0.0/16", 100 + number)};
    server.put(cluster);
    const auto identity = this->identity();
    const auto proof = broker::prove_identity(*testing::one_psk().newest(), id_, identity.public_key);
    cluster.metadata.ns = kBrokerNamespace;
    cluster.metadata.annotations = {{std::string(api::names::kIdentityAnnotation), proof.identity},
                                    {std::string(api::names::kIdentityMacAnnotation), proof.mac}};
    broker_.put(cluster);
    server.intercept([this](const http::Request& request) {
      if (request.url.target.find("/gateways/") != std::string::npos)
        gateway_ = *api::from_object<api::Gateway>(*json::parse(request.body));
      return std::nullopt;
    });
  }

  /// A new process on the node; what is in the kernel stays.
  void start(std::optional<std::string> uninstall = std::nullopt, bool with_broker = true) {
    stop();
    process_ = std::make_unique<Process>(*this, std::move(uninstall), with_broker);
    ASSERT_TRUE(process_->agent.start(process_->group));
  }

  void stop() {
    if (!process_) return;
    process_->group.stop();
    loop_.settle();
    process_.reset();
    loop_.settle();
  }

  /// As last written. The fake keeps status apart, unlike a server with Submariner's CRDs.
  const api::Gateway& gateway() const { return gateway_; }

  const net::IpAddress& address() const { return address_; }

  std::size_t inbound() const { return count(address_); }

  std::size_t all() const { return kernel.ours.sas.size(); }

  telemetry::Health& health() { return process_->health; }

  telemetry::Registry& metrics() { return process_->metrics; }

 private:
  struct Process {
    Process(Site& site, std::optional<std::string> uninstall, bool with_broker)
        : local(site.server.client(metrics)),
          broker(site.broker_.client(metrics)),
          port(site.kernel),
          group(site.loop_.executor()),
          agent({.ns = std::string(kLocalNamespace),
                 .node = "n1",
                 .cluster_id = site.id_,
                 .health_check = false,
                 .uninstall = std::move(uninstall)},
                {.psks = testing::one_psk(),
                 .identity = site.identity(),
                 .broker_namespace = std::string(kBrokerNamespace)},
                {*local,
                 with_broker ? broker.get() : nullptr,
                 port,
                 site.entropy_,
                 {site.loop_.executor(), site.loop_.clock(), [] { return 0.5; }, metrics},
                 health}) {}

    telemetry::Registry metrics;
    telemetry::Health health;
    std::unique_ptr<kube::Client> local;
    std::unique_ptr<kube::Client> broker;
    kernel::FakeKernel port;
    async::TaskGroup group;
    Agent agent;
  };

  crypto::Ed25519KeyPair identity() const { return *crypto::Ed25519KeyPair::from_seed(Secret(seed_->reveal())); }

  std::size_t count(const net::IpAddress& to) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(kernel.ours.sas, [&](const auto& entry) { return entry.first.daddr == to; }));
  }

  async::TestLoop& loop_;
  kube::fake::FakeApiServer& broker_;
  std::string id_;
  net::IpAddress address_;
  api::Gateway gateway_;

 public:
  kube::fake::FakeApiServer server;
  kernel::FakeKernelState kernel;

 private:
  crypto::DeterministicEntropy entropy_;
  std::unique_ptr<Secret> seed_;
  std::unique_ptr<Process> process_;
};

class AgentTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(a.kernel.installed_twice, IsEmpty());
    EXPECT_THAT(b.kernel.installed_twice, IsEmpty());
    a.stop();
    b.stop();
  }

  void join() {
    a.start();
    b.start();
    loop.advance(60s);
    ASSERT_NO_FATAL_FAILURE(expect_tunnel());
  }

  /// Every SA that one end sends with is there at the other end, and both send.
  void expect_tunnel() {
    for (const auto* site : {&a, &b}) {
      ASSERT_GE(site->inbound(), 1U);
      ASSERT_GE(site->all() - site->inbound(), 1U);
    }
    for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      for (const auto& [key, sa] : from->kernel.ours.sas)
        EXPECT_TRUE(key.daddr == from->address() || to->kernel.ours.sas.contains(key)) << to->address().to_string();
    }
  }

  async::TestLoop loop;
  kube::fake::FakeApiServer broker{loop.executor(), loop.clock()};
  Site a{loop, broker, "a", 1};
  Site b{loop, broker, "b", 2};
};

TEST_F(AgentTest, TwoGatewaysMakeATunnelBothWays) {
  join();
  EXPECT_FALSE(a.kernel.ours.policies.empty());
  EXPECT_EQ(a.gateway().status.status_failure, "");
  ASSERT_THAT(a.gateway().status.connections, SizeIs(1));
  EXPECT_EQ(a.gateway().status.connections[0].status, api::ConnectionStatus::connected);
  EXPECT_TRUE(a.health().ready()) << a.health().report();
}

TEST_F(AgentTest, AtRestNothingIsWritten) {
  join();
  loop.advance(60s);
  const auto steps = a.kernel.history.size();
  const auto at_broker = broker.writes();
  loop.advance(30s);
  EXPECT_EQ(a.kernel.history.size(), steps);
  EXPECT_EQ(broker.writes(), at_broker);
}

TEST_F(AgentTest, ABrokerThatIsAwayAtARotationTakesNoGatewayOutOfService) {
  join();
  broker.set_unreachable(true);
  loop.advance(75min);
  EXPECT_EQ(a.gateway().status.status_failure, "");
  EXPECT_NE(a.gateway().metadata.annotation(kBrokerFailureAnnotation), nullptr);
  EXPECT_TRUE(a.health().ready()) << a.health().report();
  EXPECT_THAT(a.metrics().render(), HasSubstr("fabric_publication_failing 1\n"));
  expect_tunnel();
  broker.set_unreachable(false);
  loop.advance(5min);
  EXPECT_EQ(a.gateway().metadata.annotation(kBrokerFailureAnnotation), nullptr);
  expect_tunnel();
}

TEST_F(AgentTest, ARestartWithTheKernelIntactKeepsItsSasUntilNewOnesCarry) {
  join();
  const auto before = a.kernel.ours.sas;
  a.stop();
  EXPECT_EQ(a.kernel.ours.sas.size(), before.size()) << "stopping removes nothing";
  a.start();
  loop.advance(0s);
  for (const auto& [key, sa] : before)
    EXPECT_TRUE(a.kernel.ours.sas.contains(key)) << key.daddr.to_string();
  loop.advance(60s);
  expect_tunnel();
}

TEST_F(AgentTest, ARestartWithoutABrokerGoesOnWithTheLocalCopies) {
  join();
  loop.advance(60s);
  const auto before = a.kernel.ours.sas;
  broker.set_unreachable(true);
  a.start();
  loop.advance(60s);
  for (const auto& [key, sa] : before)
    EXPECT_TRUE(a.kernel.ours.sas.contains(key)) << key.daddr.to_string();
  EXPECT_EQ(a.gateway().status.status_failure, "");
}

TEST_F(AgentTest, AStepThatIsRefusedForEverHoldsUpNeitherKeysNorTheOthers) {
  a.kernel.fail_next(
      [](const netstate::Step& step) {
        const auto* policy = std::get_if<netstate::PolicyObject>(&step.object);
        return policy != nullptr && policy->key.dst == *net::Cidr::parse("10.102.0.0/16");
      },
      EEXIST, 1'000'000);
  a.start();
  b.start();
  loop.advance(60s);
  expect_tunnel();
  EXPECT_EQ(a.gateway().status.status_failure, "");
  EXPECT_FALSE(a.health().ready());
  const auto tries = a.kernel.history.size();
  loop.advance(60s);
  EXPECT_LE(a.kernel.history.size() - tries, 60U) << "retried with backoff";
}

TEST_F(AgentTest, AKernelWithoutEspIsAFailureOfTheGateway) {
  a.kernel.has_esp = false;
  a.start();
  b.start();
  loop.advance(60s);
  EXPECT_NE(a.gateway().status.status_failure, "");
}

TEST_F(AgentTest, ARotationTakesOneNewGeneration) {
  join();
  loop.advance(75min);
  expect_tunnel();
  for (const auto& key : broker.keys(kube::resource_of<api::Endpoint>())) {
    const auto config = broker.find<api::Endpoint>(key)->spec.backend_config;
    EXPECT_EQ(last_published({config.begin(), config.end()}).value() & 0xffffU, 2U) << key.name;
  }
}

TEST_F(AgentTest, AnEndpointThatSomebodyChangedAtTheBrokerIsWrittenAgain) {
  join();
  const auto endpoints = broker.keys(kube::resource_of<api::Endpoint>());
  ASSERT_THAT(endpoints, SizeIs(2));
  auto changed = *broker.find<api::Endpoint>(endpoints[0]);
  const auto original = changed.spec.backend_config;
  changed.spec.backend_config.clear();
  broker.put(changed);
  loop.advance(30s);
  EXPECT_TRUE(broker.find<api::Endpoint>(endpoints[0])->spec.backend_config.contains(api::names::kKeysConfig));
  expect_tunnel();
}

TEST_F(AgentTest, UninstallSaysGoodByeCleansTheKernelAndAcknowledges) {
  join();
  a.start("7");
  loop.advance(30s);
  EXPECT_THAT(a.kernel.ours.sas, IsEmpty());
  EXPECT_THAT(a.kernel.ours.policies, IsEmpty());
  const auto gateway = a.gateway();
  ASSERT_NE(gateway.metadata.annotation(api::names::kCleanedAnnotation), nullptr);
  EXPECT_EQ(*gateway.metadata.annotation(api::names::kCleanedAnnotation), "submariner-gateway@7");
  EXPECT_THAT(b.kernel.ours.sas, IsEmpty()) << "the peer heard it";
}

TEST_F(AgentTest, UninstallWithoutCredentialsCleansTheKernelAndAcknowledges) {
  join();
  a.start("7", false);
  loop.advance(30s);
  EXPECT_THAT(a.kernel.ours.sas, IsEmpty());
  EXPECT_NE(a.gateway().metadata.annotation(api::names::kCleanedAnnotation), nullptr);
}

}  // namespace
}  // namespace fabric::gateway
