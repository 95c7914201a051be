#include <fabric/async/testing.hpp>
#include <fabric/controller/queue_state.hpp>
#include <fabric/controller/rate_limiter.hpp>
#include <fabric/controller/work_queue.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace fabric::controller {
namespace {

using kube::ObjectKey;

const ObjectKey kA{"", "a"};
const ObjectKey kB{"", "b"};

TEST(QueueState, HandsOutInOrderAndMergesDuplicates) {
  QueueState queue;
  EXPECT_TRUE(queue.add(kB));
  EXPECT_TRUE(queue.add(kA));
  EXPECT_FALSE(queue.add(kB));
  EXPECT_EQ(queue.take(), kB);
  EXPECT_EQ(queue.take(), kA);
  EXPECT_EQ(queue.take(), std::nullopt);
}

TEST(QueueState, NeverHandsOutAKeyThatIsWorkedOn) {
  QueueState queue;
  queue.add(kA);
  EXPECT_EQ(queue.take(), kA);
  EXPECT_TRUE(queue.add(kA));
  EXPECT_FALSE(queue.add(kA));
  EXPECT_EQ(queue.take(), std::nullopt);
  queue.done(kA);
  EXPECT_EQ(queue.take(), kA) << "it was added while it was worked on";
  queue.done(kA);
  EXPECT_EQ(queue.take(), std::nullopt) << "once, not twice";
  EXPECT_TRUE(queue.idle());
}

TEST(QueueState, DelayedKeysComeAtTheEarliestOfTheirTimes) {
  QueueState queue;
  const async::SteadyTime start{};
  const auto at = [&](int seconds) { return start + std::chrono::seconds(seconds); };
  queue.add_at(kA, at(5));
  queue.add_at(kA, at(9));
  queue.add_at(kB, at(7));
  queue.add_at(kB, at(3));
  EXPECT_EQ(queue.next_due(), at(3));
  EXPECT_EQ(queue.promote(at(2)), 0U);
  EXPECT_EQ(queue.promote(at(3)), 1U);
  EXPECT_EQ(queue.take(), kB);
  EXPECT_EQ(queue.promote(at(100)), 1U);
  EXPECT_EQ(queue.take(), kA);
  EXPECT_EQ(queue.delayed(), 0U);
  EXPECT_EQ(queue.next_due(), std::nullopt);
}

TEST(RateLimiter, DoublesPerItemUpToTheMaximum) {
  RateLimiter limiter;
  std::vector<Duration> waits;
  for (int i = 0; i < 4; ++i)
    waits.push_back(limiter.when(kA));
  EXPECT_EQ(waits, (std::vector<Duration>{Duration(5), Duration(10), Duration(20), Duration(40)}));
  EXPECT_EQ(limiter.when(kB), Duration(5));
  for (int i = 0; i < 100; ++i)
    limiter.when(kA);
  EXPECT_EQ(limiter.when(kA), std::chrono::seconds(1000));
  EXPECT_EQ(limiter.failures(kA), 105);
  limiter.forget(kA);
  EXPECT_EQ(limiter.when(kA), Duration(5));
}

class WorkQueueTest : public testing::Test {
 protected:
  using Taken = std::optional<Result<ObjectKey>>;

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  Runtime runtime_{loop_.executor(), loop_.clock(), [] { return 0.0; }, metrics_};
  WorkQueue queue_{"test", runtime_};
};

TEST_F(WorkQueueTest, WakesOneOfManyWorkersPerKey) {
  Taken first;
  Taken second;
  loop_.start(queue_.get(), first);
  loop_.start(queue_.get(), second);
  loop_.settle();
  queue_.add(kA);
  loop_.settle();
  EXPECT_NE(first.has_value(), second.has_value());
  queue_.add(kB);
  loop_.settle();
  EXPECT_TRUE(first && second);
}

TEST_F(WorkQueueTest, DelaysByTheClock) {
  Taken taken;
  loop_.start(queue_.get(), taken);
  queue_.add_after(kA, std::chrono::seconds(10));
  queue_.add_after(kB, std::chrono::seconds(20));
  loop_.advance(std::chrono::seconds(9));
  EXPECT_FALSE(taken);
  loop_.advance(std::chrono::seconds(1));
  ASSERT_TRUE(taken);
  EXPECT_EQ(**taken, kA);
}

TEST_F(WorkQueueTest, RateLimitsWithTheServersWishAsLowerBound) {
  queue_.add_rate_limited(kA);
  loop_.advance(Duration(5));
  EXPECT_EQ(queue_.depth(), 1U);
  queue_.add_rate_limited(kB, std::chrono::seconds(3));
  loop_.advance(Duration(2999));
  EXPECT_EQ(queue_.depth(), 1U);
  loop_.advance(Duration(1));
  EXPECT_EQ(queue_.depth(), 2U);
  EXPECT_EQ(queue_.failures(kA), 1);
}

TEST_F(WorkQueueTest, ShutDownHandsOutTheRestAndThenEnds) {
  queue_.add(kA);
  queue_.add_after(kB, Duration(1));
  queue_.shut_down();
  queue_.add(kB);
  EXPECT_EQ(*loop_.run(queue_.get()), kA);
  EXPECT_EQ(loop_.run(queue_.get()).error().code, Errc::cancelled);
  loop_.advance(std::chrono::seconds(1));
  EXPECT_EQ(queue_.depth(), 0U);
}

TEST_F(WorkQueueTest, ACancelledWorkerTakesNothing) {
  Taken taken;
  const auto worker = [&]() -> async::Task<void> { taken.emplace(co_await queue_.get()); };
  loop_.group().spawn("worker", worker());
  loop_.settle();
  loop_.group().stop();
  queue_.add(kA);
  loop_.settle();
  ASSERT_TRUE(taken);
  ASSERT_FALSE(*taken);
  EXPECT_EQ(taken->error().code, Errc::cancelled);
  EXPECT_EQ(queue_.depth(), 1U);
}

TEST_F(WorkQueueTest, ReportsItsMetrics) {
  queue_.add(kA);
  queue_.add(kA);
  queue_.add_rate_limited(kB);
  const std::string text = metrics_.render();
  EXPECT_NE(text.find(R"(workqueue_depth{name="test"} 1)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(workqueue_adds_total{name="test"} 1)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(workqueue_retries_total{name="test"} 1)"), std::string::npos) << text;
}

}  // namespace
}  // namespace fabric::controller
