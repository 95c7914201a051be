#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "site.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Site;
using ::testing::SizeIs;

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

TEST_F(AgentTest, PeersLetGoOfAGatewayWhoseNodeIsNoneAnyMore) {
  join();
  const auto with_label = *a.server.find<api::Node>({"", "n1"});
  auto node = with_label;
  node.metadata.labels.clear();
  a.server.put(node);
  loop.advance(5s);
  EXPECT_EQ(b.all(), 0U);
  EXPECT_TRUE(a.outcome());
  a.server.put(with_label);
  loop.advance(5s);
  ASSERT_FALSE(a.outcome()) << "it must not come back with the same keys";
  EXPECT_THAT(a.outcome().error().message(), HasSubstr("is a gateway again"));
  a.start();
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
