#pragma once

#include <fabric/api/fabric_rules.hpp>
#include <fabric/api/names.hpp>
#include <fabric/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::operators {

enum class Agent : std::uint8_t { gateway, route_agent };
inline constexpr std::array kAgents = {Agent::gateway, Agent::route_agent};

/// Name of the agent's DaemonSet, ServiceAccount and roles: submariner-gateway, submariner-routeagent.
std::string_view name_of(Agent agent);

/// What the installation of the operator says about the agents of every Fabric.
struct AgentDefaults {
  std::string image{};  ///< The operator's own, where the Fabric names none: "fabric/fabric:0.1.0".
  std::string pull_policy = "IfNotPresent";
  std::uint16_t gateway_metrics_port = api::names::kGatewayMetricsPort;
  std::uint16_t route_agent_metrics_port = api::names::kRouteAgentMetricsPort;
  std::vector<std::string> gateway_extra_args{};  ///< Flags behind our own, for test beds and debugging.
};

/// The image of an agent: imageOverrideArr, then repository and imageVersion (each replaces its part), then the
/// default.
std::string image_of(Agent agent, const api::JoinSettings& settings, const std::string& default_image);

struct AgentPlan {
  std::string fabric{};  ///< "namespace.name", a label value of every object.
  std::string ns{};      ///< Namespace of the agents.
  api::JoinSettings settings{};
  AgentDefaults defaults{};
  /// Restarts the gateways when the files that they read once change: a hash of identity and broker access. They read
  /// the PSKs again while they run.
  std::string secrets_fingerprint{};
  /// Set while uninstalling: the agents clean up and acknowledge with this token. A route agent must be done before the
  /// gateway agents begin, so that block policies outlive the routes; hence one value for each.
  std::optional<std::string> uninstall_gateway{};
  std::optional<std::string> uninstall_route_agent{};
};

/// The label that lets the agents use the host's network where the cluster enforces pod security by default. Nothing
/// else of the namespace is ours.
json::Value agent_namespace(const AgentPlan& plan);

/// ServiceAccounts, roles and bindings of the agents, in the order of application.
std::vector<json::Value> agent_rbac(const AgentPlan& plan);

/// The DaemonSet of one agent.
json::Value agent_daemonset(Agent agent, const AgentPlan& plan);

/// What to delete after the agents are gone, in order; apiVersion, kind and metadata only.
std::vector<json::Value> agent_objects_to_delete(const AgentPlan& plan);

}  // namespace fabric::operators
