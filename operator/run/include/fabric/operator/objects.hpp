#pragma once

#include <fabric/api/core.hpp>
#include <fabric/kube/client.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

/// Small verbs over manifests that both roles need.
namespace fabric::operators {

using async::Task;

/// All objects of a namespace, or those with these labels.
inline kube::Selection select(std::string ns, std::string label_selector = {}) {
  return {std::move(ns), std::move(label_selector), {}};
}

/// The resource of a manifest of ours, by its kind. Errc::unsupported for a kind that no manifest of ours has.
Result<kube::ResourceId> resource_of_manifest(const json::Value& object);

/// Server-side apply, forced, as fabric-operator.
Task<Result<void>> apply_object(kube::Client& client, json::Value object);
/// In order; stops at the first error.
Task<Result<void>> apply_objects(kube::Client& client, std::vector<json::Value> objects);
/// In order; what is not there counts as deleted. Goes on after an error and returns the first.
Task<Result<void>> delete_objects(kube::Client& client, std::vector<json::Value> objects);

/// A manifest that names an object to delete.
json::Value object_to_delete(const api::Gvk& gvk, std::string_view ns, std::string_view name);

/// Manifests of the Endpoints of a cluster in a namespace, to delete them; with `node`, of the gateway on it only.
Task<Result<std::vector<json::Value>>> endpoints_to_delete(kube::Client& client, std::string ns, std::string cluster_id,
                                                           std::optional<std::string> node = std::nullopt);

/// One key of a Secret. Errc::not_found when the Secret or the key is absent or empty; the message names both.
Task<Result<Secret>> read_secret(kube::Client& client, kube::ObjectKey key, std::string datum);

/// Reads a key, or draws it and creates the Secret. Two that draw at once end with the same value: create is refused
/// for the second, which reads again. A Secret without the key is Errc::invalid and is never overwritten.
Task<Result<Secret>> read_or_create_secret(kube::Client& client, kube::ObjectKey key, std::string datum,
                                           std::function<Result<Secret>()> draw);

/// An Opaque Secret manifest; values are secret bytes.
json::Value secret_manifest(const kube::ObjectKey& key, const std::map<std::string, Secret, std::less<>>& data);

/// Turns "does not exist", and nothing else, into an absent value.
template <class T>
Result<std::optional<T>> if_exists(Result<T> result) {
  if (result) return std::optional<T>(*std::move(result));
  if (result.error().code == Errc::not_found) return std::optional<T>();
  return std::unexpected(std::move(result).error());
}

/// Also "may not be read", for sources of discovery that a cluster may hide. Never for an object that decides about
/// rights.
template <class T>
Result<std::optional<T>> optional_source(Result<T> result) {
  if (result) return std::optional<T>(*std::move(result));
  const Errc code = result.error().code;
  if (code == Errc::not_found || code == Errc::forbidden) return std::optional<T>();
  return std::unexpected(std::move(result).error());
}

}  // namespace fabric::operators
