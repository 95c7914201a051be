#include <fabric/operator/gateway_choice.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::operators {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NodeFacts node(std::string name) {
  return {.name = std::move(name), .ready = true};
}

TEST(GatewayChoice, PrefersAReadyWorkerThenTheName) {
  std::vector<NodeFacts> nodes{node("a"), node("b"), node("c"), node("d")};
  nodes[0].control_plane = true;
  nodes[1].ready = false;
  const GatewayChoice choice = choose_gateways("default/join", nodes, true);
  EXPECT_THAT(choice.to_label, ElementsAre("c"));
  EXPECT_THAT(choice.gateways, ElementsAre("c"));
  EXPECT_THAT(choice.findings, IsEmpty());
}

TEST(GatewayChoice, TakesTheControlPlaneWhenThereIsNothingElse) {
  std::vector<NodeFacts> nodes{node("cp")};
  nodes[0].control_plane = true;
  EXPECT_THAT(choose_gateways("default/join", nodes, true).to_label, ElementsAre("cp"));
}

TEST(GatewayChoice, RespectsExistingLabelsEvenWhenTheNodeIsDown) {
  std::vector<NodeFacts> nodes{node("a"), node("b")};
  nodes[1].gateway = true;
  nodes[1].ready = false;
  const GatewayChoice choice = choose_gateways("default/join", nodes, true);
  EXPECT_THAT(choice.to_label, IsEmpty());
  EXPECT_THAT(choice.gateways, ElementsAre("b"));
  ASSERT_EQ(choice.findings.size(), 1U);
  EXPECT_EQ(choice.findings[0].severity, Finding::Severity::notice);
  EXPECT_THAT(choice.findings[0].message, HasSubstr("gateway node b is not Ready"));
}

TEST(GatewayChoice, LabelsNothingWhenToldNotTo) {
  const GatewayChoice choice = choose_gateways("default/join", {node("a")}, false);
  EXPECT_THAT(choice.gateways, IsEmpty());
  ASSERT_NE(first_blocking(choice.findings), nullptr);
  EXPECT_THAT(choice.findings[0].message, HasSubstr("kubectl label node NAME submariner.io/gateway=true"));
}

TEST(GatewayChoice, PassesOverCordonedNodes) {
  std::vector<NodeFacts> nodes{node("a"), node("b")};
  nodes[0].schedulable = false;
  EXPECT_THAT(choose_gateways("default/join", nodes, true).to_label, ElementsAre("b"));
}

TEST(GatewayChoice, IsStableOverTheOrderOfNodes) {
  const std::vector<NodeFacts> nodes{node("c"), node("a"), node("b")};
  EXPECT_THAT(choose_gateways("default/join", nodes, true).to_label, ElementsAre("a"));
}

TEST(LabelsToRemove, FindsOnlyOurOwn) {
  std::vector<NodeFacts> nodes{node("a"), node("b"), node("c")};
  for (NodeFacts& each : nodes)
    each.gateway = true;
  nodes[1].label_owner = "default.join";
  nodes[2].label_owner = "default.other";
  EXPECT_THAT(labels_to_remove(nodes, "default.join"), ElementsAre("b"));
}

}  // namespace
}  // namespace fabric::operators
