#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/base/assert.hpp>
#include <fabric/base/error.hpp>

#include <boost/asio/io_context.hpp>

#include <optional>
#include <string>
#include <utility>

namespace fabric::async {

/// For tests: a loop with a clock that stands still. Nothing sleeps; "waiting" is running until nothing is ready.
class TestLoop {
 public:
  boost::asio::io_context& io() { return io_; }

  Executor executor() { return io_.get_executor(); }

  ManualClock& clock() { return clock_; }

  TaskGroup& group() { return group_; }

  /// Runs everything that is ready.
  void settle();
  /// Advances the clock from timer to timer, and lets coroutines run after each.
  void advance(Duration by);

  /// Runs a task that needs no time to pass; asserts that it ended.
  template <class T>
  Result<T> run(Task<Result<T>> task) {
    std::optional<Result<T>> result;
    start(keep(std::move(task), result));
    settle();
    FABRIC_ASSERT(result.has_value());
    return std::move(*result);
  }

  /// Starts a task whose outcome appears in `result`.
  template <class T>
  void start(Task<Result<T>> task, std::optional<Result<T>>& result) {
    start(keep(std::move(task), result));
  }

  /// Runs a task that needs real I/O or another thread; blocks until it ended.
  template <class T>
  Result<T> run_blocking(Task<Result<T>> task) {
    std::optional<Result<T>> result;
    start(keep(std::move(task), result));
    io_.restart();
    while (!result && io_.run_one() > 0) {
    }
    FABRIC_ASSERT(result.has_value());
    return std::move(*result);
  }

 private:
  template <class T>
  static Task<void> keep(Task<Result<T>> task, std::optional<Result<T>>& result) {
    result.emplace(co_await std::move(task));
  }

  void start(Task<void> task);

  ManualClock clock_;
  boost::asio::io_context io_{1};
  TaskGroup group_{io_.get_executor()};
};

}  // namespace fabric::async
