#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/net/cidr.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// submariner.io/v1, field for field as Submariner's tools read it. Everything here may have been written by somebody
/// else: agents trust only the signed records in backend_config and use the readable fields for people.
namespace fabric::api {

struct ClusterSpec {
  std::string cluster_id;
  std::vector<std::string> color_codes{"blue"};  ///< Unused there, but required.
  std::vector<std::string> service_cidr;
  std::vector<std::string> cluster_cidr;
  std::vector<std::string> global_cidr;
  bool operator==(const ClusterSpec&) const = default;
};

struct Cluster {
  static constexpr Gvk kGvk{"submariner.io", "v1", "Cluster", "clusters", true};
  ObjectMeta metadata;  ///< name = cluster id.
  ClusterSpec spec;
  bool operator==(const Cluster&) const = default;
};

/// Service prefixes, then pod prefixes, of a Cluster; Errc::invalid names the field and the value.
Result<std::vector<net::Cidr>> prefixes(const ClusterSpec& spec);

struct EndpointSpec {
  std::string cluster_id;
  std::string cable_name;
  std::string health_check_ip;  ///< Empty means no health check.
  std::string hostname;
  std::vector<std::string> subnets;
  std::string private_ip;
  std::string public_ip;
  bool nat_enabled = false;
  std::string backend;
  StringMap backend_config;  ///< Keys: names::kKeysConfig, names::kStateConfig and Submariner's.
  bool operator==(const EndpointSpec&) const = default;
};

struct Endpoint {
  static constexpr Gvk kGvk{"submariner.io", "v1", "Endpoint", "endpoints", true};
  ObjectMeta metadata;  ///< name = endpoint_name().
  EndpointSpec spec;
  bool operator==(const Endpoint&) const = default;
};

enum class ConnectionStatus : std::uint8_t { none, connecting, connected, error };
enum class HaStatus : std::uint8_t { passive, active };

/// Round trips of the health check, as Go duration text.
struct LatencyRtt {
  std::chrono::nanoseconds last{};
  std::chrono::nanoseconds min{};
  std::chrono::nanoseconds average{};
  std::chrono::nanoseconds max{};
  std::chrono::nanoseconds std_dev{};
  bool operator==(const LatencyRtt&) const = default;
};

struct Connection {
  ConnectionStatus status = ConnectionStatus::none;
  std::string status_message;
  EndpointSpec endpoint;  ///< Written without backend_config's records: see public_view().
  std::string using_ip;
  bool using_nat = false;
  std::optional<LatencyRtt> latency_rtt;
  bool operator==(const Connection&) const = default;
};

/// A generation of keys of a gateway.
struct KeyGeneration {
  std::string generation;  ///< Decimal.
  TimePoint drawn_at;
  std::string reason;  ///< "first", "age", "packets", ...
  std::vector<std::string> psk_ids;
  bool operator==(const KeyGeneration&) const = default;
};

/// Announcements that a gateway refused.
struct RejectedRecord {
  std::string endpoint;
  std::string reason;
  std::int64_t count = 0;
  bool operator==(const RejectedRecord&) const = default;
};

struct GatewayKeys {
  std::string instance;  ///< Of the agent's process, in hex.
  std::vector<KeyGeneration> generations;
  std::int64_t rekeys = 0;  ///< Generations that this process drew after the first one.
  std::vector<RejectedRecord> rejected;
  bool operator==(const GatewayKeys&) const = default;
};

struct GatewayStatus {
  std::string version;
  HaStatus ha_status = HaStatus::passive;
  EndpointSpec local_endpoint;
  std::string status_failure;
  std::vector<Connection> connections;
  std::optional<GatewayKeys> keys;  ///< Absent before the agent has any.
  bool operator==(const GatewayStatus&) const = default;
};

/// Has no status subresource: the status is written with the object.
struct Gateway {
  static constexpr Gvk kGvk{"submariner.io", "v1", "Gateway", "gateways", true};
  ObjectMeta metadata;  ///< name = node name.
  GatewayStatus status;
  bool operator==(const Gateway&) const = default;
};

struct RemoteEndpoint {
  ConnectionStatus status = ConnectionStatus::none;
  std::string status_message;
  std::optional<LatencyRtt> latency_rtt;
  EndpointSpec spec;
  bool operator==(const RemoteEndpoint&) const = default;
};

struct RouteAgentStatus {
  std::string version;
  std::string status_failure;
  std::vector<RemoteEndpoint> remote_endpoints;
  bool operator==(const RouteAgentStatus&) const = default;
};

/// Has no status subresource: the status is written with the object.
struct RouteAgent {
  static constexpr Gvk kGvk{"submariner.io", "v1", "RouteAgent", "routeagents", true};
  ObjectMeta metadata;  ///< name = node name.
  RouteAgentStatus status;
  bool operator==(const RouteAgent&) const = default;
};

/// The spec without key and state records, which only bloat a status.
EndpointSpec public_view(EndpointSpec spec);

}  // namespace fabric::api

namespace fabric::json {

template <>
struct EnumNames<api::ConnectionStatus> {
  static constexpr auto names = std::to_array<std::pair<api::ConnectionStatus, std::string_view>>(
      {{api::ConnectionStatus::none, "none"},
       {api::ConnectionStatus::connecting, "connecting"},
       {api::ConnectionStatus::connected, "connected"},
       {api::ConnectionStatus::error, "error"}});
  static constexpr auto fallback = api::ConnectionStatus::none;
};

template <>
struct EnumNames<api::HaStatus> {
  static constexpr auto names = std::to_array<std::pair<api::HaStatus, std::string_view>>(
      {{api::HaStatus::active, "active"}, {api::HaStatus::passive, "passive"}});
  static constexpr auto fallback = api::HaStatus::passive;
};

template <>
struct Schema<api::ClusterSpec> {
  static auto fields() {
    using T = api::ClusterSpec;
    return std::tuple{required("cluster_id", &T::cluster_id), always("color_codes", &T::color_codes),
                      always("service_cidr", &T::service_cidr), always("cluster_cidr", &T::cluster_cidr),
                      always("global_cidr", &T::global_cidr)};
  }
};

template <>
struct Schema<api::Cluster> {
  static auto fields() {
    using T = api::Cluster;
    return std::tuple{optional("metadata", &T::metadata), required("spec", &T::spec)};
  }
};

template <>
struct Schema<api::EndpointSpec> {
  static auto fields() {
    using T = api::EndpointSpec;
    return std::tuple{required("cluster_id", &T::cluster_id),
                      always("cable_name", &T::cable_name),
                      optional("healthCheckIP", &T::health_check_ip),
                      always("hostname", &T::hostname),
                      always("subnets", &T::subnets),
                      always("private_ip", &T::private_ip),
                      always("public_ip", &T::public_ip),
                      always("nat_enabled", &T::nat_enabled),
                      always("backend", &T::backend),
                      optional("backend_config", &T::backend_config)};
  }
};

template <>
struct Schema<api::Endpoint> {
  static auto fields() {
    using T = api::Endpoint;
    return std::tuple{optional("metadata", &T::metadata), required("spec", &T::spec)};
  }
};

template <>
struct Schema<api::LatencyRtt> {
  static auto fields() {
    using T = api::LatencyRtt;
    return std::tuple{optional("last", &T::last), optional("min", &T::min), optional("average", &T::average),
                      optional("max", &T::max), optional("stdDev", &T::std_dev)};
  }
};

template <>
struct Schema<api::Connection> {
  static auto fields() {
    using T = api::Connection;
    return std::tuple{always("status", &T::status),        always("statusMessage", &T::status_message),
                      required("endpoint", &T::endpoint),  optional("usingIP", &T::using_ip),
                      optional("usingNAT", &T::using_nat), optional("latencyRTT", &T::latency_rtt)};
  }
};

template <>
struct Schema<api::KeyGeneration> {
  static auto fields() {
    using T = api::KeyGeneration;
    return std::tuple{always("generation", &T::generation), always("drawnAt", &T::drawn_at),
                      always("reason", &T::reason), always("pskIDs", &T::psk_ids)};
  }
};

template <>
struct Schema<api::RejectedRecord> {
  static auto fields() {
    using T = api::RejectedRecord;
    return std::tuple{always("endpoint", &T::endpoint), always("reason", &T::reason), always("count", &T::count)};
  }
};

template <>
struct Schema<api::GatewayKeys> {
  static auto fields() {
    using T = api::GatewayKeys;
    return std::tuple{always("instance", &T::instance), always("generations", &T::generations),
                      always("rekeys", &T::rekeys), always("rejected", &T::rejected)};
  }
};

template <>
struct Schema<api::GatewayStatus> {
  static auto fields() {
    using T = api::GatewayStatus;
    return std::tuple{always("version", &T::version),
                      always("haStatus", &T::ha_status),
                      always("localEndpoint", &T::local_endpoint),
                      always("statusFailure", &T::status_failure),
                      always("connections", &T::connections),
                      optional("keys", &T::keys)};
  }
};

template <>
struct Schema<api::Gateway> {
  static auto fields() {
    using T = api::Gateway;
    return std::tuple{optional("metadata", &T::metadata), always("status", &T::status)};
  }
};

template <>
struct Schema<api::RemoteEndpoint> {
  static auto fields() {
    using T = api::RemoteEndpoint;
    return std::tuple{always("status", &T::status), always("statusMessage", &T::status_message),
                      optional("latencyRTT", &T::latency_rtt), required("spec", &T::spec)};
  }
};

template <>
struct Schema<api::RouteAgentStatus> {
  static auto fields() {
    using T = api::RouteAgentStatus;
    return std::tuple{always("version", &T::version), optional("statusFailure", &T::status_failure),
                      optional("remoteEndpoints", &T::remote_endpoints)};
  }
};

template <>
struct Schema<api::RouteAgent> {
  static auto fields() {
    using T = api::RouteAgent;
    return std::tuple{optional("metadata", &T::metadata), optional("status", &T::status)};
  }
};

extern template struct Codec<api::Cluster>;
extern template struct Codec<api::Endpoint>;
extern template struct Codec<api::Gateway>;
extern template struct Codec<api::RouteAgent>;

}  // namespace fabric::json
