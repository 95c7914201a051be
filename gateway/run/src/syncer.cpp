#include <fabric/api/names.hpp>
#include <fabric/gateway/syncer.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace names = api::names;

namespace {

kube::ApplyOptions as_gateway() {
  return {.field_manager = std::string(names::kGatewayManager), .force = true};
}

/// An object of another cluster as it lives here: same name, our namespace, and the label by which it is known as a
/// copy.
template <class T>
T local_copy(const T& original, const std::string& ns, const std::string& cluster) {
  T copy;
  copy.metadata.name = original.metadata.name;
  copy.metadata.ns = ns;
  copy.metadata.labels[std::string(names::kClusterIdLabel)] = cluster;
  copy.spec = original.spec;
  return copy;
}

template <class T>
bool is_copy(const T& object, const std::string& own_cluster) {
  const auto* label = object.metadata.label(names::kClusterIdLabel);
  return label != nullptr && *label != own_cluster;
}

void plan_endpoints(const CopyInputs& in, CopyPlan& plan) {
  const auto& peers = in.membership->peers();
  for (const auto& [key, original] : *in.broker_endpoints) {
    const auto& spec = original->spec;
    if (spec.cluster_id == in.own_cluster || !peers.contains({spec.cluster_id, spec.hostname})) continue;
    auto copy = local_copy(*original, in.ns, spec.cluster_id);
    copy.spec.subnets.clear();
    if (const auto carried = in.carried.find(spec.cluster_id); carried != in.carried.end()) {
      for (const auto& prefix : carried->second)
        copy.spec.subnets.push_back(prefix.to_string());
    }
    const auto present = in.local_endpoints->find({in.ns, copy.metadata.name});
    if (present == in.local_endpoints->end() || present->second->spec != copy.spec)
      plan.endpoints.push_back(std::move(copy));
  }
  for (const auto& [key, copy] : *in.local_endpoints) {
    if (is_copy(*copy, in.own_cluster) && !peers.contains({copy->spec.cluster_id, copy->spec.hostname}))
      plan.stale_endpoints.push_back(key);
  }
}

void plan_clusters(const CopyInputs& in, CopyPlan& plan) {
  for (const auto& [key, original] : *in.broker_clusters) {
    const std::string& id = original->spec.cluster_id;
    if (id == in.own_cluster || id != original->metadata.name || !in.membership->is_pinned(id)) continue;
    auto copy = local_copy(*original, in.ns, id);
    for (const auto name : {names::kIdentityAnnotation, names::kIdentityMacAnnotation}) {
      if (const auto* value = original->metadata.annotation(name))
        copy.metadata.annotations[std::string(name)] = *value;
    }
    const auto present = in.local_clusters->find({in.ns, id});
    // A copy keeps the identity that it was made with: it is the pin that outlives this process.
    if (present == in.local_clusters->end() || present->second->spec != copy.spec) {
      if (present != in.local_clusters->end()) {
        for (const auto& [name, value] : present->second->metadata.annotations)
          copy.metadata.annotations[name] = value;
      }
      plan.clusters.push_back(std::move(copy));
    }
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
    const std::string name = cluster.metadata.name;
    const auto result = co_await local.apply(std::move(cluster), as_gateway());
    note(result, "cluster written", name);
  }
  for (auto& endpoint : plan.endpoints) {
    const std::string name = endpoint.metadata.name;
    const auto result = co_await local.apply(std::move(endpoint), as_gateway());
    note(result, "endpoint written", name);
  }
  for (const auto& key : plan.stale_endpoints) {
    const auto result = co_await local.remove<api::Endpoint>(key);
    note(result, "endpoint removed", key.name);
  }
  for (const auto& key : plan.stale_clusters) {
    const auto result = co_await local.remove<api::Cluster>(key);
    note(result, "cluster removed", key.name);
  }
  co_return first;
}

}  // namespace fabric::gateway
