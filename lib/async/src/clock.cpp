#include <fabric/async/clock.hpp>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>

#include "gate.hpp"

namespace fabric::async {

TimePoint SystemClock::now() const {
  return to_time_point(std::chrono::system_clock::now());
}

SteadyTime SystemClock::steady() const {
  return std::chrono::steady_clock::now();
}

Timer SystemClock::call_at(SteadyTime at, std::function<void()> due) {
  struct Pending {
    boost::asio::steady_timer timer;
    std::function<void()> due;
  };

  if (at == SteadyTime::max()) return nullptr;
  auto pending = std::make_shared<Pending>(boost::asio::steady_timer(executor_, at), std::move(due));
  pending->timer.async_wait([weak = std::weak_ptr(pending)](boost::system::error_code error) {
    // A timer that was dropped after it expired completes without an error: only the owner's absence tells.
    const auto alive = weak.lock();
    if (!error && alive) alive->due();
  });
  return pending;
}

Timer ManualClock::call_at(SteadyTime at, std::function<void()> due) {
  if (at == SteadyTime::max()) return nullptr;
  auto pending = std::make_shared<Due>(std::move(due));
  std::erase_if(timers_, [](const auto& entry) { return entry.second.expired(); });
  timers_.emplace(at, pending);
  return pending;
}

void ManualClock::advance(Duration by) {
  const auto until = steady_ + by;
  while (!timers_.empty() && timers_.begin()->first <= until) {
    const auto [at, weak] = *timers_.begin();
    timers_.erase(timers_.begin());
    const auto pending = weak.lock();
    if (!pending) continue;
    if (at > steady_) {
      const auto step = at - steady_;
      steady_ = at;
      now_ += std::chrono::duration_cast<Duration>(step);
    }
    (*pending)();
  }
  now_ += std::chrono::duration_cast<Duration>(until - steady_);
  steady_ = until;
}

std::optional<SteadyTime> ManualClock::next_due() const {
  for (const auto& [at, pending] : timers_) {
    if (!pending.expired()) return std::max(at, steady_);
  }
  return std::nullopt;
}

Task<Result<void>> sleep_until(Clock& clock, SteadyTime at) {
  auto gate = std::make_shared<detail::Gate>(co_await boost::asio::this_coro::executor);
  auto woken = co_await detail::Gate::wait(std::move(gate), &clock, at, false);
  if (!woken) co_return std::unexpected(std::move(woken).error());
  co_return Result<void>();
}

Task<Result<void>> sleep_for(Clock& clock, Duration duration) {
  co_return co_await sleep_until(clock, clock.steady() + duration);
}

Task<Result<void>> sleep_for(Duration duration) {
  SystemClock clock(co_await boost::asio::this_coro::executor);
  co_return co_await sleep_for(clock, duration);
}

Duration Deadline::remaining(SteadyTime now) const {
  if (at <= now) return Duration(0);
  return std::chrono::ceil<Duration>(at - now);
}

}  // namespace fabric::async
