#include <fabric/base/strong_type.hpp>
#include <fabric/telemetry/log.hpp>

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

namespace fabric::log {
namespace {

using Spi = StrongType<struct SpiTag, std::uint32_t>;

TEST(Log, WritesOneJsonObjectWithTypedValues) {
  const Capture capture;
  info("tunnel installed", {{"cluster", "b"}, {"spi", Spi(4097)}, {"bytes", 7U}, {"delta", -1}, {"up", true}});
  EXPECT_EQ(capture.text(),
            R"({"level":"info","message":"tunnel installed","cluster":"b","spi":"4097","bytes":7,"delta":-1,"up":true})"
            "\n");
}

TEST(Log, EscapesWhatWouldBreakALine) {
  const Capture capture;
  warn("odd", {{"text", std::string("a\"b\\c\nd\x01{}%v")}});
  EXPECT_EQ(capture.text(), R"({"level":"warn","message":"odd","text":"a\"b\\c\nd\u0001{}%v"})"
                            "\n");
}

TEST(Log, WritesNumbersThatJsonLacksAsText) {
  const Capture capture;
  info("ratio", {{"value", std::numeric_limits<double>::infinity()}, {"half", 0.5}});
  EXPECT_EQ(capture.text(), R"({"level":"info","message":"ratio","value":"inf","half":0.5})"
                            "\n");
}

TEST(Log, FormatsErrorsWithTheirContext) {
  const Capture capture;
  error("apply failed", {{"error", Error{Errc::not_found, "link eth9", {}}}});
  EXPECT_NE(capture.text().find("link eth9"), std::string::npos);
}

TEST(Log, LeavesOutWhatIsBelowTheLevel) {
  const Capture capture;
  set_level(Level::warn);
  debug("one");
  info("two");
  warn("three");
  EXPECT_EQ(capture.text(), R"({"level":"warn","message":"three"})"
                            "\n");
}

TEST(Log, ParsesLevelsAndNamesTheChoices) {
  EXPECT_EQ(*parse_level("debug"), Level::debug);
  const auto wrong = parse_level("loud");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::invalid);
  EXPECT_EQ(wrong.error().context, "log level 'loud': use debug, info, warn or error");
}

static_assert(!std::is_constructible_v<Field, std::string_view, const Secret&>, "a Secret is not a log value");

}  // namespace
}  // namespace fabric::log
