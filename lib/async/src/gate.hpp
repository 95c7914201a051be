#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace fabric::async::detail {

/// The one waiting primitive of this module: a flag that coroutines wait for. Built on a timer that never fires and is
/// cancelled to wake its waiters, which is what Asio offers for this.
class Gate {
 public:
  explicit Gate(const Executor& executor) : timer_(executor, SteadyTime::max()) {}

  void open() {
    open_ = true;
    wake();
  }

  void close() { open_ = false; }

  bool is_open() const { return open_; }

  /// Lets waiters look again at what they wait for.
  void wake() { timer_.cancel(); }

  const Executor& executor() { return executor_; }

  /// Returns at the next wake(), possibly spuriously, and when the coroutine is cancelled.
  Task<void> next_wake();

  /// Waits until open, however often the coroutine is cancelled.
  static Task<void> wait_open(std::shared_ptr<Gate> gate);

  /// True once open, false when the deadline came first; Errc::cancelled. `clock` may be null for no deadline. Closes
  /// the gate behind the waiter when `consume`.
  static Task<Result<bool>> wait(std::shared_ptr<Gate> gate, Clock* clock, SteadyTime deadline, bool consume);

 private:
  boost::asio::steady_timer timer_;
  Executor executor_ = timer_.get_executor();
  bool open_ = false;
};

/// Gives way to the loop and answers Errc::cancelled. Giving way keeps a loop that ignores the answer from blocking the
/// io thread, so that the shutdown deadline of its TaskGroup can still name it.
Task<std::unexpected<Error>> yield_cancelled();

}  // namespace fabric::async::detail
