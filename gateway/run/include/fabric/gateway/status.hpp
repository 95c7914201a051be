#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/gateway/pinger.hpp>
#include <fabric/gateway/sa_plan.hpp>

#include <map>
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
  std::string failure;
};

/// The Gateway object of this node.
api::Gateway gateway_object(const StatusInputs& inputs);

/// The same without round trips, which change all the time: only a change of this is worth a write.
api::Gateway without_latency(api::Gateway gateway);

/// submariner_connections, submariner_connection_latency_seconds and their like, with the labels of Submariner's.
void set_metrics(telemetry::Registry& metrics, const Options& options, const api::Gateway& gateway);

}  // namespace fabric::gateway
