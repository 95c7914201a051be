#pragma once

#include <fabric/base/time.hpp>

namespace fabric::async {

/// Exponential backoff with jitter, as a pure function.
struct Backoff {
  Duration initial{500};
  Duration max{30'000};
  double factor = 2.0;
  /// The part of the delay that is random: 0.5 means between 50 % and 100 % of the exponential value, so that agents
  /// which lost the same server do not return in step.
  double jitter = 0.5;

  /// The wait before retry number `attempt` (0 is the first retry). `random` is uniform in [0, 1).
  Duration delay(unsigned attempt, double random) const;
};

}  // namespace fabric::async
