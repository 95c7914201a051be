#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <memory>

namespace fabric::async {

namespace detail {
class Gate;
}

/// A latched wake-up for one consumer, as a reconcile loop needs: notifications between two waits coalesce into one,
/// and none is lost. All functions belong to the io thread (from another thread: post to the executor first). A waiter
/// that was cancelled does not consume a notification.
class Notifier {
 public:
  explicit Notifier(Executor executor);
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier();

  void notify();

  /// Returns once notified since the last wait; Errc::cancelled.
  Task<Result<void>> wait();
  /// True when notified, false when the deadline came first; Errc::cancelled.
  Task<Result<bool>> wait_until(Clock& clock, SteadyTime deadline);
  Task<Result<bool>> wait_for(Clock& clock, Duration duration);

 private:
  std::shared_ptr<detail::Gate> gate_;
};

/// A condition that is set once or repeatedly and that many coroutines may wait for. Stays set until cleared.
class Event {
 public:
  explicit Event(Executor executor);
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  void set();
  void clear();
  bool is_set() const;

  /// Returns once set; Errc::cancelled.
  Task<Result<void>> wait();
  /// True when set, false when the deadline came first; Errc::cancelled.
  Task<Result<bool>> wait_until(Clock& clock, SteadyTime deadline);

 private:
  std::shared_ptr<detail::Gate> gate_;
};

}  // namespace fabric::async
