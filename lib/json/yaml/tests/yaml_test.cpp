#include <fabric/yaml/yaml.hpp>

#include <gtest/gtest.h>

namespace fabric::yaml {
namespace {

TEST(Yaml, ReadsScalarsAsKubernetesToolsDo) {
  const std::pair<const char*, json::Value> rows[] = {{"1", 1},
                                                      {"-7", -7},
                                                      {"0x1F", 31},
                                                      {"0o17", 15},
                                                      {"18446744073709551615", ~std::uint64_t{0}},
                                                      {"1.5", 1.5},
                                                      {"1e3", 1000.0},
                                                      {"true", true},
                                                      {"False", false},
                                                      {"null", nullptr},
                                                      {"~", nullptr},
                                                      {"yes", "yes"},
                                                      {"off", "off"},
                                                      {"'1'", "1"},
                                                      {"\"true\"", "true"},
                                                      {"''", ""},
                                                      {"10.0.0.0/8", "10.0.0.0/8"},
                                                      {".inf", ".inf"},
                                                      {"nan", "nan"},
                                                      {"1.2.3", "1.2.3"},
                                                      {"!!str 5", "5"},
                                                      {"|\n  a\n  b\n", "a\nb\n"}};
  for (const auto& [text, value] : rows) {
    const auto parsed = parse(std::string("v: ") + text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().context;
    ASSERT_NE(parsed->find("v"), nullptr) << text;
    EXPECT_EQ(*parsed->find("v"), value) << text;
  }
}

TEST(Yaml, ReadsNestedBlocksAndAliases) {
  const auto value = parse("a: &x {n: [1, 2]}\nb: *x\nc:\n- k: v\n");
  ASSERT_TRUE(value) << value.error().context;
  EXPECT_EQ(json::write(*value), R"({"a":{"n":[1,2]},"b":{"n":[1,2]},"c":[{"k":"v"}]})");
}

TEST(Yaml, ReadsAStreamOfDocumentsAndOneDocumentOnlyWhereAsked) {
  const std::string text = "---\na: 1\n---\n# nothing\n---\nb: 2\n";
  const auto all = parse_all(text);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2U);
  EXPECT_FALSE(parse(text));
  const auto empty = parse("# nothing\n");
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->is_null());
}

TEST(Yaml, RefusesWhatItDoesNotReadWithAPosition) {
  const std::pair<const char*, const char*> rows[] = {{"a: 1\na: 2", "line 2"},
                                                      {"a: 1\n? [x]\n: 2", "line 2"},
                                                      {"x: &b {a: 1}\ny:\n  <<: *b", "line 3"},
                                                      {"a: !!binary AAAA", "line 1"},
                                                      {"a: 1\nb: [1", "line"}};
  for (const auto& [text, where] : rows) {
    const auto value = parse(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Errc::invalid);
    EXPECT_NE(value.error().context.find(where), std::string::npos) << value.error().context;
  }
}

TEST(Yaml, RefusesDeepDocumentsAndAliasBombs) {
  EXPECT_FALSE(parse(std::string(101, '[') + std::string(101, ']')));
  EXPECT_FALSE(parse(std::string(100'000, '[')));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j)
      bomb += fmt::format("*a{},", i - 1);
    bomb += "]\n";
  }
  const auto value = parse(bomb);
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().context.find("aliases"), std::string::npos) << value.error().context;
  EXPECT_FALSE(parse("a: [1,2]", {.depth = 100, .bytes = 4, .nodes = 10}));
}

TEST(Yaml, RefusesAnAliasToItself) {
  EXPECT_FALSE(parse("a: &a [*a]"));
}

}  // namespace
}  // namespace fabric::yaml
