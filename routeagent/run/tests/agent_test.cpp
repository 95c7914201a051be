#include <fabric/api/names.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/kernel/fake_kernel.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/netstate/ownership.hpp>
#include <fabric/routeagent/agent.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace fabric::routeagent {
namespace {

namespace names = api::names;
using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::Not;

/// A node with what a gateway agent left in its kernel, and a route agent on it.
class AgentTest : public ::testing::Test {
 protected:
  AgentTest() {
    set_gateway(false);
    api::Cluster cluster;
    cluster.metadata.ns = names::kOperatorNamespace;
    cluster.metadata.name = cluster.spec.cluster_id = "a";
    cluster.spec.cluster_cidr = {"10.1.0.0/16"};
    server_.put(cluster);
    node_.facts.interfaces.push_back(
        {.name = "eth0", .addresses = {{.address = net::IpAddress::v4(192, 0, 2, 1), .prefix_length = 24}}});
    netstate::XfrmPolicy block;
    block.priority = netstate::kBlockPriority;
    block.action = netstate::BlockAction{};
    node_.ours.policies.emplace(netstate::PolicyKey{.direction = netstate::Direction::out,
                                                    .src = *net::Cidr::parse("10.1.0.0/16"),
                                                    .dst = *net::Cidr::parse("10.2.0.0/16")},
                                block);
  }

  ~AgentTest() override { stop(); }

  void set_gateway(bool gateway) {
    api::Node node;
    node.metadata.name = "n1";
    node.spec.pod_cidrs = {"10.1.0.0/24"};
    node.status.addresses = {{.type = "InternalIP", .address = "192.0.2.1"}};
    if (gateway) node.metadata.labels.emplace(names::kGatewayLabel, names::kGatewayLabelValue);
    server_.put(node);
  }

  void start(std::optional<std::string> uninstall = std::nullopt) {
    const controller::Runtime runtime{loop_.executor(), loop_.clock(), [] { return 0.5; }, metrics_};
    agent_ = std::make_unique<Agent>(Options{.node = "n1", .cluster_id = "a", .uninstall = std::move(uninstall)},
                                     *client_, kernel_, runtime, health_, [this]() -> Result<kernel::NetnsLock> {
                                       if (gateway_runs_) return fail(Errc::unavailable, "it runs");
                                       return std::make_shared<int>();
                                     });
    agent_->start(*(group_ = std::make_unique<async::TaskGroup>(loop_.executor())));
    loop_.advance(5s);
  }

  void stop() {
    if (group_) group_->stop();
    loop_.settle();
  }

  bool acknowledged() {
    const auto object = server_.find<api::RouteAgent>({std::string(names::kOperatorNamespace), "n1"});
    return object && object->metadata.annotation(names::kCleanedAnnotation) != nullptr;
  }

  async::TestLoop loop_;
  kube::fake::FakeApiServer server_{loop_.executor(), loop_.clock()};
  telemetry::Registry metrics_;
  telemetry::Health health_;
  std::unique_ptr<kube::Client> client_ = server_.client(metrics_);
  kernel::FakeKernelState node_;
  kernel::FakeKernel kernel_{node_};
  bool gateway_runs_ = false;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<async::TaskGroup> group_;
};

TEST_F(AgentTest, WhatAGatewayLeftOnANodeThatIsNoneIsRemoved) {
  start();
  EXPECT_THAT(node_.ours.policies, IsEmpty());
  EXPECT_TRUE(health_.ready()) << health_.report();
}

TEST_F(AgentTest, NothingOfAGatewayIsTouched) {
  set_gateway(true);
  start();
  loop_.advance(120s);
  EXPECT_THAT(node_.ours.policies, Not(IsEmpty()));
  set_gateway(false);
  loop_.advance(5s);
  EXPECT_THAT(node_.ours.policies, IsEmpty());
}

TEST_F(AgentTest, AGatewayAgentThatStillRunsIsWaitedFor) {
  gateway_runs_ = true;
  start();
  loop_.advance(60s);
  EXPECT_THAT(node_.ours.policies, Not(IsEmpty()));
  EXPECT_TRUE(health_.ready()) << health_.report();
  gateway_runs_ = false;
  loop_.advance(5s);
  EXPECT_THAT(node_.ours.policies, IsEmpty());
}

TEST_F(AgentTest, AnUninstallCleansWhatAGatewayLeftBeforeItSaysSo) {
  gateway_runs_ = true;
  start("7");
  loop_.advance(30s);
  EXPECT_FALSE(acknowledged());
  gateway_runs_ = false;
  loop_.advance(30s);
  EXPECT_TRUE(acknowledged());
  EXPECT_THAT(node_.ours.policies, IsEmpty());
}

TEST_F(AgentTest, AnUninstallLeavesAGatewaysPoliciesToTheGateway) {
  set_gateway(true);
  start("7");
  EXPECT_TRUE(acknowledged());
  EXPECT_THAT(node_.ours.policies, Not(IsEmpty()));
}

}  // namespace
}  // namespace fabric::routeagent
