#pragma once

#include <fabric/base/error.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/resource.hpp>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The pure parts of FakeApiServer.
namespace fabric::kube::fake {

/// What a request path addresses.
struct Target {
  std::string collection;  ///< "/api/v1/pods" or "/apis/apps/v1/daemonsets", without a namespace.
  std::string api_version;
  std::string plural;
  ObjectKey key;
  std::string subresource;
  std::map<std::string, std::string, std::less<>> query;

  std::string parameter(std::string_view name) const;
};

Result<Target> parse_target(std::string_view target);

/// "a=b,c!=d,e,!f,g in (x,y),h notin (z)".
bool matches_labels(std::string_view selector, const json::Value& object);
bool matches_fields(std::string_view selector, const json::Value& object);
bool selected(const Target& target, const json::Value& object);

/// RFC 7386.
void merge_patch(json::Value& target, const json::Value& patch);

/// A path of member names to a leaf (anything that is not a non-empty object).
using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;

/// The leaves of an applied configuration, without what identifies the object.
FieldSet fields_of(const json::Value& object);

struct Stored {
  json::Value object;
  std::map<std::string, FieldSet> managers;
};

/// Server-side apply of `config` by `manager`. Errc::conflict names the field and its owner.
Result<void> apply_config(Stored& stored, const json::Value& config, const std::string& manager, bool force);

using Collection = std::map<ObjectKey, Stored>;

}  // namespace fabric::kube::fake
