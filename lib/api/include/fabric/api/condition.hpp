#pragma once

#include <fabric/base/time.hpp>
#include <fabric/json/schema.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace fabric::api {

enum class ConditionStatus : std::uint8_t { unknown, yes, no };

/// metav1.Condition; also read from Nodes and Pods, which have no observedGeneration.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::unknown;
  std::optional<std::int64_t> observed_generation;
  std::optional<TimePoint> last_transition_time;
  std::string reason;   ///< CamelCase, required by the API server; stable, for programs.
  std::string message;  ///< For people: object, field, value, remedy.
  bool operator==(const Condition&) const = default;
};

/// Types of kstatus (kpt, Argo CD, `kubectl wait`): Reconciling and Stalled are present only while they are true.
inline constexpr std::string_view kReady = "Ready";
inline constexpr std::string_view kReconciling = "Reconciling";
inline constexpr std::string_view kStalled = "Stalled";

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type);
bool is_true(const std::vector<Condition>& conditions, std::string_view type);

/// Adds or replaces the condition of this type. lastTransitionTime becomes `now` when the status changed and keeps its
/// old value otherwise; whatever the argument carries there is ignored. Returns whether anything but the time differs.
bool set_condition(std::vector<Condition>& conditions, Condition condition, TimePoint now);

/// Removes the condition of this type; returns whether there was one.
bool remove_condition(std::vector<Condition>& conditions, std::string_view type);

/// The kstatus trio from one verdict.
enum class Progress : std::uint8_t { ready, reconciling, stalled };

/// Ready is True for ready and False otherwise; Reconciling or Stalled is True for that verdict and absent otherwise.
bool set_progress(std::vector<Condition>& conditions, Progress progress, std::string_view reason,
                  std::string_view message, std::int64_t observed_generation, TimePoint now);

}  // namespace fabric::api

namespace fabric::json {

template <>
struct EnumNames<api::ConditionStatus> {
  static constexpr auto names =
      std::to_array<std::pair<api::ConditionStatus, std::string_view>>({{api::ConditionStatus::yes, "True"},
                                                                        {api::ConditionStatus::no, "False"},
                                                                        {api::ConditionStatus::unknown, "Unknown"}});
  static constexpr auto fallback = api::ConditionStatus::unknown;
};

template <>
struct Schema<api::Condition> {
  static auto fields() {
    using T = api::Condition;
    return std::tuple{required("type", &T::type),
                      required("status", &T::status),
                      optional("observedGeneration", &T::observed_generation),
                      optional("lastTransitionTime", &T::last_transition_time),
                      always("reason", &T::reason),
                      always("message", &T::message)};
  }
};

extern template struct Codec<api::Condition>;

}  // namespace fabric::json
