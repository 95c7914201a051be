#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/script.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace fabric::kernel {

enum class Outcome : std::uint8_t {
  done,
  failed,
  skipped,  ///< A step that it depends on failed; Error::context of this result names that step.
};

struct StepResult {
  Outcome outcome = Outcome::done;
  std::optional<Error> error;  ///< Present unless done. Begins with the description of the step.
};

/// What became of a script.
struct Report {
  std::vector<StepResult> results;  ///< results[i] belongs to script.steps[i].

  bool ok() const {
    return std::ranges::all_of(results, [](const StepResult& r) { return r.outcome == Outcome::done; });
  }

  std::size_t count(Outcome outcome) const {
    return static_cast<std::size_t>(std::ranges::count(results, outcome, &StepResult::outcome));
  }

  /// The first failure, which is the one to show; null when all is done.
  const Error* first_error() const {
    for (const auto& result : results) {
      if (result.outcome == Outcome::failed) return &*result.error;
    }
    return nullptr;
  }
};

}  // namespace fabric::kernel
