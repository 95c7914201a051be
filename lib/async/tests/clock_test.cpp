#include <fabric/async/clock.hpp>
#include <fabric/async/testing.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace fabric::async {
namespace {

using std::chrono::seconds;

Task<Result<void>> tick(Clock& clock, int times, Duration period, std::vector<TimePoint>& seen) {
  for (int i = 0; i < times; ++i) {
    FABRIC_CO_CHECK(co_await sleep_for(clock, period));
    seen.push_back(clock.now());
  }
  co_return Result<void>();
}

TEST(ManualClock, ReleasesSleepersOnlyWhenTheirTimeHasCome) {
  TestLoop loop;
  std::vector<TimePoint> seen;
  std::optional<Result<void>> done;
  loop.start(tick(loop.clock(), 1, seconds(5), seen), done);
  loop.advance(Duration(4999));
  EXPECT_FALSE(done);
  loop.advance(Duration(1));
  EXPECT_TRUE(done);
}

TEST(ManualClock, ALoopSeesEachOfItsTicksInOneLongAdvance) {
  TestLoop loop;
  const auto start = loop.clock().now();
  std::vector<TimePoint> seen;
  std::optional<Result<void>> done;
  loop.start(tick(loop.clock(), 3, seconds(2), seen), done);
  loop.advance(seconds(60));
  EXPECT_EQ(seen, (std::vector<TimePoint>{start + seconds(2), start + seconds(4), start + seconds(6)}));
  EXPECT_EQ(loop.clock().now(), start + seconds(60));
}

TEST(ManualClock, CallsTimersInOrderOfTimeAndForgetsDroppedOnes) {
  ManualClock clock;
  std::vector<int> calls;
  const auto at = [&](int second, int id) {
    return clock.call_at(clock.steady() + seconds(second), [&calls, id] { calls.push_back(id); });
  };
  const auto late = at(3, 3);
  auto dropped = at(2, 2);
  const auto early = at(1, 1);
  dropped.reset();
  clock.advance(seconds(10));
  EXPECT_EQ(calls, (std::vector<int>{1, 3}));
  EXPECT_FALSE(clock.next_due());
}

TEST(ManualClock, ATimerMayStartAnotherThatIsAlreadyDue) {
  ManualClock clock;
  int calls = 0;
  Timer inner;
  const auto outer =
      clock.call_at(clock.steady() + seconds(1), [&] { inner = clock.call_at(clock.steady(), [&] { ++calls; }); });
  clock.advance(seconds(1));
  EXPECT_EQ(calls, 1);
}

TEST(SystemClock, CallsWhatIsDueOnceAndNotWhatWasDropped) {
  boost::asio::io_context io;
  SystemClock clock(io.get_executor());
  int kept_calls = 0;
  int dropped_calls = 0;
  const auto kept = clock.call_at(clock.steady(), [&] { ++kept_calls; });
  auto dropped = clock.call_at(clock.steady(), [&] { ++dropped_calls; });
  EXPECT_EQ(kept_calls, 0) << "never before call_at has returned";
  dropped.reset();
  io.run();
  EXPECT_EQ(kept_calls, 1);
  EXPECT_EQ(dropped_calls, 0);
}

TEST(SystemClock, SleepsByTheMachinesClock) {
  TestLoop loop;
  EXPECT_TRUE(loop.run_blocking(sleep_for(Duration(1))));
}

TEST(Deadline, RemainingIsRoundedUpAndNeverNegative) {
  const SteadyTime now{seconds(100)};
  EXPECT_EQ((Deadline{now + std::chrono::microseconds(1500)}.remaining(now)), Duration(2));
  EXPECT_EQ((Deadline{now - seconds(1)}.remaining(now)), Duration(0));
}

}  // namespace
}  // namespace fabric::async
