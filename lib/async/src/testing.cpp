#include <fabric/async/testing.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "guard.hpp"

namespace fabric::async {

void TestLoop::settle() {
  io_.restart();
  io_.poll();
}

void TestLoop::advance(Duration by) {
  const auto until = clock_.steady() + by;
  settle();
  while (const auto next = clock_.next_due()) {
    if (*next > until) break;
    // Rounded up, so that a timer between two milliseconds is reached.
    clock_.advance(std::chrono::ceil<Duration>(*next - clock_.steady()));
    settle();
  }
  if (clock_.steady() < until) clock_.advance(std::chrono::ceil<Duration>(until - clock_.steady()));
  settle();
}

void TestLoop::start(Task<void> task) {
  boost::asio::co_spawn(io_, detail::without_throwing(std::move(task)), boost::asio::detached);
}

}  // namespace fabric::async
