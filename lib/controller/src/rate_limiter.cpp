#include <fabric/controller/rate_limiter.hpp>

#include <algorithm>

namespace fabric::controller {

Duration RateLimiter::when(const kube::ObjectKey& key) {
  // 2^40 x 1 ms is beyond any maximum that makes sense, and the shift below stays defined.
  constexpr int kMaxDoublings = 40;
  const int failures = failures_[key]++;
  const auto factor = Duration::rep{1} << std::min(failures, kMaxDoublings);
  if (options_.base.count() > 0 && factor > options_.max / options_.base) return options_.max;
  return std::min(options_.max, options_.base * factor);
}

int RateLimiter::failures(const kube::ObjectKey& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

}  // namespace fabric::controller
