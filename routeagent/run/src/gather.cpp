#include <fabric/api/names.hpp>
#include <fabric/routeagent/gather.hpp>

#include <algorithm>

namespace fabric::routeagent {

namespace {

/// IPv4 first, as it is the family that every underlay has.
Result<net::IpAddress> internal_ip(const api::Node& node) {
  const auto all = api::addresses(node, "InternalIP");
  if (all.empty()) {
    return fail(Errc::unavailable, "Node '{}' has no InternalIP yet; its kubelet or cloud provider sets it",
                node.metadata.name);
  }
  const auto v4 = std::ranges::find_if(all, &net::IpAddress::is_v4);
  return v4 == all.end() ? all.front() : *v4;
}

std::vector<GatewayNode> gateway_nodes(const Objects& objects) {
  std::vector<GatewayNode> result;
  for (const auto& [key, node] : *objects.gateway_nodes) {
    const auto address = internal_ip(*node);
    if (!address) continue;
    const bool serves = std::ranges::any_of(*objects.gateways, [&](const auto& entry) {
      return entry.first.name == node->metadata.name && entry.second->status.status_failure.empty();
    });
    result.push_back({.node = node->metadata.name, .address = *address, .ready = serves && api::is_ready(*node)});
  }
  return result;
}

std::map<std::string, std::vector<net::Cidr>> remote_prefixes(const Options& options, const Objects& objects) {
  std::map<std::string, std::vector<net::Cidr>> result;
  for (const auto& [key, endpoint] : *objects.endpoints) {
    if (endpoint->spec.cluster_id == options.cluster_id) continue;
    auto& prefixes = result[endpoint->spec.cluster_id];
    for (const std::string& text : endpoint->spec.subnets) {
      if (const auto prefix = net::Cidr::parse(text)) prefixes.push_back(*prefix);
    }
  }
  return result;
}

/// Room for the worst of the paths in use: every node of a cluster has one MTU towards all others.
Encapsulation encapsulation(const Options& options, const Objects& objects) {
  Encapsulation result{.outer_ipv6 = false, .udp = options.force_udp_encaps};
  for (const auto& [key, gateway] : *objects.gateways) {
    for (const api::Connection& connection : gateway->status.connections) {
      result.udp = result.udp || connection.using_nat;
      result.outer_ipv6 = result.outer_ipv6 || connection.using_ip.contains(':');
    }
  }
  return result;
}

}  // namespace

Result<Inputs> gather(const Options& options, const Objects& objects, netstate::HostFacts facts,
                      std::map<std::string, std::string> changed_sysctls) {
  const auto node = objects.own_node->find({"", options.node});
  if (node == objects.own_node->end()) return fail(Errc::unavailable, "there is no Node '{}'", options.node);
  const auto cluster = objects.clusters->find({options.ns, options.cluster_id});
  if (cluster == objects.clusters->end()) {
    return fail(Errc::unavailable, "there is no Cluster {}/{} yet; the operator makes it", options.ns,
                options.cluster_id);
  }
  Inputs inputs;
  inputs.node = options.node;
  FABRIC_TRY(inputs.node_address, internal_ip(*node->second));
  inputs.node_pod_cidrs = api::pod_cidrs(*node->second);
  FABRIC_TRY(inputs.local_prefixes, api::prefixes(cluster->second->spec));
  inputs.remote_prefixes = remote_prefixes(options, objects);
  inputs.gateways = gateway_nodes(objects);
  inputs.encapsulation = encapsulation(options, objects);
  inputs.natt_port = options.natt_port;
  inputs.records_port = api::names::kRecordsPort;
  inputs.facts = std::move(facts);
  inputs.changed_sysctls = std::move(changed_sysctls);
  return inputs;
}

std::vector<api::RemoteEndpoint> remote_endpoints(const Options& options, const Objects& objects,
                                                  const std::string& gateway) {
  const auto it = objects.gateways->find({options.ns, gateway});
  if (it == objects.gateways->end()) return {};
  std::vector<api::RemoteEndpoint> result;
  for (const api::Connection& connection : it->second->status.connections) {
    // Round trips change all the time; they are the gateway's to report.
    result.push_back(
        {.status = connection.status, .status_message = connection.status_message, .spec = connection.endpoint});
  }
  return result;
}

}  // namespace fabric::routeagent
