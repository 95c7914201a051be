#pragma once

#include <fabric/api/core.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/controller/store.hpp>
#include <fabric/routeagent/options.hpp>
#include <fabric/routeagent/plan.hpp>

namespace fabric::routeagent {

/// What the stores hold at one moment.
struct Objects {
  controller::Store<api::Node>::Snapshot own_node;       ///< At most this node.
  controller::Store<api::Node>::Snapshot gateway_nodes;  ///< Nodes with the gateway label.
  controller::Store<api::Endpoint>::Snapshot endpoints;
  controller::Store<api::Cluster>::Snapshot clusters;
  controller::Store<api::Gateway>::Snapshot gateways;
};

/// Objects as the planner's values. Errc::unavailable while something that must come first is missing (this Node, its
/// InternalIP, the Cluster object of this cluster); the message says what. Errc::invalid names an unreadable prefix of
/// this cluster; unreadable prefixes of others are left out.
Result<Inputs> gather(const Options& options, const Objects& objects, netstate::HostFacts facts,
                      std::map<std::string, std::string> changed_sysctls);

/// The connections of the gateway that carries this node's traffic, as the node's own status shows them.
std::vector<api::RemoteEndpoint> remote_endpoints(const Options& options, const Objects& objects,
                                                  const std::string& gateway);

}  // namespace fabric::routeagent
