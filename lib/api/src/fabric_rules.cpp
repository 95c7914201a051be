#include <fabric/api/fabric_rules.hpp>
#include <fabric/json/time.hpp>

#include <algorithm>
#include <array>
#include <bit>

#include "limits.hpp"

namespace fabric::api {

namespace {

// Collects findings below one path.
class Findings {
 public:
  explicit Findings(std::vector<FieldError>& out) : out_(out) {}

  void error(std::string path, std::string value, std::string message, std::string remedy) {
    add(Severity::error, std::move(path), std::move(value), std::move(message), std::move(remedy));
  }

  void warning(std::string path, std::string value, std::string message, std::string remedy) {
    add(Severity::warning, std::move(path), std::move(value), std::move(message), std::move(remedy));
  }

  void number(std::string path, const std::optional<std::int64_t>& value, std::int64_t min, std::int64_t max) {
    if (!value || (*value >= min && *value <= max)) return;
    error(std::move(path), std::to_string(*value), "is out of range", fmt::format("use {}..{}", min, max));
  }

  /// Parses a comma-separated list; empty when absent or wrong.
  std::vector<net::Cidr> cidr_list(std::string path, const std::optional<std::string>& value) {
    auto parsed = net::parse_cidr_list(value.value_or(""));
    if (parsed) return *std::move(parsed);
    error(
        std::move(path), *value, parsed.error().message(),
        "write prefixes without host bits, separated by commas, such as 10.244.0.0/16,fd00:244::/56; or leave it out, "
        "and it is discovered");
    return {};
  }

 private:
  void add(Severity severity, std::string path, std::string value, std::string message, std::string remedy) {
    out_.push_back({std::move(path), std::move(value), std::move(message), std::move(remedy), severity});
  }

  std::vector<FieldError>& out_;
};

void check_blocks(const FabricSpec& spec, Findings& findings) {
  if (!spec.broker_config && !spec.join_config && !spec.cloud_prepare_config) {
    findings.error("spec", "", "asks for nothing",
                   "add brokerConfig to be the broker, joinConfig to join one, or cloudPrepareConfig");
  }
  if (!spec.action) return;
  const std::string action(json::enum_name(*spec.action));
  const Roles roles = chosen_roles(spec);
  const auto compare = [&](bool wanted, bool present, std::string_view block) {
    if (wanted && !present) {
      findings.error("spec.action", action, fmt::format("needs spec.{}, which is absent", block),
                     fmt::format("add spec.{} or remove spec.action", block));
    } else if (!wanted && present) {
      findings.warning(fmt::format("spec.{}", block), "", fmt::format("is not used, since spec.action is {}", action),
                       "set spec.action to all or remove it");
    }
  };
  compare(roles.broker, spec.broker_config.has_value(), "brokerConfig");
  compare(roles.join, spec.join_config.has_value(), "joinConfig");
}

void check_globalnet(const BrokerConfig& config, Findings& findings) {
  const std::string text = config.globalnet_cidr_range.value_or("");
  const auto range = net::Cidr::parse(text.empty() ? limits::kGlobalnetRange : std::string_view(text));
  if (!range) {
    findings.error("spec.brokerConfig.globalnetCIDRRange", text, range.error().message(),
                   "write one IPv4 prefix such as 242.0.0.0/8");
  } else if (range->family() != net::Family::ipv4) {
    findings.error("spec.brokerConfig.globalnetCIDRRange", text, "is not IPv4",
                   "write one IPv4 prefix such as 242.0.0.0/8");
  }
  const std::string path = "spec.brokerConfig.defaultGlobalnetClusterSize";
  const auto size = config.default_globalnet_cluster_size.value_or(limits::kGlobalnetClusterSize);
  if (size < 1 || size > (std::int64_t{1} << 31)) {
    findings.error(path, std::to_string(size), "is out of range", "use a power of two from 2 to 2147483648");
    return;
  }
  const std::uint64_t rounded = std::bit_ceil(static_cast<std::uint64_t>(size));
  if (rounded != static_cast<std::uint64_t>(size)) {
    findings.warning(path, std::to_string(size), fmt::format("is no power of two and is rounded up to {}", rounded),
                     fmt::format("write {}", rounded));
  }
  if (!range || range->family() != net::Family::ipv4 || !config.globalnet_enable.value_or(false)) return;
  const std::uint64_t half = (std::uint64_t{1} << (32 - range->length())) / 2;
  if (rounded > half) {
    findings.error(
        path, std::to_string(size),
        fmt::format("is more than half of globalnetCIDRRange {} ({} addresses), so that no second cluster fits", *range,
                    half * 2),
        half < 2 ? std::string("widen globalnetCIDRRange")
                 : fmt::format("use at most {} or widen globalnetCIDRRange", half));
  }
}

void check_domains(const std::vector<std::string>& domains, const std::string& path, Findings& findings) {
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (is_dns_subdomain(domains[i])) continue;
    findings.error(fmt::format("{}[{}]", path, i), domains[i], "is no DNS name", "write it like clusterset.example");
  }
}

void check_broker(const BrokerConfig& config, Findings& findings) {
  const std::string url = config.public_api_server_url.value_or("");
  if (url.find_first_of(" \t\n@") != std::string::npos || url.starts_with("http://")) {
    findings.error("spec.brokerConfig.publicAPIServerURL", url, "is no https URL of an API server",
                   "write it like https://203.0.113.7:6443, without user name");
  }
  findings.number("spec.brokerConfig.pskNumber", config.psk_number, 1, limits::kMaxPskNumber);
  check_globalnet(config, findings);
  check_domains(config.default_custom_domains, "spec.brokerConfig.defaultCustomDomains", findings);
}

void check_prefixes(const JoinConfig& config, Findings& findings) {
  const auto cluster = findings.cidr_list("spec.joinConfig.clusterCIDR", config.cluster_cidr);
  const auto service = findings.cidr_list("spec.joinConfig.serviceCIDR", config.service_cidr);
  if (const auto overlap = net::first_overlap(cluster, service)) {
    findings.error("spec.joinConfig.serviceCIDR", *config.service_cidr,
                   fmt::format("{} overlaps {} of clusterCIDR", *overlap.right, *overlap.left),
                   "give pods and services prefixes of their own; leave both out to have them discovered");
  }
  const std::string global = config.globalnet_cidr.value_or("");
  if (const auto cidr = net::Cidr::parse(global); !global.empty() && !cidr) {
    findings.error("spec.joinConfig.globalnetCIDR", global, cidr.error().message(),
                   "write one IPv4 prefix such as 242.1.0.0/16, or leave it out, and it is allocated");
  }
}

void check_cable_driver(const JoinConfig& config, Findings& findings) {
  constexpr std::array<std::string_view, 6> kKnown{"", "xfrm", "libreswan", "vxlan", "wireguard", "native"};
  const std::string driver = config.cable_driver.value_or("");
  if (std::ranges::find(kKnown, driver) == kKnown.end()) {
    findings.error("spec.joinConfig.cableDriver", driver, "is no known cable driver",
                   "use xfrm or leave it out (libreswan is taken as xfrm)");
  }
}

void check_cipher_suites(const std::vector<std::string>& suites, Findings& findings) {
  for (std::size_t i = 0; i < suites.size(); ++i) {
    const std::string path = fmt::format("spec.joinConfig.cipherSuites[{}]", i);
    if (std::ranges::find(limits::kCipherSuites, suites[i]) == limits::kCipherSuites.end()) {
      findings.error(path, suites[i], "is no known cipher suite",
                     fmt::format("use {}, most wanted first", fmt::join(limits::kCipherSuites, " or ")));
    } else if (std::find(suites.begin(), suites.begin() + static_cast<std::ptrdiff_t>(i), suites[i]) !=
               suites.begin() + static_cast<std::ptrdiff_t>(i)) {
      findings.error(path, suites[i], "is named twice", "name each cipher suite once");
    }
  }
}

void check_rekey(const JoinConfig& config, Findings& findings) {
  findings.number("spec.joinConfig.rekeyPackets", config.rekey_packets, limits::kMinRekeyPackets,
                  limits::kMaxRekeyPackets);
  findings.number("spec.joinConfig.rekeyBytes", config.rekey_bytes, limits::kMinRekeyBytes, limits::kMaxRekeyBytes);
  check_cipher_suites(config.cipher_suites, findings);
  if (!config.rekey_interval) return;
  const auto interval = json::parse_duration(*config.rekey_interval);
  if (!interval || *interval < limits::kMinRekey || *interval > limits::kMaxRekey) {
    findings.error("spec.joinConfig.rekeyInterval", *config.rekey_interval,
                   interval ? "is out of range" : "is no duration",
                   fmt::format("use {}..{}, such as 1h", json::format_duration(limits::kMinRekey),
                               json::format_duration(limits::kMaxRekey)));
  }
}

void check_images(const JoinConfig& config, Findings& findings) {
  for (std::size_t i = 0; i < config.image_override_arr.size(); ++i) {
    const std::string& item = config.image_override_arr[i];
    const auto equals = item.find('=');
    if (equals != std::string::npos && equals > 0 && equals + 1 < item.size()) continue;
    findings.error(fmt::format("spec.joinConfig.imageOverrideArr[{}]", i), item, "names no component and image",
                   "write component=image, such as submariner-gateway=registry.example/fabric:v1");
  }
}

void check_elastic_ips(const JoinConfig& config, Findings& findings) {
  for (const auto& [node, address] : config.node_elastic_ips) {
    const std::string path = fmt::format("spec.joinConfig.nodeElasticIPs[\"{}\"]", node);
    if (!is_dns_subdomain(node)) {
      findings.error(path, address, "is for a name that no node can have", "use the name that kubectl get nodes shows");
    }
    if (const auto ip = net::IpAddress::parse(address); !ip || ip->is_unspecified() || ip->is_loopback()) {
      findings.error(path, address, "is no IP address of a node", "write one address such as 203.0.113.7");
    }
  }
}

void check_references(const JoinConfig& config, Findings& findings) {
  const auto name = [&](std::string path, const std::optional<std::string>& value, bool label) {
    if (!value || value->empty() || (label ? is_dns_label(*value) : is_dns_subdomain(*value))) return;
    findings.error(std::move(path), *value, "is no valid Kubernetes name", "use lower-case letters, digits and dashes");
  };
  if (config.broker_info_config_map) {
    name("spec.joinConfig.brokerInfoConfigMap.name", config.broker_info_config_map->name, false);
    name("spec.joinConfig.brokerInfoConfigMap.namespace", config.broker_info_config_map->ns, true);
  }
  const std::string coredns = config.coredns_custom_config_map.value_or("");
  const auto slash = coredns.find('/');
  const std::string path = "spec.joinConfig.corednsCustomConfigMap";
  if (slash != std::string::npos) name(path, coredns.substr(0, slash), true);
  name(path, slash == std::string::npos ? coredns : coredns.substr(slash + 1), false);
}

void check_join(const JoinConfig& config, Findings& findings) {
  if (const auto id = parse_cluster_id(config.cluster_id); !id) {
    findings.error("spec.joinConfig.clusterID", config.cluster_id, id.error().message(),
                   "use 1..63 lower-case letters, digits and inner dashes, unique among the joined clusters");
  }
  check_references(config, findings);
  check_prefixes(config, findings);
  check_images(config, findings);
  findings.number("spec.joinConfig.nattPort", config.natt_port, 1, limits::kMaxPort);
  findings.number("spec.joinConfig.ikePort", config.ike_port, 1, limits::kMaxPort);
  findings.number("spec.joinConfig.globalnetClusterSize", config.globalnet_cluster_size, 0, std::int64_t{1} << 31);
  check_cable_driver(config, findings);
  check_domains(config.custom_domains, "spec.joinConfig.customDomains", findings);
  findings.number("spec.joinConfig.healthCheckInterval", config.health_check_interval, 1,
                  limits::kMaxHealthCheckSeconds);
  findings.number("spec.joinConfig.healthCheckMaxPacketLossCount", config.health_check_max_packet_loss_count, 1,
                  limits::kMaxPacketLoss);
  check_rekey(config, findings);
  check_elastic_ips(config, findings);
}

void check_cloud(const CloudPrepareConfig& config, Findings& findings) {
  if (config.credentials_secret && !is_dns_subdomain(config.credentials_secret->name)) {
    findings.error("spec.cloudPrepareConfig.credentialsSecret", config.credentials_secret->name,
                   "is no name of a Secret", "name a Secret in the namespace of this Fabric");
  }
  if (config.aws) findings.number("spec.cloudPrepareConfig.aws.gateways", config.aws->gateways, 0, 100);
}

}  // namespace

Roles chosen_roles(const FabricSpec& spec) {
  Roles roles{.broker = spec.broker_config.has_value(),
              .join = spec.join_config.has_value(),
              .cloud_prepare = spec.cloud_prepare_config.has_value()};
  if (spec.action) {
    roles.broker = *spec.action != Action::join;
    roles.join = *spec.action != Action::broker;
  }
  return roles;
}

std::string_view describe(const Roles& roles) {
  if (roles.broker && roles.join) return "all";
  if (roles.broker) return "broker";
  return roles.join ? "join" : "";
}

std::string FieldError::to_string() const {
  return fmt::format("{}{}{}: {}; {}", path, value.empty() ? "" : " ", value, message, remedy);
}

std::vector<FieldError> validate(const Fabric& fabric) {
  std::vector<FieldError> out;
  Findings findings(out);
  check_blocks(fabric.spec, findings);
  if (fabric.spec.broker_config) check_broker(*fabric.spec.broker_config, findings);
  if (fabric.spec.join_config) check_join(*fabric.spec.join_config, findings);
  if (fabric.spec.cloud_prepare_config) check_cloud(*fabric.spec.cloud_prepare_config, findings);
  return out;
}

bool has_errors(std::span<const FieldError> findings) {
  return std::ranges::any_of(findings, [](const FieldError& f) { return f.severity == Severity::error; });
}

std::string summarize(const Fabric& fabric, std::span<const FieldError> findings) {
  const FieldError* first = nullptr;
  std::size_t errors = 0;
  for (const auto& finding : findings) {
    if (finding.severity != Severity::error) continue;
    if (errors++ == 0) first = &finding;
  }
  if (first == nullptr) return {};
  const std::string more = errors > 1 ? fmt::format(" (and {} more)", errors - 1) : "";
  return fmt::format("{}: {}{}", describe(fabric), first->to_string(), more);
}

}  // namespace fabric::api
