#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <optional>
#include <utility>

namespace fabric::async::detail {

/// Runs `body` as a coroutine of its own and waits for its end; cancels it at the deadline (by `clock`, or by the
/// machine's when null) and when the caller is cancelled. The error says which of the two it was, or what was thrown.
Task<Result<void>> supervise(Task<void> body, Clock* clock, SteadyTime deadline);

template <class T>
Task<void> store(Task<Result<T>> task, std::optional<Result<T>>& result) {
  result.emplace(co_await std::move(task));
}

template <class T>
Task<Result<T>> run_child(Task<Result<T>> task, Clock* clock, SteadyTime deadline) {
  std::optional<Result<T>> result;
  auto ended = co_await supervise(store(std::move(task), result), clock, deadline);
  const bool own_answer = result && (*result || result->error().code != Errc::cancelled);
  if (own_answer || (ended && result)) co_return std::move(*result);
  if (!ended) co_return std::unexpected(std::move(ended).error());
  co_return fail(Errc::internal, "a task ended without a result");
}

}  // namespace fabric::async::detail
