#pragma once

#include <fabric/operator/finding.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fabric::operators {

struct NodeFacts {
  std::string name{};
  bool ready = false;
  bool schedulable = true;     ///< Not cordoned and not being deleted.
  bool control_plane = false;  ///< Has the label node-role.kubernetes.io/control-plane or .../master.
  bool worker = false;         ///< Has the label node-role.kubernetes.io/worker.
  bool gateway = false;        ///< Has the label submariner.io/gateway=true.
  std::string label_owner{};   ///< Value of the annotation names::kLabelledByUs: "namespace.name" of a Fabric.
  bool operator==(const NodeFacts&) const = default;
};

struct GatewayChoice {
  std::vector<std::string> gateways{};  ///< All nodes that are or will be gateways, sorted.
  std::vector<std::string> to_label{};  ///< Nodes that the shell has to label and annotate.
  std::vector<Finding> findings{};
};

/// Existing labels are respected. When there is no gateway node and `label_gateway` is set, one node is chosen: Ready
/// before not, worker before control plane, then by name. Nothing is moved while a gateway node exists, whatever its
/// state, since changing gateways breaks connections; a gateway that is not Ready is a notice.
GatewayChoice choose_gateways(std::string_view fabric, const std::vector<NodeFacts>& nodes, bool label_gateway);

/// Nodes whose label this Fabric ("namespace.name") set.
std::vector<std::string> labels_to_remove(const std::vector<NodeFacts>& nodes, std::string_view owner);

}  // namespace fabric::operators
