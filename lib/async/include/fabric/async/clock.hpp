#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace fabric::async {

/// Monotonic time, for durations and deadlines.
using SteadyTime = std::chrono::steady_clock::time_point;

/// A pending call of Clock::call_at; dropping it cancels the call.
using Timer = std::shared_ptr<void>;

/// Where time comes from. Loops take a `Clock&`, so that tests drive them with ManualClock instead of sleeping. All
/// functions belong to the io thread.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  virtual TimePoint now() const = 0;
  virtual SteadyTime steady() const = 0;
  /// Calls `due` on the io thread once `at` is reached (never before call_at has returned), unless the Timer was
  /// dropped before. SteadyTime::max() never comes.
  virtual Timer call_at(SteadyTime at, std::function<void()> due) = 0;
};

/// The clocks of the machine.
class SystemClock final : public Clock {
 public:
  explicit SystemClock(Executor executor) : executor_(std::move(executor)) {}

  TimePoint now() const override;
  SteadyTime steady() const override;
  Timer call_at(SteadyTime at, std::function<void()> due) override;

 private:
  Executor executor_;
};

/// Time that stands still until a test advances it.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint(std::chrono::seconds(1'700'000'000))) : now_(start) {}

  TimePoint now() const override { return now_; }

  SteadyTime steady() const override { return steady_; }

  Timer call_at(SteadyTime at, std::function<void()> due) override;

  /// Moves both clocks and calls what is due, in order of time. Coroutines that it wakes run when the io_context runs
  /// next; TestLoop::advance does both.
  void advance(Duration by);

  /// The earliest pending timer, if any.
  std::optional<SteadyTime> next_due() const;

 private:
  using Due = std::function<void()>;

  TimePoint now_;
  SteadyTime steady_{std::chrono::hours(1)};
  std::multimap<SteadyTime, std::weak_ptr<Due>> timers_;
};

/// Waits; Errc::cancelled when the coroutine is cancelled before the time is reached.
Task<Result<void>> sleep_until(Clock& clock, SteadyTime at);
Task<Result<void>> sleep_for(Clock& clock, Duration duration);
/// The same by the machine's clock, for shells without a Clock at hand.
Task<Result<void>> sleep_for(Duration duration);

/// A point in monotonic time until which an operation may take.
struct Deadline {
  SteadyTime at;

  static Deadline after(Duration duration) { return {std::chrono::steady_clock::now() + duration}; }

  static Deadline never() { return {SteadyTime::max()}; }

  /// Zero once it has passed.
  Duration remaining(SteadyTime now) const;

  bool operator==(const Deadline&) const = default;
};

}  // namespace fabric::async
