#include <fabric/api/meta.hpp>

#include <algorithm>

namespace fabric::api {

namespace {

const std::string* lookup(const StringMap& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

std::string Gvk::api_version() const {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

std::string Gvk::path_prefix() const {
  return (group.empty() ? "/api/" : "/apis/") + api_version();
}

bool ObjectMeta::has_finalizer(std::string_view finalizer) const {
  return std::ranges::find(finalizers, finalizer) != finalizers.end();
}

const std::string* ObjectMeta::label(std::string_view key) const {
  return lookup(labels, key);
}

const std::string* ObjectMeta::annotation(std::string_view key) const {
  return lookup(annotations, key);
}

std::string object_key(const ObjectMeta& metadata) {
  return metadata.ns.empty() ? metadata.name : fmt::format("{}/{}", metadata.ns, metadata.name);
}

}  // namespace fabric::api

namespace fabric::json {
template struct Codec<api::ObjectMeta>;
template struct Codec<api::Status>;
}  // namespace fabric::json
