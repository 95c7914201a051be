#include <fabric/async/testing.hpp>
#include <fabric/async/timeout.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gtest/gtest.h>

#include <stdexcept>

namespace fabric::async {
namespace {

using std::chrono::seconds;

Task<Result<int>> answer_after(Clock& clock, Duration duration, int answer) {
  FABRIC_CO_CHECK(co_await sleep_for(clock, duration));
  co_return answer;
}

TEST(WithTimeout, PassesTheAnswerThrough) {
  TestLoop loop;
  std::optional<Result<int>> result;
  loop.start(with_timeout(answer_after(loop.clock(), seconds(1), 7), loop.clock(), seconds(2)), result);
  loop.advance(seconds(1));
  ASSERT_TRUE(result);
  EXPECT_EQ(**result, 7);
}

TEST(WithTimeout, CancelsATaskThatIsTooSlow) {
  TestLoop loop;
  std::optional<Result<int>> result;
  loop.start(with_timeout(answer_after(loop.clock(), seconds(5), 7), loop.clock(), seconds(2)), result);
  loop.advance(seconds(2));
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code, Errc::timeout);
  EXPECT_EQ(result->error().context, "no answer within 2000 ms");
}

TEST(WithTimeout, KeepsTheTasksOwnError) {
  TestLoop loop;
  const auto failing = []() -> Task<Result<int>> { co_return fail(Errc::forbidden, "no"); };
  const auto result = loop.run(with_timeout(failing(), loop.clock(), seconds(2)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::forbidden);
}

TEST(WithTimeout, TurnsAnExceptionIntoAnError) {
  TestLoop loop;
  const auto throwing = []() -> Task<Result<int>> {
    throw std::runtime_error("boom");
    co_return 1;
  };
  const auto result = loop.run(with_timeout(throwing(), loop.clock(), seconds(2)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::internal);
  EXPECT_EQ(result.error().context, "uncaught exception: boom");
}

TEST(WithTimeout, IsCancelledWithItsCaller) {
  TestLoop loop;
  std::optional<Result<int>> result;
  const auto root = [](TestLoop& l, std::optional<Result<int>>& r) -> Task<void> {
    r.emplace(co_await with_timeout(answer_after(l.clock(), seconds(5), 7), l.clock(), seconds(9)));
  };
  loop.group().spawn("caller", root(loop, result));
  loop.settle();
  loop.group().stop();
  loop.settle();
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code, Errc::cancelled);
  EXPECT_TRUE(loop.group().running().empty());
}

TEST(WithTimeout, RepeatsTheCancellationForAWaitThatStartsLater) {
  TestLoop loop;
  // As an operation of Asio's own does that is between two steps when the cancellation comes.
  const auto late = [](Clock& clock) -> Task<Result<int>> {
    auto slept = co_await sleep_for(clock, seconds(10));
    ignore(slept, "only the cancellation ends it");
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, SteadyTime::max());
    const auto [error] = co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    co_return fail(Errc::cancelled, "{}", error.message());
  };
  auto inner = with_timeout(late(loop.clock()), Duration(20'000));
  const auto result = loop.run_blocking(with_timeout(std::move(inner), Duration(1)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::timeout);
}

TEST(WithTimeout, NestedTimeoutsAnswerByTheShorter) {
  TestLoop loop;
  std::optional<Result<int>> result;
  auto inner = with_timeout(answer_after(loop.clock(), seconds(9), 7), loop.clock(), seconds(8));
  loop.start(with_timeout(std::move(inner), loop.clock(), seconds(2)), result);
  loop.advance(seconds(2));
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code, Errc::timeout);
}

TEST(WithTimeout, ADeadlineInThePastEndsTheTask) {
  TestLoop loop;
  std::optional<Result<int>> result;
  const auto past = loop.clock().steady() - seconds(1);
  loop.start(with_deadline(answer_after(loop.clock(), seconds(5), 7), loop.clock(), past), result);
  loop.advance(Duration(0));
  ASSERT_TRUE(result);
  ASSERT_FALSE(*result);
  EXPECT_EQ(result->error().code, Errc::timeout);
}

TEST(WithTimeout, WorksByTheMachinesClock) {
  TestLoop loop;
  const auto result = loop.run_blocking(with_timeout(answer_after(loop.clock(), seconds(5), 7), Duration(5)));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::timeout);
}

}  // namespace
}  // namespace fabric::async
