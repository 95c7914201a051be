#pragma once

#include <fabric/api/condition.hpp>
#include <fabric/api/meta.hpp>
#include <fabric/base/secret.hpp>
#include <fabric/net/cidr.hpp>
#include <fabric/net/ip_address.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// core/v1, the parts that we read or write. Addresses stay text here, since one odd object must not make a whole list
/// unreadable; the functions below give them as values.
namespace fabric::api {

struct Namespace {
  static constexpr Gvk kGvk{"", "v1", "Namespace", "namespaces", false};
  ObjectMeta metadata;
  bool operator==(const Namespace&) const = default;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  bool operator==(const Taint&) const = default;
};

struct NodeSpec {
  std::string pod_cidr;
  std::vector<std::string> pod_cidrs;
  std::string provider_id;
  bool unschedulable = false;
  std::vector<Taint> taints;
  bool operator==(const NodeSpec&) const = default;
};

struct NodeAddress {
  std::string type;  ///< InternalIP, ExternalIP, Hostname, ...
  std::string address;
  bool operator==(const NodeAddress&) const = default;
};

struct NodeInfo {
  std::string architecture;
  std::string kernel_version;
  std::string os_image;
  std::string kubelet_version;
  bool operator==(const NodeInfo&) const = default;
};

struct NodeStatus {
  std::vector<Condition> conditions;
  std::vector<NodeAddress> addresses;
  NodeInfo node_info;
  bool operator==(const NodeStatus&) const = default;
};

struct Node {
  static constexpr Gvk kGvk{"", "v1", "Node", "nodes", false};
  ObjectMeta metadata;
  NodeSpec spec;
  NodeStatus status;
  bool operator==(const Node&) const = default;
};

bool is_ready(const Node& node);
bool is_control_plane(const Node& node);
/// Has the label submariner.io/gateway=true.
bool is_gateway(const Node& node);
/// Addresses of this type ("InternalIP", "ExternalIP") in the node's order; unreadable ones are left out.
std::vector<net::IpAddress> addresses(const Node& node, std::string_view type);
/// podCIDRs, or podCIDR where a cluster has only that; unreadable ones are left out.
std::vector<net::Cidr> pod_cidrs(const Node& node);

struct EnvVar {
  std::string name;
  std::string value;
  bool operator==(const EnvVar&) const = default;
};

struct Container {
  std::string name;
  std::string image;
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::vector<EnvVar> env;
  bool operator==(const Container&) const = default;
};

struct PodSpec {
  std::string node_name;
  bool host_network = false;
  std::string service_account_name;
  StringMap node_selector;
  std::vector<Container> containers;
  std::vector<Container> init_containers;
  bool operator==(const PodSpec&) const = default;
};

struct PodIp {
  std::string ip;
  bool operator==(const PodIp&) const = default;
};

struct PodStatus {
  std::string phase;  ///< Pending, Running, Succeeded, Failed, Unknown.
  std::string pod_ip;
  std::vector<PodIp> pod_ips;
  std::string host_ip;
  std::vector<Condition> conditions;
  bool operator==(const PodStatus&) const = default;
};

struct Pod {
  static constexpr Gvk kGvk{"", "v1", "Pod", "pods", true};
  ObjectMeta metadata;
  PodSpec spec;
  PodStatus status;
  bool operator==(const Pod&) const = default;
};

struct ServicePort {
  std::string name;
  std::string protocol;
  std::int32_t port = 0;
  std::optional<json::IntOrString> target_port;
  std::optional<std::int32_t> node_port;
  bool operator==(const ServicePort&) const = default;
};

struct ServiceSpec {
  std::string type;
  StringMap selector;
  std::vector<ServicePort> ports;
  std::string cluster_ip;  ///< "None" for a headless service.
  std::vector<std::string> cluster_ips;
  bool operator==(const ServiceSpec&) const = default;
};

struct Service {
  static constexpr Gvk kGvk{"", "v1", "Service", "services", true};
  ObjectMeta metadata;
  ServiceSpec spec;
  bool operator==(const Service&) const = default;
};

struct ConfigMap {
  static constexpr Gvk kGvk{"", "v1", "ConfigMap", "configmaps", true};
  ObjectMeta metadata;
  StringMap data;
  bool operator==(const ConfigMap&) const = default;
};

/// Its contents are Secrets, so a SecretObject can be moved but neither copied nor logged.
struct SecretObject {
  static constexpr Gvk kGvk{"", "v1", "Secret", "secrets", true};
  ObjectMeta metadata;
  std::string type;
  std::map<std::string, Secret, std::less<>> data;

  SecretObject duplicate() const;
  /// The contents of one key; nullptr when absent.
  const Secret* find(std::string_view key) const;
};

struct ServiceAccount {
  static constexpr Gvk kGvk{"", "v1", "ServiceAccount", "serviceaccounts", true};
  ObjectMeta metadata;
  bool operator==(const ServiceAccount&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct Schema<api::Namespace> {
  static auto fields() { return std::tuple{optional("metadata", &api::Namespace::metadata)}; }
};

template <>
struct Schema<api::Taint> {
  static auto fields() {
    using T = api::Taint;
    return std::tuple{optional("key", &T::key), optional("value", &T::value), optional("effect", &T::effect)};
  }
};

template <>
struct Schema<api::NodeSpec> {
  static auto fields() {
    using T = api::NodeSpec;
    return std::tuple{optional("podCIDR", &T::pod_cidr), optional("podCIDRs", &T::pod_cidrs),
                      optional("providerID", &T::provider_id), optional("unschedulable", &T::unschedulable),
                      optional("taints", &T::taints)};
  }
};

template <>
struct Schema<api::NodeAddress> {
  static auto fields() {
    using T = api::NodeAddress;
    return std::tuple{required("type", &T::type), required("address", &T::address)};
  }
};

template <>
struct Schema<api::NodeInfo> {
  static auto fields() {
    using T = api::NodeInfo;
    return std::tuple{optional("architecture", &T::architecture), optional("kernelVersion", &T::kernel_version),
                      optional("osImage", &T::os_image), optional("kubeletVersion", &T::kubelet_version)};
  }
};

template <>
struct Schema<api::NodeStatus> {
  static auto fields() {
    using T = api::NodeStatus;
    return std::tuple{optional("conditions", &T::conditions), optional("addresses", &T::addresses),
                      optional("nodeInfo", &T::node_info)};
  }
};

template <>
struct Schema<api::Node> {
  static auto fields() {
    using T = api::Node;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec), optional("status", &T::status)};
  }
};

template <>
struct Schema<api::EnvVar> {
  static auto fields() {
    using T = api::EnvVar;
    return std::tuple{required("name", &T::name), optional("value", &T::value)};
  }
};

template <>
struct Schema<api::Container> {
  static auto fields() {
    using T = api::Container;
    return std::tuple{required("name", &T::name), optional("image", &T::image), optional("command", &T::command),
                      optional("args", &T::args), optional("env", &T::env)};
  }
};

template <>
struct Schema<api::PodSpec> {
  static auto fields() {
    using T = api::PodSpec;
    return std::tuple{optional("nodeName", &T::node_name),
                      optional("hostNetwork", &T::host_network),
                      optional("serviceAccountName", &T::service_account_name),
                      optional("nodeSelector", &T::node_selector),
                      optional("containers", &T::containers),
                      optional("initContainers", &T::init_containers)};
  }
};

template <>
struct Schema<api::PodIp> {
  static auto fields() { return std::tuple{optional("ip", &api::PodIp::ip)}; }
};

template <>
struct Schema<api::PodStatus> {
  static auto fields() {
    using T = api::PodStatus;
    return std::tuple{optional("phase", &T::phase), optional("podIP", &T::pod_ip), optional("podIPs", &T::pod_ips),
                      optional("hostIP", &T::host_ip), optional("conditions", &T::conditions)};
  }
};

template <>
struct Schema<api::Pod> {
  static auto fields() {
    using T = api::Pod;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec), optional("status", &T::status)};
  }
};

template <>
struct Schema<api::ServicePort> {
  static auto fields() {
    using T = api::ServicePort;
    return std::tuple{optional("name", &T::name), optional("protocol", &T::protocol), required("port", &T::port),
                      optional("targetPort", &T::target_port), optional("nodePort", &T::node_port)};
  }
};

template <>
struct Schema<api::ServiceSpec> {
  static auto fields() {
    using T = api::ServiceSpec;
    return std::tuple{optional("type", &T::type), optional("selector", &T::selector), optional("ports", &T::ports),
                      optional("clusterIP", &T::cluster_ip), optional("clusterIPs", &T::cluster_ips)};
  }
};

template <>
struct Schema<api::Service> {
  static auto fields() {
    using T = api::Service;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec)};
  }
};

template <>
struct Schema<api::ConfigMap> {
  static auto fields() {
    using T = api::ConfigMap;
    return std::tuple{optional("metadata", &T::metadata), optional("data", &T::data)};
  }
};

template <>
struct Schema<api::SecretObject> {
  static auto fields() {
    using T = api::SecretObject;
    return std::tuple{optional("metadata", &T::metadata), optional("type", &T::type), optional("data", &T::data)};
  }
};

template <>
struct Schema<api::ServiceAccount> {
  static auto fields() { return std::tuple{optional("metadata", &api::ServiceAccount::metadata)}; }
};

extern template struct Codec<api::Node>;
extern template struct Codec<api::Pod>;
extern template struct Codec<api::Service>;
extern template struct Codec<api::ConfigMap>;
extern template struct Codec<api::SecretObject>;

}  // namespace fabric::json
