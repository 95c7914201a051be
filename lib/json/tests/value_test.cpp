#include <fabric/json/value.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace fabric::json {
namespace {

TEST(JsonParse, KeepsEveryIntegerOf64Bits) {
  const auto value = parse("[-9223372036854775808,9223372036854775807,18446744073709551615,0]");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, Value(array(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                                std::numeric_limits<std::uint64_t>::max(), 0)));
  EXPECT_EQ(write(*value), "[-9223372036854775808,9223372036854775807,18446744073709551615,0]");
}

TEST(JsonParse, ReadsRealNumbersExactlyAndRefusesThoseOutOfRange) {
  const std::pair<const char*, Value> rows[] = {{"0.1", 0.1},
                                                {"-1.5e-3", -1.5e-3},
                                                {"1E2", 100.0},
                                                {"0E95", 0.0},
                                                {"-0", 0},
                                                {"1.0", 1.0},
                                                {"18446744073709551616", 18446744073709551616.0},
                                                {"5e-324", 5e-324},
                                                {"1.7976931348623157e308", 1.7976931348623157e308}};
  for (const auto& [text, value] : rows) {
    const auto parsed = parse(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().context;
    EXPECT_EQ(*parsed, value) << text;
    EXPECT_EQ(parse(write(*parsed)), value) << text;
  }
  EXPECT_FALSE(parse("[1e309]"));
  const auto tiny = parse("[1e-400]");
  ASSERT_FALSE(tiny);
  EXPECT_NE(tiny.error().context.find("out of range"), std::string::npos) << tiny.error().context;
  for (const char* text : {"01", "1.", ".5", "+1", "1e", "-", "0x1", "NaN", "Infinity"})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(JsonParse, TakesTheLastOfDuplicateKeys) {
  const auto value = parse(R"({"a":1,"a":{"b":2}})");
  ASSERT_TRUE(value);
  EXPECT_EQ(write(*value), R"({"a":{"b":2}})");
}

TEST(JsonParse, SaysWhereATextIsWrongWithoutQuotingIt) {
  const auto value = parse("{\n  \"token\": \"hunter2\",\n  oops\n}");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Errc::invalid);
  EXPECT_NE(value.error().context.find("line 3, column 3"), std::string::npos) << value.error().context;
  EXPECT_EQ(value.error().context.find("hunter2"), std::string::npos);
  EXPECT_EQ(value.error().context.find("oops"), std::string::npos);
}

TEST(JsonParse, RefusesWhatIsNotOneJsonDocument) {
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\"}", "1 2", "nul", "\"\xff\"", "\"\\ud800\"", "\"\\udddd\"",
                           "{\"\\udddd\":1}", "{a:1}", "[1] x"}) {
    EXPECT_FALSE(parse(text)) << text;
  }
}

TEST(JsonParse, RefusesWhatFollowsAZeroByte) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(parse("1\0 2"sv));
  EXPECT_FALSE(parse("{}\0"sv));
  EXPECT_FALSE(parse("\"a\0b\""sv));
  EXPECT_TRUE(parse("{} \n"sv));
}

TEST(JsonParse, AcceptsTheDepthLimitAndRefusesOneMore) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse(nested(100)));
  const auto deeper = parse(nested(101));
  ASSERT_FALSE(deeper);
  EXPECT_NE(deeper.error().context.find("deeper than 100"), std::string::npos) << deeper.error().context;
  EXPECT_FALSE(parse(nested(1'000'000)));
}

TEST(JsonParse, RefusesATextAboveTheSizeLimit) {
  EXPECT_TRUE(parse("[1,2]", {.depth = 100, .bytes = 5}));
  EXPECT_FALSE(parse("[1,2]", {.depth = 100, .bytes = 4}));
}

TEST(JsonWrite, OrdersKeysAndEscapes) {
  const Value value = Object{{"b", array(true, nullptr, 1.5)}, {"a", "\"\n\x01\u00e4"}};
  EXPECT_EQ(write(value), "{\"a\":\"\\\"\\n\\u0001\u00e4\",\"b\":[true,null,1.5]}");
  EXPECT_EQ(parse(write(value)), value);
  EXPECT_EQ(write_pretty(Object{{"a", 1}}), "{\n  \"a\": 1\n}");
}

TEST(JsonWrite, WritesNullForNumbersThatJsonLacks) {
  EXPECT_EQ(write(array(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN())),
            "[null,null]");
}

TEST(JsonValue, FindsMembersElementsAndPaths) {
  const auto pod = parse(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]},"empty":null})");
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->string_at({"spec", "containers", "1", "name"}), "b");
  EXPECT_EQ(pod->string_at({"spec", "containers", "2", "name"}, "none"), "none");
  EXPECT_EQ(pod->at({"spec", "containers", "x"}), nullptr);
  ASSERT_NE(pod->find("empty"), nullptr);
  EXPECT_TRUE(pod->find("empty")->is_null());
  EXPECT_EQ(pod->find("spec")->find("containers")->find("name"), nullptr);
}

TEST(JsonValue, PrefersAnExactKeyToOneInAnotherCase) {
  const Value info = Object{{"ClientToken", 1}, {"IPSecPSK", 2}, {"ipsecPSK", 3}};
  EXPECT_EQ(*info.find_nocase("clientToken"), Value(1));
  EXPECT_EQ(*info.find_nocase("ipsecPSK"), Value(3));
  EXPECT_EQ(info.find_nocase("brokerURL"), nullptr);
}

TEST(JsonValue, GrowsObjectsAndArraysFromNull) {
  Value value;
  value["metadata"]["labels"]["a/b"] = "c";
  value["list"].push_back(1);
  value["list"].push_back("two");
  EXPECT_EQ(write(value), R"({"list":[1,"two"],"metadata":{"labels":{"a/b":"c"}}})");
}

}  // namespace
}  // namespace fabric::json
