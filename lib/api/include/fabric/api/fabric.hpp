#pragma once

#include <fabric/api/condition.hpp>
#include <fabric/api/meta.hpp>
#include <fabric/api/submariner.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// operator.tkestack.io/v1alpha1 Fabric, as the user writes it: an absent field is an absent optional. Defaults, checks
/// and typed settings are in fabric_rules.hpp.
namespace fabric::api {

/// What this cluster is to do. Absent in most manifests: then the blocks that are present decide, see chosen_roles().
enum class Action : std::uint8_t { broker, join, all };

struct BrokerConfig {
  std::optional<std::string> public_api_server_url;
  std::optional<bool> connectivity_enabled;
  std::optional<bool> service_discovery_enabled;
  std::optional<bool> globalnet_enable;  ///< Spelled so in the API, unlike joinConfig.globalnetEnabled.
  std::optional<std::string> globalnet_cidr_range;
  std::optional<std::int64_t> default_globalnet_cluster_size;
  std::vector<std::string> default_custom_domains;
  std::optional<std::int64_t> psk_number;  ///< Of the PSK that shall be current; absent: whichever is.
  bool operator==(const BrokerConfig&) const = default;
};

/// Which ConfigMap holds the broker-info; defaults are names::kBrokerInfo in names::kBrokerNamespace.
struct BrokerInfoReference {
  std::optional<std::string> name;
  std::optional<std::string> ns;  ///< "namespace" in JSON.
  bool operator==(const BrokerInfoReference&) const = default;
};

struct JoinConfig {
  std::string cluster_id;
  std::optional<BrokerInfoReference> broker_info_config_map;
  std::optional<std::string> cluster_cidr;  ///< Comma separated; absent or empty: discovered.
  std::optional<std::string> service_cidr;  ///< Comma separated; absent or empty: discovered.
  std::optional<std::string> globalnet_cidr;
  std::optional<std::string> repository;
  std::optional<std::string> image_version;
  std::vector<std::string> image_override_arr;  ///< "component=image".
  std::optional<std::int64_t> natt_port;
  std::optional<std::int64_t> ike_port;
  std::optional<bool> preferred_server;
  std::optional<bool> force_udp_encaps;
  std::optional<bool> nat_traversal;
  std::optional<bool> globalnet_enabled;
  std::optional<std::int64_t> globalnet_cluster_size;
  std::optional<bool> ipsec_debug;
  std::optional<bool> submariner_debug;
  std::optional<bool> label_gateway;
  std::optional<bool> load_balancer_enabled;
  std::optional<std::string> cable_driver;
  std::vector<std::string> custom_domains;
  std::optional<std::string> coredns_custom_config_map;  ///< "[namespace/]name".
  std::optional<bool> health_check_enable;
  std::optional<std::int64_t> health_check_interval;  ///< Seconds.
  std::optional<std::int64_t> health_check_max_packet_loss_count;
  std::optional<std::string> rekey_interval;  ///< Go duration.
  std::optional<std::int64_t> rekey_packets;
  std::optional<std::int64_t> rekey_bytes;
  std::vector<std::string> cipher_suites;  ///< Most wanted first; empty: all.
  StringMap node_elastic_ips;              ///< Node name -> public IP address of that node.
  bool operator==(const JoinConfig&) const = default;
};

/// `credentialsSecret: name` and `credentialsSecret: {name: name}` are both accepted.
struct SecretReference {
  std::string name;
  bool operator==(const SecretReference&) const = default;
};

struct AwsConfig {
  std::optional<std::string> gateway_instance;
  std::optional<std::int64_t> gateways;
  bool operator==(const AwsConfig&) const = default;
};

struct CloudPrepareConfig {
  std::optional<SecretReference> credentials_secret;
  std::optional<std::string> infra_id;
  std::optional<std::string> region;
  std::optional<AwsConfig> aws;
  std::optional<json::Value> gcp;    ///< Kept as written.
  std::optional<json::Value> azure;  ///< Kept as written.
  bool operator==(const CloudPrepareConfig&) const = default;
};

struct FabricSpec {
  std::optional<Action> action;
  std::optional<BrokerConfig> broker_config;
  std::optional<JoinConfig> join_config;
  std::optional<CloudPrepareConfig> cloud_prepare_config;
  bool operator==(const FabricSpec&) const = default;
};

enum class FabricPhase : std::uint8_t { pending, running, failed, deleting };

/// A prefix of this cluster and where it was learnt: "spec.joinConfig.clusterCIDR", "ServiceCIDR kubernetes", ...
struct SourcedCidr {
  std::string cidr;
  std::string source;
  bool operator==(const SourcedCidr&) const = default;
};

struct GatewaySummary {
  std::string node;
  HaStatus ha_status = HaStatus::passive;
  bool operator==(const GatewaySummary&) const = default;
};

struct ConnectionSummary {
  std::string cluster;
  std::string gateway;  ///< Name of the remote gateway's node.
  ConnectionStatus status = ConnectionStatus::none;
  std::string using_ip;
  std::string rtt;  ///< Average, Go duration text.
  std::string message;
  bool operator==(const ConnectionSummary&) const = default;
};

enum class PskPhase : std::uint8_t {
  done,      ///< One PSK is valid.
  rotating,  ///< The newest and the one before it are.
};

/// At the broker: how far the PSK that spec.brokerConfig.pskNumber asks for has got.
struct PskRotationStatus {
  std::int64_t number = 1;  ///< Of the newest PSK.
  PskPhase phase = PskPhase::done;
  std::optional<TimePoint> started_at;   ///< While rotating: when the newest PSK was drawn.
  std::int64_t members_ready = 0;        ///< Clusters that would stay connected without the previous PSK.
  std::int64_t members_total = 0;        ///< All that have joined.
  std::vector<std::string> waiting_for;  ///< Cluster ids. Those without a live gateway are not waited for.
  bool operator==(const PskRotationStatus&) const = default;
};

struct FabricStatus {
  std::optional<FabricPhase> phase;
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::string action;  ///< What is done: "broker", "join" or "all".
  std::string cluster_id;
  std::vector<SourcedCidr> cluster_cidrs;
  std::vector<SourcedCidr> service_cidrs;
  std::string network_plugin;
  std::string broker_url;
  std::vector<std::string> psk_ids;  ///< Public identifiers of the PSKs in use, never key material.
  std::optional<PskRotationStatus> psk_rotation;
  std::vector<std::string> joined_clusters;  ///< At the broker: ids of the members.
  std::vector<GatewaySummary> gateways;
  std::vector<ConnectionSummary> connections;
  std::string connection_summary;  ///< "connected/all", such as "1/1".
  bool operator==(const FabricStatus&) const = default;
};

struct Fabric {
  static constexpr Gvk kGvk{"operator.tkestack.io", "v1alpha1", "Fabric", "fabrics", true};
  ObjectMeta metadata;
  FabricSpec spec;
  FabricStatus status;
  bool operator==(const Fabric&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct EnumNames<api::Action> {
  static constexpr auto names = std::to_array<std::pair<api::Action, std::string_view>>(
      {{api::Action::broker, "broker"}, {api::Action::join, "join"}, {api::Action::all, "all"}});
};

template <>
struct EnumNames<api::FabricPhase> {
  static constexpr auto names =
      std::to_array<std::pair<api::FabricPhase, std::string_view>>({{api::FabricPhase::pending, "Pending"},
                                                                    {api::FabricPhase::running, "Running"},
                                                                    {api::FabricPhase::failed, "Failed"},
                                                                    {api::FabricPhase::deleting, "Deleting"}});
  static constexpr auto fallback = api::FabricPhase::pending;
};

template <>
struct EnumNames<api::PskPhase> {
  static constexpr auto names = std::to_array<std::pair<api::PskPhase, std::string_view>>(
      {{api::PskPhase::done, "Done"}, {api::PskPhase::rotating, "Rotating"}});
  static constexpr auto fallback = api::PskPhase::rotating;
};

template <>
struct Codec<api::SecretReference> {
  static Result<api::SecretReference> read(const Value& value, const Path& path);
  static Value write(const api::SecretReference& reference);
};

template <>
struct Schema<api::BrokerConfig> {
  static auto fields() {
    using T = api::BrokerConfig;
    return std::tuple{optional("publicAPIServerURL", &T::public_api_server_url),
                      optional("connectivityEnabled", &T::connectivity_enabled),
                      optional("serviceDiscoveryEnabled", &T::service_discovery_enabled),
                      optional("globalnetEnable", &T::globalnet_enable),
                      optional("globalnetCIDRRange", &T::globalnet_cidr_range),
                      optional("defaultGlobalnetClusterSize", &T::default_globalnet_cluster_size),
                      optional("defaultCustomDomains", &T::default_custom_domains),
                      optional("pskNumber", &T::psk_number)};
  }
};

template <>
struct Schema<api::BrokerInfoReference> {
  static auto fields() {
    using T = api::BrokerInfoReference;
    return std::tuple{optional("name", &T::name), optional("namespace", &T::ns)};
  }
};

template <>
struct Schema<api::JoinConfig> {
  static auto fields() {
    using T = api::JoinConfig;
    return std::tuple{required("clusterID", &T::cluster_id),
                      optional("brokerInfoConfigMap", &T::broker_info_config_map),
                      optional("clusterCIDR", &T::cluster_cidr),
                      optional("serviceCIDR", &T::service_cidr),
                      optional("globalnetCIDR", &T::globalnet_cidr),
                      optional("repository", &T::repository),
                      optional("imageVersion", &T::image_version),
                      optional("imageOverrideArr", &T::image_override_arr),
                      optional("nattPort", &T::natt_port),
                      optional("ikePort", &T::ike_port),
                      optional("preferredServer", &T::preferred_server),
                      optional("forceUDPEncaps", &T::force_udp_encaps),
                      optional("natTraversal", &T::nat_traversal),
                      optional("globalnetEnabled", &T::globalnet_enabled),
                      optional("globalnetClusterSize", &T::globalnet_cluster_size),
                      optional("ipsecDebug", &T::ipsec_debug),
                      optional("submarinerDebug", &T::submariner_debug),
                      optional("labelGateway", &T::label_gateway),
                      optional("loadBalancerEnabled", &T::load_balancer_enabled),
                      optional("cableDriver", &T::cable_driver),
                      optional("customDomains", &T::custom_domains),
                      optional("corednsCustomConfigMap", &T::coredns_custom_config_map),
                      optional("healthCheckEnable", &T::health_check_enable),
                      optional("healthCheckInterval", &T::health_check_interval),
                      optional("healthCheckMaxPacketLossCount", &T::health_check_max_packet_loss_count),
                      optional("rekeyInterval", &T::rekey_interval),
                      optional("rekeyPackets", &T::rekey_packets),
                      optional("rekeyBytes", &T::rekey_bytes),
                      optional("cipherSuites", &T::cipher_suites),
                      optional("nodeElasticIPs", &T::node_elastic_ips)};
  }
};

template <>
struct Schema<api::AwsConfig> {
  static auto fields() {
    using T = api::AwsConfig;
    return std::tuple{optional("gatewayInstance", &T::gateway_instance), optional("gateways", &T::gateways)};
  }
};

template <>
struct Schema<api::CloudPrepareConfig> {
  static auto fields() {
    using T = api::CloudPrepareConfig;
    return std::tuple{optional("credentialsSecret", &T::credentials_secret),
                      optional("infraID", &T::infra_id),
                      optional("region", &T::region),
                      optional("aws", &T::aws),
                      optional("gcp", &T::gcp),
                      optional("azure", &T::azure)};
  }
};

template <>
struct Schema<api::FabricSpec> {
  static auto fields() {
    using T = api::FabricSpec;
    return std::tuple{optional("action", &T::action), optional("brokerConfig", &T::broker_config),
                      optional("joinConfig", &T::join_config),
                      optional("cloudPrepareConfig", &T::cloud_prepare_config)};
  }
};

template <>
struct Schema<api::SourcedCidr> {
  static auto fields() {
    using T = api::SourcedCidr;
    return std::tuple{required("cidr", &T::cidr), always("source", &T::source)};
  }
};

template <>
struct Schema<api::GatewaySummary> {
  static auto fields() {
    using T = api::GatewaySummary;
    return std::tuple{required("node", &T::node), always("haStatus", &T::ha_status)};
  }
};

template <>
struct Schema<api::ConnectionSummary> {
  static auto fields() {
    using T = api::ConnectionSummary;
    return std::tuple{required("cluster", &T::cluster), always("gateway", &T::gateway),
                      always("status", &T::status),     optional("usingIP", &T::using_ip),
                      optional("rtt", &T::rtt),         optional("message", &T::message)};
  }
};

template <>
struct Schema<api::PskRotationStatus> {
  static auto fields() {
    using T = api::PskRotationStatus;
    return std::tuple{always("number", &T::number),
                      always("phase", &T::phase),
                      optional("startedAt", &T::started_at),
                      always("membersReady", &T::members_ready),
                      always("membersTotal", &T::members_total),
                      optional("waitingFor", &T::waiting_for)};
  }
};

template <>
struct Schema<api::FabricStatus> {
  static auto fields() {
    using T = api::FabricStatus;
    return std::tuple{optional("phase", &T::phase),
                      optional("observedGeneration", &T::observed_generation),
                      optional("conditions", &T::conditions),
                      optional("action", &T::action),
                      optional("clusterID", &T::cluster_id),
                      optional("clusterCIDRs", &T::cluster_cidrs),
                      optional("serviceCIDRs", &T::service_cidrs),
                      optional("networkPlugin", &T::network_plugin),
                      optional("brokerURL", &T::broker_url),
                      optional("pskIDs", &T::psk_ids),
                      optional("pskRotation", &T::psk_rotation),
                      optional("joinedClusters", &T::joined_clusters),
                      optional("gateways", &T::gateways),
                      optional("connections", &T::connections),
                      optional("connectionSummary", &T::connection_summary)};
  }
};

template <>
struct Schema<api::Fabric> {
  static auto fields() {
    using T = api::Fabric;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec), optional("status", &T::status)};
  }
};

extern template struct Codec<api::Fabric>;

}  // namespace fabric::json
