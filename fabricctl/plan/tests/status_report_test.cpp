#include <fabric/ctl/status_report.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using api::ConditionStatus;
using test::condition;
using test::kNow;
using testing::HasSubstr;
using testing::Not;

/// A member with one connection that works and one that does not.
ClusterView east() {
  ClusterView out;
  out.now = kNow;
  out.fabrics = {test::member()};
  out.fabrics.front().status.conditions.push_back(
      condition("ConnectionsEstablished", ConditionStatus::no, "NotConnected", "not connected to west"));
  api::Gateway gateway = test::gateway("n1", {test::generation("g7", 12min)});
  gateway.status.connections = {test::connection("hub", api::ConnectionStatus::connected),
                                test::connection("west", api::ConnectionStatus::error)};
  gateway.status.connections.front().latency_rtt.emplace().average = 1234us;
  gateway.status.connections.front().status_message = "fine";
  gateway.status.connections.back().using_nat = true;
  gateway.status.connections.back().status_message = "5 pings to 10.3.0.1 were lost";
  out.gateways = {gateway};
  return out;
}

TEST(StatusReport, ShowsAMemberAsAPersonReadsIt) {
  EXPECT_EQ(
      status_text(east(), false),
      "Fabric default/join (member): Ready\n"
      "  cluster ID        east\n"
      "  broker            https://192.0.2.1:6443\n"
      "  pod prefixes      10.1.0.0/16 (from Node spec.podCIDRs), fd01::/48 (from spec.joinConfig.clusterCIDR)\n"
      "  service prefixes  10.101.0.0/16 (from ServiceCIDR kubernetes)\n"
      "  PSK IDs           1:0123456789abcdef\n"
      "  connections       1/2\n"
      "  CONDITION                STATUS   REASON         SINCE   MESSAGE\n"
      "  ConnectionsEstablished   False    NotConnected   5m      not connected to west\n"
      "\n"
      "Gateways\n"
      "NODE   HA       CONNECTED   PRIVATE IP   PUBLIC IP   VERSION   FAILURE\n"
      "n1     active   1/2         192.0.2.11   -           0.1.0     -\n"
      "\n"
      "Connections\n"
      "GATEWAY   CLUSTER   REMOTE GATEWAY   STATUS      RTT AVG   USING IP      NAT   MESSAGE\n"
      "n1        hub       gw               connected   1.234ms   203.0.113.7   no    -\n"
      "n1        west      gw               error       -         203.0.113.7   yes   5 pings to 10.3.0.1 were lost\n"
      "\n"
      "Keys\n"
      "GATEWAY   GENERATION   AGE   REASON   HELD   PSK IDS              REKEYS   REJECTED RECORDS\n"
      "n1        g7           12m   age      1      1:0123456789abcdef   0        -\n");
}

TEST(StatusReport, ShowsTheBrokersRotationAndMembers) {
  ClusterView view;
  view.now = kNow;
  view.fabrics = {test::rotating_broker(2, {"west"})};
  view.fabrics.front().status.joined_clusters = {"east", "west"};
  const std::string text = status_text(view, false);
  EXPECT_THAT(text, HasSubstr("Fabric default/hub (broker): Ready\n"));
  EXPECT_THAT(text, HasSubstr("members           east, west\n"));
  EXPECT_THAT(text, HasSubstr("PSK rotation      PSK 2 replaces PSK 1: 2 of 3 clusters are ready, waiting for west\n"));
  EXPECT_THAT(text, Not(HasSubstr("Gateways")));
}

TEST(StatusReport, VerboseShowsConditionsThatAreFineToo) {
  EXPECT_THAT(status_text(east(), false), Not(HasSubstr("everything is in place")));
  EXPECT_THAT(status_text(east(), true), HasSubstr("everything is in place"));
}

TEST(StatusReport, KnowsWhichConditionsAreBadNewsWhenTrue) {
  struct Row {
    const char* type;
    ConditionStatus status;
    bool fine;
  };

  for (const Row& row :
       {Row{"Ready", ConditionStatus::yes, true}, Row{"Ready", ConditionStatus::no, false},
        Row{"Ready", ConditionStatus::unknown, false}, Row{"Stalled", ConditionStatus::yes, false},
        Row{"Reconciling", ConditionStatus::yes, false}, Row{"Reconciling", ConditionStatus::no, true},
        Row{"UnsupportedFields", ConditionStatus::yes, false}, Row{"AgentsReady", ConditionStatus::yes, true}}) {
    EXPECT_EQ(is_fine(condition(row.type, row.status, "", "")), row.fine) << row.type;
  }
}

TEST(StatusReport, IsReadyOnlyWhenEveryFabricIsAndAsItIsNow) {
  ClusterView view;
  view.fabrics = {test::fabric("a"), test::fabric("b")};
  EXPECT_TRUE(is_ready(view));
  view.fabrics.back().metadata.generation = 3;
  EXPECT_FALSE(is_ready(view));
  EXPECT_THAT(status_text(view, false),
              HasSubstr("b (no role): not Ready: the operator has not seen the latest spec yet"));
  view.fabrics.back() = test::fabric("b");
  view.fabrics.back().metadata.deletion_timestamp = kNow;
  EXPECT_FALSE(is_ready(view));
  view.fabrics.back() = test::fabric("b");
  view.fabrics.back().status.conditions.clear();
  EXPECT_FALSE(is_ready(view));
  EXPECT_THAT(status_text(view, false), HasSubstr("not Ready: no operator has looked at it yet"));
}

TEST(StatusReport, SaysThatThereIsNoFabric) {
  ClusterView view;
  EXPECT_FALSE(is_ready(view));
  EXPECT_THAT(status_text(view, false), HasSubstr("No Fabric"));
}

TEST(StatusReport, DocumentHoldsTheObjectsOfTheApi) {
  const json::Value document = status_document(east());
  EXPECT_EQ(*document.find("ready"), json::Value(true));
  EXPECT_EQ(document.string_at({"fabrics", "0", "status", "clusterID"}), "east");
  EXPECT_EQ(document.string_at({"gateways", "0", "kind"}), "Gateway");
  EXPECT_EQ(document.string_at({"gateways", "0", "status", "connections", "1", "status"}), "error");
  const json::Value empty = status_document({});
  EXPECT_EQ(json::write(empty), R"({"fabrics":[],"gateways":[],"ready":false})");
}

}  // namespace
}  // namespace fabric::ctl
