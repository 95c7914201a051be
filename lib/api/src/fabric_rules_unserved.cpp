#include <fabric/api/fabric_rules.hpp>

#include <array>

namespace fabric::api {

namespace {

using Asked = std::optional<std::string>;

struct Row {
  std::string_view path;
  std::string_view effect;
  Asked (*asked)(const FabricSpec&);  ///< The value that asks for it; nullopt when the field is absent or at rest.
};

std::string shown(bool value) {
  return value ? "true" : "false";
}

std::string shown(std::int64_t value) {
  return std::to_string(value);
}

std::string shown(const std::string& value) {
  return value;
}

// A field of an optional block, when its value differs from `rest`.
template <auto Block, auto Member, class V>
Asked differs(const FabricSpec& spec, const V& rest) {
  const auto& block = spec.*Block;
  if (!block) return std::nullopt;
  const auto& member = (*block).*Member;
  if (!member || *member == rest) return std::nullopt;
  return shown(*member);
}

template <auto Member, class V>
Asked broker(const FabricSpec& spec, const V& rest) {
  return differs<&FabricSpec::broker_config, Member>(spec, rest);
}

template <auto Member, class V>
Asked join(const FabricSpec& spec, const V& rest) {
  return differs<&FabricSpec::join_config, Member>(spec, rest);
}

Asked listed(const std::vector<std::string>& items) {
  if (items.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(items, ","));
}

constexpr std::string_view kNoGlobalnet = "overlapping prefixes are refused instead of being translated";
constexpr std::string_view kNoDiscovery = "names of other clusters' services are not resolved; use their addresses";
constexpr std::string_view kNoCloud = "open UDP 4500 and protocol 50 between gateways and label gateway nodes by hand";

// One row per promise that is not kept yet: remove the row together with the change that keeps it.
constexpr std::array kRows{
    Row{"spec.brokerConfig.connectivityEnabled", "connectivity is always set up",
        [](const FabricSpec& s) { return broker<&BrokerConfig::connectivity_enabled>(s, true); }},
    Row{"spec.brokerConfig.serviceDiscoveryEnabled", kNoDiscovery,
        [](const FabricSpec& s) { return broker<&BrokerConfig::service_discovery_enabled>(s, false); }},
    Row{"spec.brokerConfig.globalnetEnable", kNoGlobalnet,
        [](const FabricSpec& s) { return broker<&BrokerConfig::globalnet_enable>(s, false); }},
    Row{"spec.brokerConfig.defaultCustomDomains", kNoDiscovery,
        [](const FabricSpec& s) {
          return s.broker_config ? listed(s.broker_config->default_custom_domains) : Asked();
        }},
    Row{"spec.joinConfig.globalnetCIDR", kNoGlobalnet,
        [](const FabricSpec& s) { return join<&JoinConfig::globalnet_cidr>(s, std::string()); }},
    Row{"spec.joinConfig.globalnetClusterSize", kNoGlobalnet,
        [](const FabricSpec& s) { return join<&JoinConfig::globalnet_cluster_size>(s, std::int64_t{0}); }},
    Row{"spec.joinConfig.ikePort", "there is no IKE daemon, so the port is not used",
        [](const FabricSpec& s) { return join<&JoinConfig::ike_port>(s, std::int64_t{500}); }},
    Row{"spec.joinConfig.preferredServer", "either side may open a connection",
        [](const FabricSpec& s) { return join<&JoinConfig::preferred_server>(s, false); }},
    Row{"spec.joinConfig.forceUDPEncaps", "whether ESP is encapsulated in UDP is decided by the path",
        [](const FabricSpec& s) { return join<&JoinConfig::force_udp_encaps>(s, false); }},
    Row{"spec.joinConfig.natTraversal", "whether ESP is encapsulated in UDP is decided by the path",
        [](const FabricSpec& s) { return join<&JoinConfig::nat_traversal>(s, true); }},
    Row{"spec.joinConfig.loadBalancerEnabled", "no load balancer is made in front of the gateways",
        [](const FabricSpec& s) { return join<&JoinConfig::load_balancer_enabled>(s, false); }},
    Row{"spec.joinConfig.cableDriver", "the kernel's ESP (xfrm) is used instead",
        [](const FabricSpec& s) -> Asked {
          const auto driver = join<&JoinConfig::cable_driver>(s, std::string());
          return driver && (*driver == "xfrm" || *driver == "libreswan") ? Asked() : driver;
        }},
    Row{"spec.joinConfig.customDomains", kNoDiscovery,
        [](const FabricSpec& s) { return s.join_config ? listed(s.join_config->custom_domains) : Asked(); }},
    Row{"spec.joinConfig.corednsCustomConfigMap", kNoDiscovery,
        [](const FabricSpec& s) { return join<&JoinConfig::coredns_custom_config_map>(s, std::string()); }},
    Row{"spec.cloudPrepareConfig", kNoCloud,
        [](const FabricSpec& s) { return s.cloud_prepare_config ? Asked("") : std::nullopt; }},
};

}  // namespace

std::vector<UnservedField> unserved_fields(const FabricSpec& spec) {
  std::vector<UnservedField> out;
  for (const auto& row : kRows) {
    if (auto value = row.asked(spec))
      out.push_back({std::string(row.path), *std::move(value), std::string(row.effect)});
  }
  return out;
}

}  // namespace fabric::api
