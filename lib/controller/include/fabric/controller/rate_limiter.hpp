#pragma once

#include <fabric/base/time.hpp>
#include <fabric/kube/resource.hpp>

#include <map>

namespace fabric::controller {

struct RateLimiterOptions {
  Duration base{5};
  Duration max{1'000'000};  ///< 1000 s.
};

/// Per-item exponential delays, as client-go's ItemExponentialFailureRateLimiter: base, 2 x base, 4 x base... up to
/// max.
class RateLimiter {
 public:
  explicit RateLimiter(RateLimiterOptions options = {}) : options_(options) {}

  /// The delay before the next try of this item; counts one failure.
  Duration when(const kube::ObjectKey& key);

  /// The item succeeded: the next failure starts from `base`.
  void forget(const kube::ObjectKey& key) { failures_.erase(key); }

  int failures(const kube::ObjectKey& key) const;

 private:
  RateLimiterOptions options_;
  std::map<kube::ObjectKey, int> failures_;
};

}  // namespace fabric::controller
