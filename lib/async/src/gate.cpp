#include "gate.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace fabric::async {

Task<bool> cancelled() {
  const auto state = co_await boost::asio::this_coro::cancellation_state;
  co_return state.cancelled() != boost::asio::cancellation_type::none;
}

namespace detail {

Task<void> Gate::next_wake() {
  // A coroutine that was not started by a TaskGroup would otherwise be thrown out of its next co_await.
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
}

Task<void> Gate::wait_open(std::shared_ptr<Gate> gate) {
  while (!gate->open_)
    co_await gate->next_wake();
}

Task<Result<bool>> Gate::wait(std::shared_ptr<Gate> gate, Clock* clock, SteadyTime deadline, bool consume) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  auto expired = std::make_shared<bool>(false);
  Timer timer;
  if (clock != nullptr) {
    timer = clock->call_at(deadline, [gate, expired] {
      *expired = true;
      gate->wake();
    });
  }
  while (true) {
    if (co_await cancelled()) co_return co_await yield_cancelled();
    if (gate->open_) {
      if (consume) gate->open_ = false;
      co_return true;
    }
    if (*expired) co_return false;
    co_await gate->next_wake();
  }
}

Task<std::unexpected<Error>> yield_cancelled() {
  const auto executor = co_await boost::asio::this_coro::executor;
  co_await boost::asio::post(executor, boost::asio::use_awaitable);
  co_return fail(Errc::cancelled, "shutting down");
}

}  // namespace detail
}  // namespace fabric::async
