#include <fabric/base/secret.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace fabric {
namespace {

static_assert(!std::is_copy_constructible_v<Secret>);
static_assert(!fmt::is_formattable<Secret>::value, "a Secret must not be printable");

TEST(Secret, MovesAndLeavesNothingBehind) {
  auto a = Secret::from_text("hunter2");
  const Secret b = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested.
  EXPECT_EQ(b.reveal_text(), "hunter2");
}

TEST(Secret, ComparesByContent) {
  EXPECT_TRUE(Secret::from_text("x").equals(Secret::from_text("x")));
  EXPECT_FALSE(Secret::from_text("x").equals(Secret::from_text("y")));
  EXPECT_FALSE(Secret::from_text("x").equals(Secret::from_text("xx")));
}

}  // namespace
}  // namespace fabric
