#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/gateway/pinger.hpp>
#include <fabric/gateway/sa_plan.hpp>

#include <map>
#include <set>
#include <string>

namespace fabric::gateway {

struct StatusInputs {
  const Options* options = nullptr;
  const Membership* membership = nullptr;
  const Pinger* pinger = nullptr;
  const SaPlan* sas = nullptr;
  std::map<crypto::GatewayId, PeerKeys> peers;
  std::map<crypto::GatewayId, net::IpAddress> health_targets;
  api::EndpointSpec local;
  std::string failure;         ///< Why this gateway cannot carry anything.
  std::string broker_failure;  ///< Why the broker does not have what we say; traffic is not concerned.
};

/// The Gateway object of this node.
api::Gateway gateway_object(const StatusInputs& inputs);

/// The same without round trips, which change all the time: only a change of this is worth a write.
api::Gateway without_latency(api::Gateway gateway);

/// Annotation of the Gateway object with StatusInputs::broker_failure.
inline constexpr std::string_view kBrokerFailureAnnotation = "fabric.tkestack.io/broker-failure";

/// submariner_connections, submariner_connection_latency_seconds and their like, with the labels of Submariner's.
/// `shown` are the labels of the connections at the last call; series of those that are gone are removed.
void set_metrics(telemetry::Registry& metrics, const Options& options, const api::Gateway& gateway,
                 std::set<telemetry::Labels>& shown);

}  // namespace fabric::gateway
