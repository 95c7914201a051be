#include <fabric/api/names.hpp>
#include <fabric/operator/gateway_choice.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

namespace fabric::operators {
namespace {

/// Smaller is better.
auto rank(const NodeFacts& node) {
  return std::tuple(!node.ready, node.control_plane, !node.worker, node.name);
}

std::string advice(std::string_view remedy) {
  return fmt::format("{}: kubectl label node NAME {}=true", remedy, api::names::kGatewayLabel);
}

}  // namespace

GatewayChoice choose_gateways(std::string_view fabric, const std::vector<NodeFacts>& nodes, bool label_gateway) {
  GatewayChoice choice;
  std::vector<const NodeFacts*> candidates;
  bool any_ready = false;
  for (const NodeFacts& node : nodes) {
    if (node.gateway) {
      choice.gateways.push_back(node.name);
      any_ready = any_ready || node.ready;
    } else if (node.schedulable) {
      candidates.push_back(&node);
    }
  }
  if (choice.gateways.empty() && label_gateway && !candidates.empty()) {
    const NodeFacts& best =
        **std::ranges::min_element(candidates, {}, [](const NodeFacts* node) { return rank(*node); });
    choice.gateways.push_back(best.name);
    choice.to_label.push_back(best.name);
    any_ready = best.ready;
  }
  std::ranges::sort(choice.gateways);
  if (choice.gateways.empty()) {
    choice.findings.push_back(
        {Finding::Severity::blocking, "NoGatewayNode",
         fmt::format("Fabric {}: no node has the label {}=true and {}; {}", fabric, api::names::kGatewayLabel,
                     label_gateway ? "no schedulable node could be labelled" : "spec.joinConfig.labelGateway is false",
                     advice("label one yourself"))});
  } else if (!any_ready) {
    choice.findings.push_back(
        {Finding::Severity::notice, "GatewayNodeNotReady",
         fmt::format("Fabric {}: gateway node{} {} {} not Ready; repair {} or {}", fabric,
                     choice.gateways.size() == 1 ? "" : "s", fmt::join(choice.gateways, ", "),
                     choice.gateways.size() == 1 ? "is" : "are", choice.gateways.size() == 1 ? "it" : "one of them",
                     advice("label another one"))});
  }
  return choice;
}

std::vector<std::string> labels_to_remove(const std::vector<NodeFacts>& nodes, std::string_view owner) {
  std::vector<std::string> names;
  for (const NodeFacts& node : nodes) {
    if (node.label_owner == owner) names.push_back(node.name);
  }
  return names;
}

}  // namespace fabric::operators
