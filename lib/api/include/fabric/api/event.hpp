#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/json/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace fabric::api {

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string ns;  ///< "namespace" in JSON.
  std::string name;
  std::string uid;
  std::string resource_version;
  bool operator==(const ObjectReference&) const = default;
};

template <KubeObject T>
ObjectReference reference_to(const T& object) {
  return {T::kGvk.api_version(), std::string(T::kGvk.kind), object.metadata.ns,
          object.metadata.name,  object.metadata.uid,       object.metadata.resource_version};
}

struct EventSeries {
  std::int32_t count = 0;
  std::optional<json::MicroTime> last_observed_time;
  bool operator==(const EventSeries&) const = default;
};

/// events.k8s.io/v1. The API server requires eventTime, reportingController, reportingInstance, action, reason and
/// type.
struct Event {
  static constexpr Gvk kGvk{"events.k8s.io", "v1", "Event", "events", true};
  ObjectMeta metadata;
  std::optional<json::MicroTime> event_time;
  std::optional<EventSeries> series;
  std::string reporting_controller;
  std::string reporting_instance;
  std::string action;
  std::string reason;
  std::string type;  ///< "Normal" or "Warning".
  std::string note;  ///< At most 1024 bytes.
  ObjectReference regarding;
  bool operator==(const Event&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct Schema<api::ObjectReference> {
  static auto fields() {
    using T = api::ObjectReference;
    return std::tuple{optional("apiVersion", &T::api_version),
                      optional("kind", &T::kind),
                      optional("namespace", &T::ns),
                      optional("name", &T::name),
                      optional("uid", &T::uid),
                      optional("resourceVersion", &T::resource_version)};
  }
};

template <>
struct Schema<api::EventSeries> {
  static auto fields() {
    using T = api::EventSeries;
    return std::tuple{always("count", &T::count), optional("lastObservedTime", &T::last_observed_time)};
  }
};

template <>
struct Schema<api::Event> {
  static auto fields() {
    using T = api::Event;
    return std::tuple{optional("metadata", &T::metadata),
                      optional("eventTime", &T::event_time),
                      optional("series", &T::series),
                      optional("reportingController", &T::reporting_controller),
                      optional("reportingInstance", &T::reporting_instance),
                      optional("action", &T::action),
                      optional("reason", &T::reason),
                      optional("type", &T::type),
                      optional("note", &T::note),
                      optional("regarding", &T::regarding)};
  }
};

extern template struct Codec<api::Event>;

}  // namespace fabric::json
