#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <exception>

namespace fabric::async::detail {

/// Every coroutine that this module starts runs inside this one: without it, Asio throws operation_aborted from the
/// next co_await after a cancellation, whatever completion token that co_await uses.
Task<void> without_throwing(Task<void> body);

/// How often a cancellation is repeated until the coroutine has ended. Asio emits a cancellation to the operation under
/// way and forgets it: one that arrives between two steps of a composed operation (TLS reads a record in several) or
/// just before an operation starts would otherwise leave that operation waiting for ever.
inline constexpr Duration kRepeatCancellation{50};

/// What an exception that left a coroutine means. A coroutine that was cancelled before its first turn ends by Asio's
/// operation_aborted exception: that is Errc::cancelled.
Error error_of(const std::exception_ptr& thrown);

}  // namespace fabric::async::detail
