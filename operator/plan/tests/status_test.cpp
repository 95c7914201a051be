#include <fabric/operator/status.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::operators {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr TimePoint kNow{std::chrono::seconds(1'700'000'000)};

const api::Condition& condition(const api::FabricStatus& status, std::string_view type) {
  static const api::Condition kNone;
  const api::Condition* found = api::find_condition(status.conditions, type);
  EXPECT_NE(found, nullptr) << type;
  return found == nullptr ? kNone : *found;
}

Step done(std::string_view type) {
  return {std::string(type), StepState::done, "Ok", ""};
}

TEST(Steps, AreReadyWhenAllAreDone) {
  api::FabricStatus status;
  apply_steps(status, {done(kJoined), done(kAgentsReady)}, 4, kNow);
  EXPECT_TRUE(api::is_true(status.conditions, "Ready"));
  EXPECT_EQ(status.phase, api::FabricPhase::running);
  EXPECT_EQ(status.observed_generation, 4);
}

TEST(Steps, StallOnWhatAPersonMustMend) {
  api::FabricStatus status;
  apply_steps(status, {step_of(kBrokerInfoRead, {Errc::invalid, "brokerInfo is not base64", {}}), done(kAgentsReady)},
              1, kNow);
  EXPECT_TRUE(api::is_true(status.conditions, "Stalled"));
  EXPECT_FALSE(api::is_true(status.conditions, "Ready"));
  EXPECT_THAT(condition(status, "Ready").message, HasSubstr("not base64"));
  EXPECT_EQ(status.phase, api::FabricPhase::failed);
}

TEST(Steps, RecoverByThemselvesAndKeepWhatWasNotReached) {
  api::FabricStatus status;
  apply_steps(status, {done(kJoined), done(kAgentsReady)}, 1, kNow);
  apply_steps(status, {step_of(kJoined, {Errc::unavailable, "connect", {}})}, 1, kNow);
  EXPECT_TRUE(api::is_true(status.conditions, kAgentsReady));
  EXPECT_TRUE(api::is_true(status.conditions, "Reconciling"));
  EXPECT_EQ(status.phase, api::FabricPhase::pending);
  apply_steps(status, {done(kJoined), done(kAgentsReady)}, 1, kNow);
  EXPECT_TRUE(api::is_true(status.conditions, "Ready"));
  EXPECT_EQ(api::find_condition(status.conditions, "Reconciling"), nullptr);
}

TEST(Steps, DoNotWaitForConnections) {
  api::FabricStatus status;
  apply_steps(status, {done(kJoined), {std::string(kConnections), StepState::working, "NotConnected", "b"}}, 1, kNow);
  EXPECT_TRUE(api::is_true(status.conditions, "Ready"));
  EXPECT_FALSE(api::is_true(status.conditions, kConnections));
}

TEST(Steps, DoNotWaitForARotationButForAWrongNumber) {
  api::FabricStatus status;
  apply_steps(status, {done(kBrokerReady), {std::string(kPskRotated), StepState::working, "Rotating", "b"}}, 1, kNow);
  EXPECT_TRUE(api::is_true(status.conditions, "Ready"));
  EXPECT_FALSE(api::is_true(status.conditions, kPskRotated));
  apply_steps(status, {done(kBrokerReady), {std::string(kPskRotated), StepState::stalled, "NumberRefused", "b"}}, 1,
              kNow);
  EXPECT_TRUE(api::is_true(status.conditions, "Stalled"));
}

TEST(Unserved, AreNamedAndTheConditionGoesWithThem) {
  api::FabricStatus status;
  apply_unserved(status, {{"spec.joinConfig.loadBalancerEnabled", "true", "no load balancer is made"}}, 1, kNow);
  EXPECT_THAT(condition(status, kUnsupported).message, HasSubstr("loadBalancerEnabled true: no load balancer"));
  apply_unserved(status, {}, 2, kNow);
  EXPECT_EQ(api::find_condition(status.conditions, kUnsupported), nullptr);
}

api::DaemonSet daemonset(std::int32_t wanted, std::int32_t ready) {
  api::DaemonSet out;
  out.metadata.name = "submariner-gateway";
  out.metadata.ns = "submariner-operator";
  out.status.desired_number_scheduled = wanted;
  out.status.updated_number_scheduled = wanted;
  out.status.number_ready = out.status.number_available = ready;
  out.status.number_unavailable = wanted - ready;
  return out;
}

TEST(AgentsStep, NeedsEveryPodOfEveryDaemonSet) {
  EXPECT_EQ(agents_step({daemonset(1, 1), daemonset(2, 2)}).state, StepState::done);
  EXPECT_EQ(agents_step({daemonset(1, 1), std::nullopt}).state, StepState::working);
  EXPECT_EQ(agents_step({daemonset(0, 0)}).state, StepState::working);
  const Step waiting = agents_step({daemonset(2, 1)});
  EXPECT_EQ(waiting.state, StepState::working);
  EXPECT_THAT(waiting.message, HasSubstr("1 of 2 pods"));
}

api::Gateway gateway(std::string name, std::vector<std::pair<std::string, api::ConnectionStatus>> connections) {
  api::Gateway out;
  out.metadata.name = std::move(name);
  for (auto& [cluster, status] : connections) {
    api::Connection connection;
    connection.endpoint.cluster_id = cluster;
    connection.endpoint.hostname = cluster + "-1";
    connection.status = status;
    out.status.connections.push_back(std::move(connection));
  }
  return out;
}

TEST(Connections, CountClustersNotGateways) {
  using enum api::ConnectionStatus;
  const auto report = report_connections(
      "a", {gateway("a-1", {{"b", connected}, {"c", connecting}}), gateway("a-2", {{"b", error}})}, {"b", "c", "a"});
  EXPECT_EQ(report.summary, "1/2");
  ASSERT_EQ(report.connections.size(), 2U);
  EXPECT_EQ(report.connections[0].status, connected);
  EXPECT_THAT(report.step.message, HasSubstr("not connected to c"));
}

TEST(Connections, AreEstablishedWhenThereIsNobodyElse) {
  const auto report = report_connections("a", {gateway("a-1", {})}, {"a"});
  EXPECT_EQ(report.summary, "0/0");
  EXPECT_EQ(report.step.state, StepState::done);
}

TEST(WorthWriting, IgnoresRoundTripsAlone) {
  api::FabricStatus last;
  last.connections = {{.cluster = "b", .gateway = "b-1", .using_ip = "", .rtt = "1ms", .message = ""}};
  api::FabricStatus next = last;
  next.connections[0].rtt = "2ms";
  EXPECT_FALSE(worth_writing(last, next));
  next.connections[0].status = api::ConnectionStatus::connected;
  EXPECT_TRUE(worth_writing(last, next));
}

TEST(Uninstall, WaitsForEveryNodeAndForThisUninstall) {
  const auto progress = uninstall_progress("submariner-gateway", "3", {"n1", "n2", "n3"},
                                           {{"n1", "submariner-gateway@3"}, {"n2", "submariner-gateway@2"}});
  EXPECT_THAT(progress.waiting, ElementsAre("n2", "n3"));
  EXPECT_THAT(progress.message, HasSubstr("nodes n2, n3"));
  EXPECT_THAT(uninstall_progress("x", "3", {}, {}).waiting, IsEmpty());
}

}  // namespace
}  // namespace fabric::operators
