#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/json/value.hpp>

#include <fmt/format.h>

#include <compare>
#include <string>
#include <string_view>

namespace fabric::kube {

/// One kind of object as the API server addresses it. `group` is empty for the core group.
struct ResourceId {
  std::string group;
  std::string version;
  std::string kind;
  std::string plural;
  bool namespaced = true;

  auto operator<=>(const ResourceId&) const = default;

  /// "v1" or "apps/v1".
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
};

/// Where one object of a known kind lives. `ns` is empty for cluster-scoped kinds.
struct ObjectKey {
  std::string ns;
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;

  /// "ns/name", or "name" for cluster-scoped kinds.
  std::string text() const { return ns.empty() ? name : ns + "/" + name; }
};

/// The key in an object's metadata; empty parts when absent.
ObjectKey key_of(const json::Value& object);

/// metadata.resourceVersion; empty when absent.
std::string resource_version_of(const json::Value& object);

ResourceId resource_of(const api::Gvk& gvk);

/// The ResourceId of a typed object.
template <api::KubeObject T>
ResourceId resource_of() {
  return resource_of(T::kGvk);
}

}  // namespace fabric::kube

template <>
struct fmt::formatter<fabric::kube::ObjectKey> : fmt::formatter<std::string> {
  auto format(const fabric::kube::ObjectKey& key, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(key.text(), ctx);
  }
};
