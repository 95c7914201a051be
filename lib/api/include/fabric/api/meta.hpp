#pragma once

#include <fabric/base/time.hpp>
#include <fabric/json/schema.hpp>

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace fabric::api {

using StringMap = std::map<std::string, std::string, std::less<>>;

/// Names one kind of object: the kind in manifests and the plural in request paths.
struct Gvk {
  std::string_view group;  ///< Empty for the core group.
  std::string_view version;
  std::string_view kind;
  std::string_view plural;
  bool namespaced = true;

  /// "v1" or "apps/v1".
  std::string api_version() const;
  /// "/api/v1" or "/apis/apps/v1".
  std::string path_prefix() const;
  bool operator==(const Gvk&) const = default;
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  std::optional<bool> controller;
  std::optional<bool> block_owner_deletion;
  bool operator==(const OwnerReference&) const = default;
};

/// metav1.ObjectMeta, the part that we use.
struct ObjectMeta {
  std::string name;
  std::string generate_name;
  std::string ns;  ///< "namespace" in JSON; empty for cluster-wide objects.
  std::string uid;
  std::string resource_version;  ///< Opaque: only compared for equality.
  std::int64_t generation = 0;
  StringMap labels;
  StringMap annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> owner_references;
  std::optional<TimePoint> creation_timestamp;
  std::optional<TimePoint> deletion_timestamp;
  bool operator==(const ObjectMeta&) const = default;

  bool is_deleting() const { return deletion_timestamp.has_value(); }

  bool has_finalizer(std::string_view finalizer) const;
  /// The value of a label or annotation; nullptr when absent.
  const std::string* label(std::string_view key) const;
  const std::string* annotation(std::string_view key) const;
};

/// A typed Kubernetes object: an aggregate with `metadata`, a Schema and `static constexpr Gvk kGvk`.
template <class T>
concept KubeObject = requires(T object) {
  { T::kGvk } -> std::convertible_to<const Gvk&>;
  { object.metadata } -> std::convertible_to<ObjectMeta&>;
} && json::HasSchema<T>;

/// "namespace/name", or "name" for a cluster-wide object: the key of stores and queues.
std::string object_key(const ObjectMeta& metadata);

/// "Fabric default/join", for messages.
template <KubeObject T>
std::string describe(const T& object) {
  return std::string(T::kGvk.kind) + " " + object_key(object.metadata);
}

/// The object as the API server expects it, with apiVersion and kind.
template <KubeObject T>
json::Value to_object(const T& object) {
  json::Value out = json::to_value(object);
  out["apiVersion"] = T::kGvk.api_version();
  out["kind"] = T::kGvk.kind;
  return out;
}

/// Reads an object; a `kind` of another type is Errc::invalid. List items carry no kind, so absence is accepted.
template <KubeObject T>
Result<T> from_object(const json::Value& value) {
  const std::string kind = value.string_at({"kind"}, T::kGvk.kind);
  if (kind != T::kGvk.kind) return fail(Errc::invalid, "expected a {}, got a {}", T::kGvk.kind, kind);
  return json::read<T>(value);
}

struct ListMeta {
  std::string resource_version;
  std::string continue_token;  ///< "continue" in JSON; not empty when there are more pages.
  std::optional<std::int64_t> remaining_item_count;
  bool operator==(const ListMeta&) const = default;
};

template <class T>
struct List {
  ListMeta metadata;
  std::vector<T> items;
};

/// metav1.Status, the API server's error object.
struct StatusCause {
  std::string reason;
  std::string message;
  std::string field;
  bool operator==(const StatusCause&) const = default;
};

struct StatusDetails {
  std::string name;
  std::string group;
  std::string kind;
  std::vector<StatusCause> causes;
  std::optional<std::int64_t> retry_after_seconds;
  bool operator==(const StatusDetails&) const = default;
};

struct Status {
  std::string status;  ///< "Success" or "Failure".
  std::string message;
  std::string reason;  ///< "NotFound", "Conflict", "Expired", ...
  std::optional<std::int32_t> code;
  StatusDetails details;
  bool operator==(const Status&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct Schema<api::OwnerReference> {
  static auto fields() {
    using T = api::OwnerReference;
    return std::tuple{required("apiVersion", &T::api_version),
                      required("kind", &T::kind),
                      required("name", &T::name),
                      required("uid", &T::uid),
                      optional("controller", &T::controller),
                      optional("blockOwnerDeletion", &T::block_owner_deletion)};
  }
};

template <>
struct Schema<api::ObjectMeta> {
  static auto fields() {
    using T = api::ObjectMeta;
    return std::tuple{optional("name", &T::name),
                      optional("generateName", &T::generate_name),
                      optional("namespace", &T::ns),
                      optional("uid", &T::uid),
                      optional("resourceVersion", &T::resource_version),
                      optional("generation", &T::generation),
                      optional("labels", &T::labels),
                      optional("annotations", &T::annotations),
                      optional("finalizers", &T::finalizers),
                      optional("ownerReferences", &T::owner_references),
                      optional("creationTimestamp", &T::creation_timestamp),
                      optional("deletionTimestamp", &T::deletion_timestamp)};
  }
};

template <>
struct Schema<api::ListMeta> {
  static auto fields() {
    using T = api::ListMeta;
    return std::tuple{optional("resourceVersion", &T::resource_version), optional("continue", &T::continue_token),
                      optional("remainingItemCount", &T::remaining_item_count)};
  }
};

template <class U>
struct Schema<api::List<U>> {
  static auto fields() {
    using T = api::List<U>;
    return std::tuple{optional("metadata", &T::metadata), always("items", &T::items)};
  }
};

template <>
struct Schema<api::StatusCause> {
  static auto fields() {
    using T = api::StatusCause;
    return std::tuple{optional("reason", &T::reason), optional("message", &T::message), optional("field", &T::field)};
  }
};

template <>
struct Schema<api::StatusDetails> {
  static auto fields() {
    using T = api::StatusDetails;
    return std::tuple{optional("name", &T::name), optional("group", &T::group), optional("kind", &T::kind),
                      optional("causes", &T::causes), optional("retryAfterSeconds", &T::retry_after_seconds)};
  }
};

template <>
struct Schema<api::Status> {
  static auto fields() {
    using T = api::Status;
    return std::tuple{optional("status", &T::status), optional("message", &T::message), optional("reason", &T::reason),
                      optional("code", &T::code), optional("details", &T::details)};
  }
};

extern template struct Codec<api::ObjectMeta>;
extern template struct Codec<api::Status>;

}  // namespace fabric::json
