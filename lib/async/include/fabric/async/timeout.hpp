#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/detail/child.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <utility>

namespace fabric::async {

/// Runs a task and cancels it when the deadline passes; then the answer is Errc::timeout. Always waits for the task to
/// end, so the task may refer to the caller's frame. A task that succeeds in spite of the cancellation counts as a
/// success. Exceptions of the task become Errc::internal.
template <class T>
Task<Result<T>> with_deadline(Task<Result<T>> task, Clock& clock, SteadyTime deadline) {
  co_return co_await detail::run_child<T>(std::move(task), &clock, deadline);
}

template <class T>
Task<Result<T>> with_timeout(Task<Result<T>> task, Clock& clock, Duration limit) {
  co_return co_await detail::run_child<T>(std::move(task), &clock, clock.steady() + limit);
}

/// By the machine's clock.
template <class T>
Task<Result<T>> with_timeout(Task<Result<T>> task, Duration limit) {
  co_return co_await detail::run_child<T>(std::move(task), nullptr, std::chrono::steady_clock::now() + limit);
}

}  // namespace fabric::async
