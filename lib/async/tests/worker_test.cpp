#include <fabric/async/testing.hpp>
#include <fabric/async/worker.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace fabric::async {
namespace {

TEST(Worker, RunsOnItsThreadAndResumesOnTheCallers) {
  TestLoop loop;
  Worker worker("kernel");
  const auto task = [](Worker& w) -> Task<Result<bool>> {
    const auto home = std::this_thread::get_id();
    FABRIC_CO_TRY(const auto there, co_await w.run([] { return std::this_thread::get_id(); }));
    co_return there != home&& std::this_thread::get_id() == home;
  };
  EXPECT_TRUE(*loop.run_blocking(task(worker)));
}

TEST(Worker, PassesValuesErrorsAndNothing) {
  TestLoop loop;
  Worker worker("kernel");
  EXPECT_EQ(*loop.run_blocking(worker.run([] { return 7; })), 7);
  EXPECT_EQ(*loop.run_blocking(worker.run([]() -> Result<int> { return 8; })), 8);
  EXPECT_TRUE(loop.run_blocking(worker.run([] {})));
  const auto failed = loop.run_blocking(worker.run([]() -> Result<int> { return fail(Errc::gone, "old"); }));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::gone);
}

TEST(Worker, TurnsAnExceptionIntoAnErrorAndLivesOn) {
  TestLoop loop;
  Worker worker("kernel");
  const auto thrown = loop.run_blocking(worker.run([]() -> int { throw std::runtime_error("boom"); }));
  ASSERT_FALSE(thrown);
  EXPECT_EQ(thrown.error().code, Errc::internal);
  EXPECT_EQ(thrown.error().context, "worker thread: uncaught exception: boom");
  EXPECT_EQ(*loop.run_blocking(worker.run([] { return 1; })), 1);
}

TEST(Worker, ACancelledCoroutineStartsNothingUnlessItCleansUp) {
  TestLoop loop;
  Worker worker("kernel");
  Result<int> refused = 0;
  Result<int> cleaned = 0;
  const auto root = [](Worker& w, Clock& clock, Result<int>& r, Result<int>& c) -> Task<void> {
    auto slept = co_await sleep_for(clock, std::chrono::seconds(1));
    ignore(slept, "only the cancellation ends it");
    r = co_await w.run([] { return 1; });
    c = co_await w.run([] { return 2; }, true);
  };
  loop.group().spawn("root", root(worker, loop.clock(), refused, cleaned));
  loop.settle();
  loop.group().stop();
  EXPECT_TRUE(loop.run_blocking(loop.group().join(std::chrono::seconds(10))));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::cancelled);
  EXPECT_EQ(cleaned, 2);
}

}  // namespace
}  // namespace fabric::async
