#include <fabric/telemetry/health.hpp>

#include <algorithm>
#include <utility>

namespace fabric::telemetry {

void Health::set(const std::string& condition, bool ready, std::string reason) {
  conditions_[condition] = {ready, std::move(reason)};
}

void Health::remove(const std::string& condition) {
  conditions_.erase(condition);
}

bool Health::ready() const {
  return !conditions_.empty() &&
         std::ranges::all_of(conditions_, [](const auto& condition) { return condition.second.ready; });
}

std::string Health::report() const {
  std::string text;
  for (const auto& [name, condition] : conditions_) {
    text += name + (condition.ready ? " ok" : " waiting");
    if (!condition.reason.empty()) text += ": " + condition.reason;
    text += '\n';
  }
  return text;
}

}  // namespace fabric::telemetry
