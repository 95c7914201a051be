#include <fabric/api/apps.hpp>
#include <fabric/api/names.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/operator/objects.hpp>

#include <array>

namespace fabric::operators {
namespace {

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kAdmission = "admissionregistration.k8s.io";

/// Every kind that a manifest of ours has.
constexpr std::array<api::Gvk, 15> kKinds{{
    api::Namespace::kGvk,
    api::ServiceAccount::kGvk,
    api::ConfigMap::kGvk,
    api::SecretObject::kGvk,
    api::DaemonSet::kGvk,
    api::Cluster::kGvk,
    api::Endpoint::kGvk,
    api::Gateway::kGvk,
    api::RouteAgent::kGvk,
    {kRbac, "v1", "Role", "roles", true},
    {kRbac, "v1", "RoleBinding", "rolebindings", true},
    {kRbac, "v1", "ClusterRole", "clusterroles", false},
    {kRbac, "v1", "ClusterRoleBinding", "clusterrolebindings", false},
    {kAdmission, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false},
    {kAdmission, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false},
}};
constexpr api::Gvk kCrd{"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false};

}  // namespace

Result<kube::ResourceId> resource_of_manifest(const json::Value& object) {
  const std::string kind = object.string_at({"kind"});
  if (kind == kCrd.kind) return kube::resource_of(kCrd);
  for (const api::Gvk& gvk : kKinds) {
    if (gvk.kind == kind && object.string_at({"apiVersion"}) == gvk.api_version()) return kube::resource_of(gvk);
  }
  return fail(Errc::unsupported, "no manifest of ours has kind '{}'", kind);
}

Task<Result<void>> apply_object(kube::Client& client, json::Value object) {
  FABRIC_CO_TRY(kube::ResourceId resource, resource_of_manifest(object));
  auto applied = co_await client.apply(std::move(resource), std::move(object),
                                       {.field_manager = std::string(api::names::kOperatorManager), .force = true});
  if (!applied) co_return std::unexpected(std::move(applied).error());
  co_return Result<void>();
}

Task<Result<void>> apply_objects(kube::Client& client, std::vector<json::Value> objects) {
  for (json::Value& object : objects)
    FABRIC_CO_CHECK(co_await apply_object(client, std::move(object)));
  co_return Result<void>();
}

Task<Result<void>> delete_objects(kube::Client& client, std::vector<json::Value> objects) {
  Result<void> first;
  for (const json::Value& object : objects) {
    FABRIC_CO_TRY(kube::ResourceId resource, resource_of_manifest(object));
    auto removed = co_await client.remove(std::move(resource), kube::key_of(object));
    if (!removed && removed.error().code != Errc::not_found && first)
      first = std::unexpected(std::move(removed).error());
  }
  co_return first;
}

json::Value object_to_delete(const api::Gvk& gvk, std::string_view ns, std::string_view name) {
  json::Object metadata{{"name", name}};
  if (!ns.empty()) metadata.emplace("namespace", ns);
  return json::Object{{"apiVersion", gvk.api_version()}, {"kind", gvk.kind}, {"metadata", std::move(metadata)}};
}

Task<Result<std::vector<json::Value>>> endpoints_to_delete(kube::Client& client, std::string ns, std::string cluster_id,
                                                           std::optional<std::string> node) {
  FABRIC_CO_TRY(const auto endpoints, co_await client.list<api::Endpoint>(select(ns)));
  std::vector<json::Value> out;
  for (const api::Endpoint& endpoint : endpoints.items) {
    if (endpoint.spec.cluster_id == cluster_id && (!node || endpoint.spec.hostname == *node))
      out.push_back(object_to_delete(api::Endpoint::kGvk, ns, endpoint.metadata.name));
  }
  co_return out;
}

Task<Result<Secret>> read_secret(kube::Client& client, kube::ObjectKey key, std::string datum) {
  FABRIC_CO_TRY(const api::SecretObject object, co_await client.get<api::SecretObject>(key));
  const Secret* found = object.find(datum);
  if (found == nullptr || found->empty()) {
    co_return fail(Errc::not_found, "Secret {}: key {} is missing or empty", key, datum);
  }
  co_return found->duplicate();
}

Task<Result<Secret>> read_or_create_secret(kube::Client& client, kube::ObjectKey key, std::string datum,
                                           std::function<Result<Secret>()> draw) {
  auto object = co_await client.get<api::SecretObject>(key);
  if (!object && object.error().code == Errc::not_found) {
    FABRIC_CO_TRY(Secret drawn, draw());
    std::map<std::string, Secret, std::less<>> data;
    data.emplace(datum, std::move(drawn));
    auto created = co_await client.create(kube::resource_of<api::SecretObject>(), secret_manifest(key, data));
    if (!created && created.error().code != Errc::already_exists && created.error().code != Errc::conflict) {
      co_return std::unexpected(std::move(created).error());
    }
    // Read back rather than trusted: whoever created it first has decided.
    object = co_await client.get<api::SecretObject>(key);
  }
  if (!object) co_return std::unexpected(std::move(object).error());
  const Secret* found = object->find(datum);
  if (found == nullptr || found->empty()) {
    co_return fail(Errc::invalid,
                   "Secret {}: key {} is missing or empty: restore it, or delete the Secret to have a new one made",
                   key, datum);
  }
  co_return found->duplicate();
}

json::Value secret_manifest(const kube::ObjectKey& key, const std::map<std::string, Secret, std::less<>>& data) {
  json::Object encoded;
  for (const auto& [name, value] : data)
    encoded.emplace(name, json::encode_base64(value.reveal()));
  return json::Object{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata",
       json::Object{{"name", key.name},
                    {"namespace", key.ns},
                    {"labels", json::Object{{"app.kubernetes.io/managed-by", api::names::kOperatorManager}}}}},
      {"type", "Opaque"},
      {"data", std::move(encoded)}};
}

}  // namespace fabric::operators
