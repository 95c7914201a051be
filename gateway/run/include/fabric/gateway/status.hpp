#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/gateway/pinger.hpp>
#include <fabric/gateway/sa_plan.hpp>
#include <fabric/gateway/traffic.hpp>

#include <map>
#include <optional>
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
  std::string psk_failure;     ///< Why the mounted PSKs are not taken; those that were read before go on.
  std::string encap_failure;   ///< Why ESP in UDP is not received; ESP without UDP is not concerned.
  std::optional<api::GatewayKeys> keys;
};

/// The Gateway object of this node.
api::Gateway gateway_object(const StatusInputs& inputs);

/// The same without round trips and counts of refusals, which others can make change all the time: only a change of
/// this is worth a write at once.
api::Gateway without_figures(api::Gateway gateway);

/// Annotation of the Gateway object with StatusInputs::broker_failure.
inline constexpr std::string_view kBrokerFailureAnnotation = "fabric.tkestack.io/broker-failure";
/// With StatusInputs::psk_failure.
inline constexpr std::string_view kPskFailureAnnotation = "fabric.tkestack.io/psk-failure";
/// With StatusInputs::encap_failure.
inline constexpr std::string_view kEncapFailureAnnotation = "fabric.tkestack.io/encapsulation-failure";

/// submariner_connections, submariner_connection_latency_seconds, submariner_gateway_rx_bytes and their like, with the
/// labels of Submariner's. `shown` are the labels of the connections at the last call; series of those that are gone
/// are removed.
void set_metrics(telemetry::Registry& metrics, const Options& options, const api::Gateway& gateway,
                 const TrafficMeter& traffic, std::set<telemetry::Labels>& shown);

}  // namespace fabric::gateway
