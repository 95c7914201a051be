#include <fabric/gateway/retry.hpp>

#include <gtest/gtest.h>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;

constexpr async::SteadyTime kStart(1h);

TEST(Retry, IsDueUntilSomethingFails) {
  Retry retry("a test");
  EXPECT_TRUE(retry.due(kStart));
  retry.note({}, kStart, 0.5);
  EXPECT_TRUE(retry.due(kStart));
  EXPECT_EQ(retry.failure(), "");
}

TEST(Retry, WaitsLongerAfterEachFailureAndStartsAnewAfterASuccess) {
  Retry retry("a test");
  retry.note(fail(Errc::unavailable, "nobody there"), kStart, 0);
  EXPECT_EQ(retry.failure(), "nobody there");
  EXPECT_FALSE(retry.due(kStart));
  EXPECT_TRUE(retry.due(kStart + 500ms));
  for (int i = 0; i < 20; ++i)
    retry.note(fail(Errc::unavailable, "nobody there"), kStart, 0.999);
  EXPECT_FALSE(retry.due(kStart + 4s));
  EXPECT_TRUE(retry.due(kStart + 10s)) << "the longest wait";
  retry.note({}, kStart, 0);
  EXPECT_TRUE(retry.due(kStart));
  EXPECT_EQ(retry.failure(), "");
}

}  // namespace
}  // namespace fabric::gateway
