#include <fabric/async/event.hpp>
#include <fabric/async/testing.hpp>

#include <gtest/gtest.h>

namespace fabric::async {
namespace {

using std::chrono::seconds;

TEST(Notifier, ANotificationBeforeTheWaitIsNotLostAndSeveralAreOne) {
  TestLoop loop;
  Notifier notifier(loop.executor());
  notifier.notify();
  notifier.notify();
  EXPECT_TRUE(*loop.run(notifier.wait_for(loop.clock(), seconds(1))));
  std::optional<Result<bool>> second;
  loop.start(notifier.wait_for(loop.clock(), seconds(1)), second);
  loop.settle();
  EXPECT_FALSE(second);
  loop.advance(seconds(1));
  ASSERT_TRUE(second);
  EXPECT_FALSE(**second);
}

TEST(Notifier, WakesAWaiterBeforeItsDeadline) {
  TestLoop loop;
  Notifier notifier(loop.executor());
  std::optional<Result<bool>> woken;
  loop.start(notifier.wait_for(loop.clock(), seconds(5)), woken);
  loop.advance(seconds(1));
  notifier.notify();
  loop.settle();
  ASSERT_TRUE(woken);
  EXPECT_TRUE(**woken);
}

TEST(Notifier, ACancelledWaiterLeavesTheNotification) {
  TestLoop loop;
  Notifier notifier(loop.executor());
  std::optional<Result<void>> outcome;
  const auto waiter = [](Notifier& n, std::optional<Result<void>>& o) -> Task<void> { o.emplace(co_await n.wait()); };
  loop.group().spawn("waiter", waiter(notifier, outcome));
  loop.settle();
  loop.group().stop();
  notifier.notify();
  loop.settle();
  ASSERT_TRUE(outcome);
  ASSERT_FALSE(*outcome);
  EXPECT_EQ(outcome->error().code, Errc::cancelled);
  EXPECT_TRUE(loop.run(notifier.wait()));
}

TEST(Event, WakesEveryWaiterAndStaysSetUntilCleared) {
  TestLoop loop;
  Event event(loop.executor());
  std::optional<Result<void>> first;
  std::optional<Result<void>> second;
  loop.start(event.wait(), first);
  loop.start(event.wait(), second);
  loop.settle();
  EXPECT_FALSE(first || second);
  event.set();
  loop.settle();
  EXPECT_TRUE(first && second);
  EXPECT_TRUE(loop.run(event.wait()));
  event.clear();
  std::optional<Result<bool>> third;
  loop.start(event.wait_until(loop.clock(), loop.clock().steady() + seconds(1)), third);
  loop.advance(seconds(1));
  ASSERT_TRUE(third);
  EXPECT_FALSE(**third);
}

}  // namespace
}  // namespace fabric::async
