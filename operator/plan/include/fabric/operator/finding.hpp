#pragma once

#include <string>
#include <vector>

namespace fabric::operators {

/// Something that a planner noticed. The shell turns findings into conditions and events.
struct Finding {
  enum class Severity { notice, blocking };
  Severity severity = Severity::notice;
  std::string reason{};   ///< CamelCase, as conditions want it.
  std::string message{};  ///< Names object, field, value and remedy.
  auto operator<=>(const Finding&) const = default;
};

inline const Finding* first_blocking(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    if (finding.severity == Finding::Severity::blocking) return &finding;
  }
  return nullptr;
}

}  // namespace fabric::operators
