#include <fabric/async/backoff.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace fabric::async {
namespace {

constexpr Backoff kBackoff{.initial = Duration(500), .max = Duration(30'000), .factor = 2.0, .jitter = 0.5};

TEST(Backoff, DoublesWithTheAttemptAndHalvesAtMostByJitter) {
  EXPECT_EQ(kBackoff.delay(0, 0.0), Duration(250));
  EXPECT_EQ(kBackoff.delay(3, 0.0), Duration(2000));
  EXPECT_EQ(kBackoff.delay(3, 0.5), Duration(3000));
}

TEST(Backoff, StaysBelowTheCeilingForAnyAttempt) {
  EXPECT_LE(kBackoff.delay(6, 0.999), Duration(30'000));
  EXPECT_EQ(kBackoff.delay(std::numeric_limits<unsigned>::max(), 0.0), Duration(15'000));
}

TEST(Backoff, WithoutJitterIgnoresTheRandomNumber) {
  const Backoff plain{.initial = Duration(100), .max = Duration(1000), .factor = 3.0, .jitter = 0.0};
  EXPECT_EQ(plain.delay(1, 0.0), Duration(300));
  EXPECT_EQ(plain.delay(1, 0.9), Duration(300));
}

}  // namespace
}  // namespace fabric::async
