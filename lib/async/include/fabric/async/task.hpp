#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace fabric::async {

/// A coroutine. Parameters are taken by value, or by reference to something that outlives the await. A Task runs on the
/// io thread of its executor, never on two threads.
///
/// Cancellation: every waiting function of this module answers Errc::cancelled once the coroutine was cancelled (by
/// TaskGroup::stop or a timeout), and keeps doing so; a loop returns when it sees that code. Nothing throws: TaskGroup
/// and with_timeout switch off Asio's habit of throwing operation_aborted from the next co_await.
template <class T = void>
using Task = boost::asio::awaitable<T>;

using Executor = boost::asio::any_io_executor;

/// Whether the calling coroutine was cancelled.
Task<bool> cancelled();

}  // namespace fabric::async
