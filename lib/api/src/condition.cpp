#include <fabric/api/condition.hpp>

#include <algorithm>

namespace fabric::api {

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::ranges::find(conditions, type, &Condition::type);
  return found == conditions.end() ? nullptr : &*found;
}

bool is_true(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* found = find_condition(conditions, type);
  return found != nullptr && found->status == ConditionStatus::yes;
}

bool set_condition(std::vector<Condition>& conditions, Condition condition, TimePoint now) {
  condition.last_transition_time = now;
  const auto found = std::ranges::find(conditions, condition.type, &Condition::type);
  if (found == conditions.end()) {
    conditions.push_back(std::move(condition));
    return true;
  }
  if (found->status == condition.status && found->last_transition_time) {
    condition.last_transition_time = found->last_transition_time;
  }
  if (*found == condition) return false;
  *found = std::move(condition);
  return true;
}

bool remove_condition(std::vector<Condition>& conditions, std::string_view type) {
  return std::erase_if(conditions, [&](const Condition& condition) { return condition.type == type; }) > 0;
}

bool set_progress(std::vector<Condition>& conditions, Progress progress, std::string_view reason,
                  std::string_view message, std::int64_t observed_generation, TimePoint now) {
  const auto verdict = [&](std::string_view type, bool holds) {
    return set_condition(conditions,
                         {.type = std::string(type),
                          .status = holds ? ConditionStatus::yes : ConditionStatus::no,
                          .observed_generation = observed_generation,
                          .last_transition_time = {},
                          .reason = std::string(reason),
                          .message = std::string(message)},
                         now);
  };
  const auto only_while = [&](std::string_view type, bool holds) {
    return holds ? verdict(type, true) : remove_condition(conditions, type);
  };
  bool changed = verdict(kReady, progress == Progress::ready);
  changed |= only_while(kReconciling, progress == Progress::reconciling);
  changed |= only_while(kStalled, progress == Progress::stalled);
  return changed;
}

}  // namespace fabric::api

namespace fabric::json {
template struct Codec<api::Condition>;
}  // namespace fabric::json
