#include <fabric/kube/resource.hpp>

namespace fabric::kube {

ObjectKey key_of(const json::Value& object) {
  return ObjectKey{object.string_at({"metadata", "namespace"}), object.string_at({"metadata", "name"})};
}

std::string resource_version_of(const json::Value& object) {
  return object.string_at({"metadata", "resourceVersion"});
}

ResourceId resource_of(const api::Gvk& gvk) {
  return ResourceId{std::string(gvk.group), std::string(gvk.version), std::string(gvk.kind), std::string(gvk.plural),
                    gvk.namespaced};
}

}  // namespace fabric::kube
