#include <fabric/json/time.hpp>

#include <gtest/gtest.h>

namespace fabric::json {
namespace {

using namespace std::chrono_literals;

TEST(Time, ReadsRfc3339InAnyZone) {
  const std::pair<const char*, std::int64_t> rows[] = {{"1970-01-01T00:00:00Z", 0},
                                                       {"2024-02-29T12:34:56Z", 1709210096000000},
                                                       {"2024-02-29T14:34:56.5+02:00", 1709210096500000},
                                                       {"2024-02-29T12:34:56.123456Z", 1709210096123456},
                                                       {"2024-02-29T12:34:56.123456789Z", 1709210096123456},
                                                       {"1969-12-31T23:59:59.999999Z", -1}};
  for (const auto& [text, microseconds] : rows) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time) << text;
    EXPECT_EQ(time->time_since_epoch().count(), microseconds) << text;
  }
}

TEST(Time, RefusesWhatIsNotRfc3339) {
  for (const char* text : {"", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00", "2024-01-01",
                           "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00Zx", "2024-01-01T00:00:00.1234567890Z",
                           "2024-01-01T00:00:00+25:00", "24-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(Time, WritesSecondsOrMicroseconds) {
  const auto time = parse_time("2024-02-29T12:34:56.000789Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(format_micro_time(*time), "2024-02-29T12:34:56.000789Z");
  EXPECT_EQ(format_time(std::chrono::floor<Duration>(*time)), "2024-02-29T12:34:56Z");
  EXPECT_EQ(format_micro_time(MicroTime(-1us)), "1969-12-31T23:59:59.999999Z");
}

TEST(DurationText, IsGos) {
  const std::pair<const char*, std::chrono::nanoseconds> rows[] = {
      {"0s", 0ns},      {"1ns", 1ns},  {"1.5us", 1500ns},  {"250ms", 250ms},          {"1.234567ms", 1234567ns},
      {"1.5s", 1500ms}, {"1m0s", 60s}, {"1h30m0s", 90min}, {"24h0m0.5s", 86400500ms}, {"-2m3s", -123s}};
  for (const auto& [text, duration] : rows) {
    EXPECT_EQ(format_duration(duration), text);
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, duration) << text;
  }
}

TEST(DurationText, AcceptsOtherSpellings) {
  const std::pair<const char*, std::chrono::nanoseconds> rows[] = {
      {"0", 0ns}, {"90s", 90s}, {".5h", 30min}, {"1h1h", 2h}, {"+3m", 3min}, {"2\u00b5s", 2us}, {"1.s", 1s}};
  for (const auto& [text, duration] : rows) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, duration) << text;
  }
}

TEST(DurationText, RefusesTheRest) {
  for (const char* text : {"", "-", "1", "s", ".s", "1x", "1 h", "1h ", "9223372036854775808ns", "2562048h", "--1s"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

}  // namespace
}  // namespace fabric::json
