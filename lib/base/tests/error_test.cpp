#include <fabric/base/error.hpp>

#include <gtest/gtest.h>

#include <cerrno>

namespace fabric {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Errc::invalid, "{} is odd", n);
  return n / 2;
}

Result<int> quarter(int n) {
  FABRIC_TRY(const int h, half(n));
  return half(h);
}

TEST(Result, TryPassesValuesAndErrors) {
  EXPECT_EQ(quarter(8).value(), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
}

TEST(Result, ContextIsPutBefore) {
  const auto r = quarter(5).with("quarter of five");
  EXPECT_EQ(r.error().message(), "quarter of five: 5 is odd");
  EXPECT_EQ(r.error().code, Errc::invalid);
}

TEST(Error, ErrnoKeepsItsMeaningAndText) {
  const auto e = fail_errno(EEXIST, "adding route").error();
  EXPECT_EQ(e.code, Errc::already_exists);
  EXPECT_EQ(e.message(), "adding route: File exists");
}

}  // namespace
}  // namespace fabric
