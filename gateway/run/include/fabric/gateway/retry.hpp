#pragma once

#include <fabric/async/backoff.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <string>

namespace fabric::gateway {

/// When something that failed is due again. What fails is skipped until then and holds up nothing else. Logs the first
/// failure in a row and the end of it. A value.
class Retry {
 public:
  /// `what` completes "... fails" in a log line.
  explicit Retry(std::string what) : what_(std::move(what)) {}

  bool due(async::SteadyTime now) const { return failures_ == 0 || next_ <= now; }

  /// Takes the outcome of a try. `random` is uniform in [0, 1).
  void note(const Result<void>& outcome, async::SteadyTime now, double random);

  /// Of the last try; empty when it succeeded.
  const std::string& failure() const { return failure_; }

 private:
  std::string what_;
  std::string failure_;
  unsigned failures_ = 0;
  async::SteadyTime next_{};
};

}  // namespace fabric::gateway
