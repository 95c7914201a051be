#include <fabric/gateway/retry.hpp>
#include <fabric/telemetry/log.hpp>

namespace fabric::gateway {

namespace {

constexpr async::Backoff kBackoff{.initial = Duration{500}, .max = Duration{10'000}};

}  // namespace

void Retry::note(const Result<void>& outcome, async::SteadyTime now, double random) {
  if (outcome) {
    if (failures_ > 0) log::info("works again", {{"what", what_}});
    failures_ = 0;
    failure_.clear();
    return;
  }
  if (failures_ == 0) log::warn("fails; it is tried again", {{"what", what_}, {"error", outcome.error().message()}});
  next_ = now + kBackoff.delay(failures_++, random);
  failure_ = outcome.error().message();
}

}  // namespace fabric::gateway
