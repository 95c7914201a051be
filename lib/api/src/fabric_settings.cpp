#include <fabric/api/fabric_rules.hpp>
#include <fabric/api/names.hpp>
#include <fabric/base/assert.hpp>
#include <fabric/json/time.hpp>

#include <algorithm>
#include <bit>

#include "limits.hpp"

namespace fabric::api {

namespace {

Result<> refuse_first_error(const Fabric& fabric) {
  for (const auto& finding : validate(fabric)) {
    if (finding.severity == Severity::error) return fail(Errc::invalid, "{}", finding.to_string());
  }
  return {};
}

// For texts that validate() has accepted.
template <class T>
T checked(Result<T> result) {
  FABRIC_ASSERT(result.has_value());
  return *std::move(result);
}

// For numbers that validate() has accepted.
template <class T>
std::optional<T> narrowed(const std::optional<std::int64_t>& number) {
  return number ? std::optional<T>(static_cast<T>(*number)) : std::nullopt;
}

std::vector<net::Cidr> cidrs(const std::optional<std::string>& list) {
  return checked(net::parse_cidr_list(list.value_or("")));
}

std::optional<std::string> not_empty(const std::optional<std::string>& text) {
  return text && !text->empty() ? text : std::nullopt;
}

HealthCheckSettings health_check(const JoinConfig& config) {
  return {.enabled = config.health_check_enable.value_or(true),
          .interval = std::chrono::seconds(config.health_check_interval.value_or(1)),
          .max_packet_loss = static_cast<std::uint32_t>(config.health_check_max_packet_loss_count.value_or(5))};
}

std::string cable_driver(const JoinConfig& config) {
  const std::string driver = config.cable_driver.value_or("");
  return driver.empty() || driver == "libreswan" ? std::string(names::kXfrmBackend) : driver;
}

std::chrono::seconds rekey_interval(const JoinConfig& config) {
  if (!config.rekey_interval) return JoinSettings{}.rekey_interval;
  return std::chrono::duration_cast<std::chrono::seconds>(checked(json::parse_duration(*config.rekey_interval)));
}

}  // namespace

Result<BrokerSettings> effective(const BrokerConfig& config) {
  Fabric fabric;
  fabric.spec.broker_config = config;
  FABRIC_CHECK(refuse_first_error(fabric));
  const auto size = config.default_globalnet_cluster_size.value_or(limits::kGlobalnetClusterSize);
  return BrokerSettings{
      .public_api_server_url = not_empty(config.public_api_server_url),
      .connectivity = config.connectivity_enabled.value_or(true),
      .service_discovery = config.service_discovery_enabled.value_or(true),
      .globalnet = config.globalnet_enable.value_or(false),
      .globalnet_range = checked(
          net::Cidr::parse(not_empty(config.globalnet_cidr_range).value_or(std::string(limits::kGlobalnetRange)))),
      .globalnet_cluster_size = std::bit_ceil(static_cast<std::uint64_t>(size)),
      .custom_domains = config.default_custom_domains,
      .psk_number = narrowed<std::uint32_t>(config.psk_number),
  };
}

Result<JoinSettings> effective(const JoinConfig& config) {
  Fabric fabric;
  fabric.spec.join_config = config;
  FABRIC_CHECK(refuse_first_error(fabric));
  const BrokerInfoReference reference = config.broker_info_config_map.value_or(BrokerInfoReference{});
  JoinSettings out{
      .cluster_id = checked(parse_cluster_id(config.cluster_id)),
      .broker_info_name = not_empty(reference.name).value_or(std::string(names::kBrokerInfo)),
      .broker_info_namespace = not_empty(reference.ns).value_or(std::string(names::kBrokerNamespace)),
      .cluster_cidrs = cidrs(config.cluster_cidr),
      .service_cidrs = cidrs(config.service_cidr),
      .repository = not_empty(config.repository),
      .image_version = not_empty(config.image_version),
      .image_overrides = {},
      .natt_port = static_cast<std::uint16_t>(config.natt_port.value_or(names::kNattPort)),
      .nat_traversal = config.nat_traversal.value_or(true),
      .force_udp_encaps = config.force_udp_encaps.value_or(false),
      .preferred_server = config.preferred_server.value_or(false),
      .label_gateway = config.label_gateway.value_or(true),
      .debug = config.submariner_debug.value_or(false),
      .ipsec_debug = config.ipsec_debug.value_or(false),
      .cable_driver = cable_driver(config),
      .health_check = health_check(config),
      .rekey_interval = rekey_interval(config),
      .rekey_packets = narrowed<std::uint64_t>(config.rekey_packets),
      .rekey_bytes = narrowed<std::uint64_t>(config.rekey_bytes),
      .cipher_suites = config.cipher_suites,
      .node_elastic_ips = {},
  };
  for (const auto& item : config.image_override_arr) {
    const auto equals = item.find('=');
    out.image_overrides.insert_or_assign(item.substr(0, equals), item.substr(equals + 1));
  }
  for (const auto& [node, address] : config.node_elastic_ips) {
    out.node_elastic_ips.emplace(NodeName(node), checked(net::IpAddress::parse(address)));
  }
  return out;
}

}  // namespace fabric::api
