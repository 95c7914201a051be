#include <fabric/api/service_cidr.hpp>
#include <fabric/operator/join_role.hpp>

namespace fabric::operators {
namespace {

/// Flags and ConfigMaps of a control plane hardly ever change; nodes come from the store at every reconcile.
constexpr Duration kSourcesValid{300'000};
constexpr std::string_view kSystem = "kube-system";

ComponentFacts component_of(const api::Pod& pod, std::string_view component) {
  ComponentFacts facts;
  facts.pod = pod.metadata.name;
  facts.component = component;
  for (const api::Container& container : pod.spec.containers) {
    facts.arguments.insert(facts.arguments.end(), container.command.begin(), container.command.end());
    facts.arguments.insert(facts.arguments.end(), container.args.begin(), container.args.end());
  }
  return facts;
}

Task<Result<void>> add_components(kube::Client& client, std::string selector, std::string component,
                                  DiscoveryFacts& facts) {
  FABRIC_CO_TRY(const auto pods,
                optional_source(co_await client.list<api::Pod>(select(std::string(kSystem), std::move(selector)))));
  // One pod of each component says what all of them say.
  if (pods && !pods->items.empty()) facts.components.push_back(component_of(pods->items.front(), component));
  co_return Result<void>();
}

Task<Result<std::optional<std::string>>> config_value(kube::Client& client, std::string name, std::string key) {
  FABRIC_CO_TRY(const auto config_map,
                optional_source(co_await client.get<api::ConfigMap>({std::string(kSystem), name})));
  if (!config_map) co_return std::optional<std::string>();
  const auto found = config_map->data.find(key);
  co_return found == config_map->data.end() ? std::optional<std::string>() : std::optional(found->second);
}

}  // namespace

Task<Result<void>> JoinRole::read_sources(DiscoveryFacts& facts) {
  FABRIC_CO_TRY(const auto service_cidrs, optional_source(co_await env_.client.list<api::ServiceCidr>()));
  if (service_cidrs) {
    for (const api::ServiceCidr& object : service_cidrs->items) {
      if (!object.metadata.is_deleting()) facts.service_cidrs.push_back({object.metadata.name, object.spec.cidrs});
    }
  }
  FABRIC_CO_CHECK(
      co_await add_components(env_.client, "component=kube-controller-manager", "kube-controller-manager", facts));
  FABRIC_CO_CHECK(co_await add_components(env_.client, "component=kube-apiserver", "kube-apiserver", facts));
  FABRIC_CO_CHECK(co_await add_components(env_.client, "k8s-app=kube-proxy", "kube-proxy", facts));
  FABRIC_CO_TRY(facts.kubeadm_configuration,
                co_await config_value(env_.client, "kubeadm-config", "ClusterConfiguration"));
  FABRIC_CO_TRY(facts.kube_proxy_configuration, co_await config_value(env_.client, "kube-proxy", "config.conf"));
  FABRIC_CO_TRY(const auto daemonsets,
                optional_source(co_await env_.client.list(kube::resource_of<api::DaemonSet>(), {})));
  if (daemonsets) {
    for (const json::Value& object : daemonsets->items)
      facts.daemonsets.push_back(kube::key_of(object).text());
  }
  co_return Result<void>();
}

Task<Result<DiscoveryFacts>> JoinRole::gather(const api::Fabric& fabric, const Observed& observed) {
  if (!sources_ || env_.clock.steady() - sources_read_ > kSourcesValid) {
    DiscoveryFacts read;
    FABRIC_CO_CHECK(co_await read_sources(read));
    sources_ = std::move(read);
    sources_read_ = env_.clock.steady();
  }
  DiscoveryFacts facts = *sources_;
  facts.fabric = api::object_key(fabric.metadata);
  const api::JoinConfig config = fabric.spec.join_config.value_or(api::JoinConfig{});
  facts.configured_pod_cidr = config.cluster_cidr.value_or("");
  facts.configured_service_cidr = config.service_cidr.value_or("");
  for (const api::Node& node : observed.nodes) {
    NodeCidrFacts cidrs{node.metadata.name, node.spec.pod_cidrs};
    if (cidrs.pod_cidrs.empty() && !node.spec.pod_cidr.empty()) cidrs.pod_cidrs.push_back(node.spec.pod_cidr);
    facts.nodes.push_back(std::move(cidrs));
  }
  co_return facts;
}

}  // namespace fabric::operators
