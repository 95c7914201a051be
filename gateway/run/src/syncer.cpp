#include <fabric/api/names.hpp>
#include <fabric/gateway/syncer.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>
#include <set>

namespace fabric::gateway {

namespace names = api::names;

namespace {

kube::ApplyOptions as_gateway() {
  return {.field_manager = std::string(names::kGatewayManager), .force = true};
}

/// An object of another cluster as it lives here: same name, our namespace, and the label by which it is known as a
/// copy.
template <class T>
T local_copy(const std::string& name, decltype(T::spec) spec, const std::string& ns, const std::string& cluster) {
  T copy;
  copy.metadata.name = name;
  copy.metadata.ns = ns;
  copy.metadata.labels[std::string(names::kClusterIdLabel)] = cluster;
  copy.spec = std::move(spec);
  return copy;
}

std::string first_text(const std::vector<net::IpAddress>& addresses) {
  return addresses.empty() ? "" : addresses.front().to_string();
}

/// From the accepted announcement alone: what its Endpoint says to people, with the verified values put over it. The
/// object at the broker may meanwhile be another one that was refused.
api::Endpoint endpoint_copy(const CopyInputs& in, const crypto::GatewayId& id, const Peer& peer) {
  auto copy = local_copy<api::Endpoint>(*in.membership->endpoint_name_of(id), *in.membership->endpoint_of(id), in.ns,
                                        id.cluster);
  const auto& record = peer.state.record;
  copy.spec.private_ip = first_text(record.private_addresses);
  copy.spec.public_ip = first_text(record.public_addresses);
  copy.spec.health_check_ip = first_text(record.health_check);
  copy.spec.nat_enabled = record.nat;
  copy.spec.subnets.clear();
  if (const auto carried = in.carried.find(id.cluster); carried != in.carried.end()) {
    for (const auto& prefix : carried->second)
      copy.spec.subnets.push_back(prefix.to_string());
  }
  for (auto& [key, value] : write_backend_config(peer.keys, peer.state))
    copy.spec.backend_config[key] = value;
  return copy;
}

template <class T>
bool is_copy(const T& object, const std::string& own_cluster) {
  const auto* label = object.metadata.label(names::kClusterIdLabel);
  return label != nullptr && *label != own_cluster;
}

void plan_endpoints(const CopyInputs& in, CopyPlan& plan) {
  std::set<std::string> wanted;
  for (const auto& [id, peer] : in.membership->peers()) {
    auto copy = endpoint_copy(in, id, peer);
    const auto present = in.local_endpoints->find({in.ns, copy.metadata.name});
    const bool there = present != in.local_endpoints->end();
    // No announcement of others takes the place of our own Endpoint, whatever it is called.
    if (there && present->second->spec.cluster_id == in.own_cluster) continue;
    wanted.insert(copy.metadata.name);
    if (!there || present->second->spec != copy.spec) plan.endpoints.push_back(std::move(copy));
  }
  for (const auto& [key, copy] : *in.local_endpoints) {
    if (is_copy(*copy, in.own_cluster) && !wanted.contains(key.name)) plan.stale_endpoints.push_back(key);
  }
}

void plan_clusters(const CopyInputs& in, CopyPlan& plan) {
  for (const auto& [key, original] : *in.broker_clusters) {
    const std::string& id = original->spec.cluster_id;
    // A copy is the pin that outlives this process, so that it never shows another identity.
    if (id == in.own_cluster || id != original->metadata.name || !in.membership->shows_pin(*original)) continue;
    auto copy = local_copy<api::Cluster>(id, original->spec, in.ns, id);
    for (const auto name : {names::kIdentityAnnotation, names::kIdentityMacAnnotation})
      copy.metadata.annotations[std::string(name)] = *original->metadata.annotation(name);
    const auto present = in.local_clusters->find({in.ns, id});
    const bool same = present != in.local_clusters->end() && present->second->spec == copy.spec &&
                      in.membership->shows_pin(*present->second);
    if (!same) plan.clusters.push_back(std::move(copy));
  }
  const auto known = in.membership->clusters();
  for (const auto& [key, copy] : *in.local_clusters) {
    const bool at_broker =
        std::ranges::any_of(*in.broker_clusters, [&](const auto& entry) { return entry.first.name == key.name; });
    if (is_copy(*copy, in.own_cluster) && !known.contains(copy->spec.cluster_id) && !at_broker)
      plan.stale_clusters.push_back(key);
  }
}

}  // namespace

CopyPlan plan_copies(const CopyInputs& inputs) {
  CopyPlan plan;
  plan_endpoints(inputs, plan);
  plan_clusters(inputs, plan);
  if (!inputs.broker_known) {
    plan.stale_endpoints.clear();
    plan.stale_clusters.clear();
  }
  return plan;
}

async::Task<Result<void>> write_copies(kube::Client& local, CopyPlan plan) {
  Result<void> first;
  const auto note = [&first](const auto& result, std::string_view what, const std::string& name) {
    if (result) {
      log::info("local copy", {{"change", what}, {"object", name}});
    } else if (first && result.error().code != Errc::not_found) {
      first = std::unexpected(result.error());
    }
  };
  for (auto& cluster : plan.clusters) {
    if (co_await async::cancelled()) co_return fail(Errc::cancelled, "stopping");
    const std::string name = cluster.metadata.name;
    const auto result = co_await local.apply(std::move(cluster), as_gateway());
    note(result, "cluster written", name);
  }
  for (auto& endpoint : plan.endpoints) {
    if (co_await async::cancelled()) co_return fail(Errc::cancelled, "stopping");
    const std::string name = endpoint.metadata.name;
    const auto result = co_await local.apply(std::move(endpoint), as_gateway());
    note(result, "endpoint written", name);
  }
  for (const auto& key : plan.stale_endpoints) {
    if (co_await async::cancelled()) co_return fail(Errc::cancelled, "stopping");
    const auto result = co_await local.remove<api::Endpoint>(key);
    note(result, "endpoint removed", key.name);
  }
  for (const auto& key : plan.stale_clusters) {
    if (co_await async::cancelled()) co_return fail(Errc::cancelled, "stopping");
    const auto result = co_await local.remove<api::Cluster>(key);
    note(result, "cluster removed", key.name);
  }
  co_return first;
}

}  // namespace fabric::gateway
