#pragma once

#include <fabric/api/apps.hpp>
#include <fabric/api/fabric.hpp>
#include <fabric/api/fabric_rules.hpp>
#include <fabric/base/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fabric::operators {

// Condition types besides Ready, Reconciling and Stalled.
inline constexpr std::string_view kBrokerReady = "BrokerReady";  ///< Broker role: it can be joined.
inline constexpr std::string_view kSpecValid = "SpecValid";
inline constexpr std::string_view kBrokerInfoRead = "BrokerInfoRead";  ///< Join role: broker-info is there and right.
inline constexpr std::string_view kJoined = "Joined";  ///< Join role: member identity and Cluster record.
inline constexpr std::string_view kNetworkDiscovered = "NetworkDiscovered";
inline constexpr std::string_view kGatewaysChosen = "GatewaysChosen";
inline constexpr std::string_view kAgentsReady = "AgentsReady";
inline constexpr std::string_view kConnections = "ConnectionsEstablished";
inline constexpr std::string_view kUnsupported = "UnsupportedFields";  ///< True names fields that nothing serves yet.
/// Broker role: the PSK that spec.brokerConfig.pskNumber asks for is the only valid one.
inline constexpr std::string_view kPskRotated = "PSKRotated";
/// Join role: this cluster has every PSK that the broker says is valid.
inline constexpr std::string_view kPskCurrent = "PSKCurrent";
inline constexpr std::string_view kUninstalled = "Uninstalled";

enum class StepState : std::uint8_t {
  done,
  working,  ///< Goes on by itself.
  failing,  ///< The world is in the way (broker unreachable); retried.
  stalled,  ///< Somebody has to change something; the message says what.
};

/// How far one part of the work is.
struct Step {
  std::string type;
  StepState state = StepState::working;
  std::string reason;
  std::string message;
  bool operator==(const Step&) const = default;
};

/// A step from an error: stalled for what does not mend by itself, failing otherwise.
Step step_of(std::string_view type, const Error& error);

/// Each step becomes a condition; Ready, Reconciling, Stalled and the phase follow from the first that is not done.
/// Conditions of steps that were not reached keep their last state. ConnectionsEstablished and a rotation that runs
/// never decide about Ready: they also depend on other clusters, and nothing is broken meanwhile.
void apply_steps(api::FabricStatus& status, const std::vector<Step>& steps, std::int64_t generation, TimePoint now);

/// Sets or removes the condition about fields that nothing serves.
void apply_unserved(api::FabricStatus& status, const std::vector<api::UnservedField>& fields, std::int64_t generation,
                    TimePoint now);

/// "Every wanted pod of the DaemonSets runs the newest version", or which one does not and why to look where. `absent`
/// is a DaemonSet that was applied but is not in the store yet.
Step agents_step(const std::vector<std::optional<api::DaemonSet>>& daemonsets);

/// What the Gateways of this cluster say: `remote_clusters` are those that are known from Cluster objects.
struct ConnectionReport {
  std::vector<api::GatewaySummary> gateways;
  std::vector<api::ConnectionSummary> connections;
  std::string summary;  ///< "1/2": connected clusters of known clusters.
  Step step;
};

ConnectionReport report_connections(std::string_view own_cluster, const std::vector<api::Gateway>& gateways,
                                    const std::vector<std::string>& remote_clusters);

/// Whether writing `next` over `last` would tell anybody anything: round trip times alone do not count.
bool worth_writing(const api::FabricStatus& last, const api::FabricStatus& next);

/// Nodes that have not acknowledged an uninstall. `cleaned` maps a node to the annotation of its status object.
struct UninstallProgress {
  std::vector<std::string> waiting;
  std::string message;
};

UninstallProgress uninstall_progress(std::string_view component, std::string_view token,
                                     const std::vector<std::string>& nodes,
                                     const std::map<std::string, std::string>& cleaned);

}  // namespace fabric::operators
