#pragma once

#include <fabric/api/fabric.hpp>
#include <fabric/api/identity.hpp>
#include <fabric/base/error.hpp>
#include <fabric/net/cidr.hpp>
#include <fabric/net/ip_address.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Everything that follows from a FabricSpec alone. Pure.
namespace fabric::api {

/// What the operator does for this Fabric.
struct Roles {
  bool broker = false;
  bool join = false;
  bool cloud_prepare = false;
  bool operator==(const Roles&) const = default;
};

/// `action` when it is set, otherwise the blocks that are present. A cloudPrepareConfig counts whenever it is present.
Roles chosen_roles(const FabricSpec& spec);
/// "broker", "join", "all" or "" for FabricStatus::action.
std::string_view describe(const Roles& roles);

/// brokerConfig with its defaults.
struct BrokerSettings {
  std::optional<std::string> public_api_server_url;
  bool connectivity = true;
  bool service_discovery = true;
  bool globalnet = false;
  net::Cidr globalnet_range;                 ///< 242.0.0.0/8 by default.
  std::uint64_t globalnet_cluster_size = 0;  ///< A power of two; 65336 (an old typing error) becomes 65536.
  std::vector<std::string> custom_domains;
  std::optional<std::uint32_t> psk_number;  ///< Absent: whichever is current.
};

struct HealthCheckSettings {
  bool enabled = true;
  std::chrono::seconds interval{1};
  std::uint32_t max_packet_loss = 5;
};

/// joinConfig with its defaults, parsed.
struct JoinSettings {
  ClusterId cluster_id;
  std::string broker_info_name;
  std::string broker_info_namespace;
  std::vector<net::Cidr> cluster_cidrs;                             ///< Empty: discover.
  std::vector<net::Cidr> service_cidrs;                             ///< Empty: discover.
  std::optional<std::string> repository;                            ///< Absent: the operator's own image.
  std::optional<std::string> image_version;                         ///< Absent: the operator's own image.
  std::map<std::string, std::string, std::less<>> image_overrides;  ///< Component -> image.
  std::uint16_t natt_port = 4500;
  bool nat_traversal = true;
  bool force_udp_encaps = false;
  bool preferred_server = false;
  bool label_gateway = true;
  bool debug = false;        ///< submarinerDebug: log level debug of all our programs.
  bool ipsec_debug = false;  ///< ipsecDebug: log level debug of the gateway agent.
  std::string cable_driver;  ///< "xfrm" when absent, empty or "libreswan".
  HealthCheckSettings health_check;
  std::chrono::seconds rekey_interval{3600};
  std::optional<std::uint64_t> rekey_packets;  ///< Absent: the gateway's own default.
  std::optional<std::uint64_t> rekey_bytes;    ///< Absent: no limit.
  std::vector<std::string> cipher_suites;      ///< Most wanted first; empty: the gateway's own order.
  std::map<NodeName, net::IpAddress> node_elastic_ips;
};

/// All defaults are applied here and nowhere else. Errc::invalid carries the first error that validate() reports.
Result<BrokerSettings> effective(const BrokerConfig& config);
Result<JoinSettings> effective(const JoinConfig& config);

enum class Severity : std::uint8_t { warning, error };

/// One remark about a field, for a condition or the CLI. A warning says what is done instead; an error stops the
/// reconcile.
struct FieldError {
  std::string path;     ///< "spec.joinConfig.nattPort".
  std::string value;    ///< As written; empty when absent.
  std::string message;  ///< What is wrong.
  std::string remedy;   ///< What to do.
  Severity severity = Severity::error;

  /// "spec.joinConfig.nattPort 70000: is not a port; use 1..65535".
  std::string to_string() const;
  bool operator==(const FieldError&) const = default;
};

/// Everything that is wrong with a Fabric, errors and warnings, in the order of the fields. The CRD refuses most of it
/// already; an API server before 1.31 or an object from before an upgrade may carry it anyway.
std::vector<FieldError> validate(const Fabric& fabric);
bool has_errors(std::span<const FieldError> findings);
/// "Fabric ns/name: first finding (and 2 more)" of the errors; empty without any.
std::string summarize(const Fabric& fabric, std::span<const FieldError> findings);

/// A field that asks for something no code does yet.
struct UnservedField {
  std::string path;
  std::string value;
  std::string effect;  ///< What happens instead.
  bool operator==(const UnservedField&) const = default;
};

/// Fields set to something that is not done yet, for an honest condition. The table in fabric_rules_unserved.cpp
/// shrinks as features arrive.
std::vector<UnservedField> unserved_fields(const FabricSpec& spec);

}  // namespace fabric::api
