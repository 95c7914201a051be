#include <fabric/async/detail/child.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <memory>

#include "gate.hpp"
#include "guard.hpp"

namespace fabric::async::detail {

Task<void> without_throwing(Task<void> body) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  co_await std::move(body);
}

Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    if (e.code() == boost::asio::error::operation_aborted) return {Errc::cancelled, "shutting down", {}};
    return {Errc::internal, fmt::format("uncaught exception: {}", e.what()), {}};
  } catch (const std::exception& e) {
    return {Errc::internal, fmt::format("uncaught exception: {}", e.what()), {}};
  } catch (...) {
    return {Errc::internal, "uncaught exception of an unknown type", {}};
  }
}

namespace {

struct Child {
  explicit Child(const Executor& executor) : done(std::make_shared<Gate>(executor)) {}

  std::shared_ptr<Gate> done;
  boost::asio::cancellation_signal cancel;
  std::exception_ptr thrown;
  bool expired = false;
};

}  // namespace

Task<Result<void>> supervise(Task<void> body, Clock* clock, SteadyTime deadline) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  if (co_await cancelled()) co_return co_await yield_cancelled();
  const Executor executor = co_await boost::asio::this_coro::executor;
  SystemClock system(executor);
  Clock& time = clock != nullptr ? *clock : system;
  const auto started = time.steady();

  auto child = std::make_shared<Child>(executor);
  const auto finish = [child](const std::exception_ptr& thrown) {
    child->thrown = thrown;
    child->done->open();
  };
  boost::asio::co_spawn(executor, without_throwing(std::move(body)),
                        boost::asio::bind_cancellation_slot(child->cancel.slot(), finish));
  const Timer timer = time.call_at(deadline, [weak = std::weak_ptr(child)] {
    if (const auto alive = weak.lock()) {
      alive->expired = true;
      alive->done->wake();
    }
  });

  std::optional<Error> verdict;
  Timer again;
  while (!child->done->is_open()) {
    co_await child->done->next_wake();
    if (child->done->is_open()) break;
    if (verdict) {
      // Emitted again below.
    } else if (co_await cancelled()) {
      verdict = Error{Errc::cancelled, "shutting down", {}};
    } else if (child->expired) {
      const auto waited = std::chrono::duration_cast<Duration>(time.steady() - started);
      verdict = Error{Errc::timeout, fmt::format("no answer within {} ms", waited.count()), {}};
    }
    if (!verdict) continue;
    child->cancel.emit(boost::asio::cancellation_type::terminal);
    again = system.call_at(system.steady() + kRepeatCancellation, [done = child->done] { done->wake(); });
  }
  if (child->thrown && !verdict) verdict = error_of(child->thrown);
  if (verdict) co_return std::unexpected(std::move(*verdict));
  co_return Result<void>();
}

}  // namespace fabric::async::detail
