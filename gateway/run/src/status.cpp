#include <fabric/api/names.hpp>
#include <fabric/base/version.hpp>
#include <fabric/gateway/connection.hpp>
#include <fabric/gateway/status.hpp>

#include <algorithm>
#include <array>

namespace fabric::gateway {

namespace names = api::names;

namespace {

constexpr auto kConnectionsMetric = "submariner_connections";
constexpr auto kLatencyMetric = "submariner_connection_latency_seconds";

struct TrafficMetric {
  const char* name;
  const char* help;
  std::uint64_t Traffic::* value;
};

/// The first two as Submariner has them.
constexpr std::array kTrafficMetrics{
    TrafficMetric{"submariner_gateway_rx_bytes", "Bytes received from another gateway.", &Traffic::rx_bytes},
    TrafficMetric{"submariner_gateway_tx_bytes", "Bytes sent to another gateway.", &Traffic::tx_bytes},
    TrafficMetric{"fabric_gateway_rx_packets", "Packets received from another gateway.", &Traffic::rx_packets},
    TrafficMetric{"fabric_gateway_tx_packets", "Packets sent to another gateway.", &Traffic::tx_packets}};

api::ConnectionStatus status_of(ConnectionState state) {
  switch (state) {
    case ConnectionState::connecting:
      return api::ConnectionStatus::connecting;
    case ConnectionState::connected:
      return api::ConnectionStatus::connected;
    case ConnectionState::error:
      return api::ConnectionStatus::error;
  }
  return api::ConnectionStatus::none;
}

api::LatencyRtt latency_of(const LatencyStats& stats) {
  return {.last = stats.last, .min = stats.min, .average = stats.average, .max = stats.max, .std_dev = stats.deviation};
}

ConnectionInputs connection_inputs(const StatusInputs& in, const crypto::GatewayId& id, const PeerKeys& peer) {
  ConnectionInputs result{.peer = id.cluster + "/" + id.gateway, .path = peer.path};
  if (const auto sas = in.sas->peers.find(id); sas != in.sas->peers.end()) result.sas = sas->second;
  const auto target = in.health_targets.find(id);
  if (target == in.health_targets.end()) return result;
  result.health_check = true;
  result.health_check_address = target->second.to_string();
  if (const auto* monitor = in.pinger == nullptr ? nullptr : in.pinger->monitor(id)) {
    result.health = monitor->health();
    result.consecutive_losses = monitor->consecutive_losses();
    result.latency = monitor->latency();
  }
  return result;
}

api::Connection connection(const StatusInputs& in, const crypto::GatewayId& id, const PeerKeys& peer) {
  const Connection found = connection_of(connection_inputs(in, id, peer));
  api::Connection result{.status = status_of(found.state), .status_message = found.message};
  if (const auto* spec = in.membership->endpoint_of(id)) result.endpoint = api::public_view(*spec);
  if (peer.path) {
    result.using_ip = peer.path->remote.to_string();
    result.using_nat = peer.path->encap.has_value();
  }
  if (found.latency) result.latency_rtt = latency_of(*found.latency);
  return result;
}

}  // namespace

api::Gateway gateway_object(const StatusInputs& in) {
  api::Gateway gateway;
  gateway.metadata.name = in.options->node;
  gateway.metadata.ns = in.options->ns;
  gateway.status.version = version();
  // Every gateway carries traffic: there is no passive one.
  gateway.status.ha_status = api::HaStatus::active;
  gateway.status.local_endpoint = api::public_view(in.local);
  gateway.status.status_failure = in.failure;
  gateway.status.keys = in.keys;
  for (const auto& [name, failure] :
       {std::pair(kBrokerFailureAnnotation, &in.broker_failure), std::pair(kPskFailureAnnotation, &in.psk_failure),
        std::pair(kEncapFailureAnnotation, &in.encap_failure)}) {
    if (!failure->empty()) gateway.metadata.annotations[std::string(name)] = *failure;
  }
  for (const auto& [id, peer] : in.peers)
    gateway.status.connections.push_back(connection(in, id, peer));
  return gateway;
}

api::Gateway without_figures(api::Gateway gateway) {
  for (auto& connection : gateway.status.connections)
    connection.latency_rtt.reset();
  if (gateway.status.keys) {
    for (auto& rejected : gateway.status.keys->rejected)
      rejected.count = 0;
  }
  return gateway;
}

void set_metrics(telemetry::Registry& metrics, const Options& options, const api::Gateway& gateway,
                 const TrafficMeter& traffic, std::set<telemetry::Labels>& shown) {
  constexpr std::array kStatuses{api::ConnectionStatus::connecting, api::ConnectionStatus::connected,
                                 api::ConnectionStatus::error};
  constexpr std::array<std::string_view, 3> kNames{"connecting", "connected", "error"};
  std::set<telemetry::Labels> now;
  for (const auto& connection : gateway.status.connections) {
    telemetry::Labels labels{{"cable_driver", std::string(names::kXfrmBackend)},
                             {"local_cluster", options.cluster_id},
                             {"local_hostname", options.node},
                             {"local_endpoint_ip", gateway.status.local_endpoint.private_ip},
                             {"remote_cluster", connection.endpoint.cluster_id},
                             {"remote_hostname", connection.endpoint.hostname},
                             {"remote_endpoint_ip", connection.using_ip}};
    now.insert(labels);
    if (connection.latency_rtt) {
      metrics.gauge(kLatencyMetric, "Last round trip through the tunnel.", labels)
          .set(std::chrono::duration<double>(connection.latency_rtt->last).count());
    }
    const auto carried = traffic.of({connection.endpoint.cluster_id, connection.endpoint.hostname});
    for (const auto& metric : kTrafficMetrics)
      metrics.gauge(metric.name, metric.help, labels).set(static_cast<double>(carried.*metric.value));
    for (std::size_t i = 0; i < kStatuses.size(); ++i) {
      labels["status"] = kNames.at(i);
      metrics.gauge(kConnectionsMetric, "Connections to other gateways by status.", labels)
          .set(connection.status == kStatuses.at(i) ? 1 : 0);
    }
  }
  for (telemetry::Labels labels : shown) {
    if (now.contains(labels)) continue;
    metrics.remove(kLatencyMetric, labels);
    for (const auto& metric : kTrafficMetrics)
      metrics.remove(metric.name, labels);
    for (const auto status : kNames) {
      labels["status"] = status;
      metrics.remove(kConnectionsMetric, labels);
    }
  }
  shown = std::move(now);
}

}  // namespace fabric::gateway
