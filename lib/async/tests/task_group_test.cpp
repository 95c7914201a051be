#include <fabric/async/event.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>

namespace fabric::async {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Task<Result<void>> tick_until_cancelled(Clock& clock, int& ticks) {
  while (true) {
    FABRIC_CO_CHECK(co_await sleep_for(clock, seconds(1)));
    ++ticks;
  }
}

Task<Result<void>> fail_with(Error error) {
  co_return std::unexpected(std::move(error));
}

Task<Result<void>> never_stop(Event& event) {
  while (!event.is_set()) {
    auto woken = co_await event.wait();
    ignore(woken, "this root ignores its cancellation, which is what the test is about");
  }
  co_return Result<void>();
}

/// As an operation of Asio's own does that is between two steps when the cancellation comes.
Task<Result<void>> wait_that_starts_after_a_cancellation(Clock& clock) {
  auto slept = co_await sleep_for(clock, seconds(10));
  ignore(slept, "only the cancellation ends it");
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, SteadyTime::max());
  const auto [error] = co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return fail(Errc::cancelled, "{}", error.message());
}

TEST(TaskGroup, StopEndsEveryRootWithoutAnError) {
  TestLoop loop;
  int ticks = 0;
  loop.group().spawn("a", tick_until_cancelled(loop.clock(), ticks));
  loop.group().spawn("b", tick_until_cancelled(loop.clock(), ticks));
  loop.advance(seconds(2));
  EXPECT_EQ(ticks, 4);
  EXPECT_THAT(loop.group().running(), ElementsAre("a", "b"));
  loop.group().stop();
  loop.settle();
  EXPECT_THAT(loop.group().running(), IsEmpty());
  EXPECT_TRUE(loop.group().outcome());
}

TEST(TaskGroup, ARootThatFailsIsLoggedAndStopsTheGroup) {
  const log::Capture log;
  TestLoop loop;
  int ticks = 0;
  loop.group().spawn("ticker", tick_until_cancelled(loop.clock(), ticks));
  loop.group().spawn("broken", fail_with({Errc::forbidden, "no rights", {}}));
  loop.settle();
  EXPECT_TRUE(loop.group().stopping());
  EXPECT_THAT(loop.group().running(), IsEmpty());
  ASSERT_FALSE(loop.group().outcome());
  EXPECT_EQ(loop.group().outcome().error().code, Errc::forbidden);
  EXPECT_EQ(loop.group().outcome().error().context, "broken: no rights");
  EXPECT_THAT(log.text(), HasSubstr(R"("message":"task failed","task":"broken")"));
}

TEST(TaskGroup, AnExceptionOfARootIsAFailure) {
  const log::Capture log;
  TestLoop loop;
  const auto throwing = []() -> Task<void> {
    throw std::runtime_error("boom");
    co_return;
  };
  loop.group().spawn("thrower", throwing());
  loop.settle();
  ASSERT_FALSE(loop.group().outcome());
  EXPECT_EQ(loop.group().outcome().error().context, "thrower: uncaught exception: boom");
}

TEST(TaskGroup, ARootThatEndsWellLeavesTheOthersRunning) {
  TestLoop loop;
  int ticks = 0;
  const auto nothing = []() -> Task<Result<void>> { co_return Result<void>(); };
  loop.group().spawn("ticker", tick_until_cancelled(loop.clock(), ticks));
  loop.group().spawn("short", nothing());
  loop.settle();
  EXPECT_FALSE(loop.group().stopping());
  EXPECT_THAT(loop.group().running(), ElementsAre("ticker"));
}

TEST(TaskGroup, ARootThatIsSpawnedAfterStopDoesNotRunOn) {
  TestLoop loop;
  int ticks = 0;
  loop.group().stop();
  loop.group().spawn("late", tick_until_cancelled(loop.clock(), ticks));
  loop.advance(seconds(5));
  EXPECT_EQ(ticks, 0);
  EXPECT_THAT(loop.group().running(), IsEmpty());
  EXPECT_TRUE(loop.group().outcome());
}

TEST(TaskGroup, ACancelledRootCanStillAwaitItsCleanUp) {
  TestLoop loop;
  bool cleaned = false;
  const auto root = [](Clock& clock, bool& done) -> Task<void> {
    auto slept = co_await sleep_for(clock, seconds(10));
    ignore(slept, "only the cancellation ends it");
    const auto again = co_await sleep_for(clock, seconds(10));
    done = !again && again.error().code == Errc::cancelled;
  };
  loop.group().spawn("cleaner", root(loop.clock(), cleaned));
  loop.settle();
  loop.group().stop();
  loop.settle();
  EXPECT_TRUE(cleaned) << "a second wait answers cancelled instead of throwing";
}

TEST(TaskGroup, RepeatsTheCancellationForAWaitThatStartsLater) {
  TestLoop loop;
  loop.group().spawn("late", wait_that_starts_after_a_cancellation(loop.clock()));
  loop.settle();
  loop.group().stop();
  EXPECT_TRUE(loop.run_blocking(loop.group().join(seconds(10))));
}

TEST(TaskGroup, JoinNamesWhatStillRuns) {
  TestLoop loop;
  Event release(loop.executor());
  loop.group().spawn("stubborn", never_stop(release));
  loop.settle();
  loop.group().stop();
  const auto early = loop.run_blocking(loop.group().join(Duration(1)));
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Errc::timeout);
  EXPECT_EQ(early.error().context, "after 1 ms still running: stubborn");
  release.set();
  EXPECT_TRUE(loop.run_blocking(loop.group().join(seconds(10))));
}

TEST(TaskGroup, ADestroyedGroupCancelsItsRoots) {
  TestLoop loop;
  int ticks = 0;
  {
    TaskGroup component(loop.executor());
    component.spawn("part", tick_until_cancelled(loop.clock(), ticks));
    loop.settle();
  }
  loop.advance(seconds(5));
  EXPECT_EQ(ticks, 0);
}

TEST(RunUntilStopped, StopsOnSigterm) {
  const log::Capture log;
  boost::asio::io_context io;
  TaskGroup group(io.get_executor());
  SystemClock clock(io.get_executor());
  int ticks = 0;
  const auto killer = []() -> Task<void> {
    std::raise(SIGTERM);
    co_return;
  };
  group.spawn("ticker", tick_until_cancelled(clock, ticks));
  group.spawn("killer", killer());
  EXPECT_TRUE(run_until_stopped(io, group, seconds(10)));
  EXPECT_TRUE(group.running().empty());
  EXPECT_THAT(log.text(), HasSubstr(R"("signal":"SIGTERM")"));
}

TEST(RunUntilStopped, AbandonsRootsThatDoNotStopAndNamesThem) {
  const log::Capture log;
  boost::asio::io_context io;
  TaskGroup group(io.get_executor());
  Event release(io.get_executor());
  group.spawn("stubborn", never_stop(release));
  group.stop();
  EXPECT_TRUE(run_until_stopped(io, group, Duration(1)));
  EXPECT_THAT(log.text(), HasSubstr(R"("message":"tasks did not stop in time","tasks":"stubborn")"));
}

TEST(RunUntilStopped, ReturnsTheErrorOfTheFailedRoot) {
  const log::Capture log;
  boost::asio::io_context io;
  TaskGroup group(io.get_executor());
  group.spawn("broken", fail_with({Errc::invalid, "bad flag", {}}));
  const auto outcome = run_until_stopped(io, group, seconds(10));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().context, "broken: bad flag");
}

}  // namespace
}  // namespace fabric::async
