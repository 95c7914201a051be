#include <fabric/json/net.hpp>
#include <fabric/json/schema.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace fabric::json {

enum class Colour : std::uint8_t { red, green };
enum class Lenient : std::uint8_t { none, some };

struct Leaf {
  std::string name;
  std::optional<std::uint16_t> port;
  bool operator==(const Leaf&) const = default;
};

struct Tree {
  std::string id;
  int weight = 7;
  std::optional<bool> flag;
  Colour colour = Colour::red;
  Lenient lenient = Lenient::some;
  std::vector<Leaf> leaves;
  std::map<std::string, Leaf, std::less<>> named;
  std::optional<Leaf> best;
  Leaf nested;
  std::optional<net::Cidr> prefix;
  std::vector<net::IpAddress> addresses;
  std::optional<IntOrString> target;
  std::chrono::seconds interval{0};
  std::optional<TimePoint> created;
  std::vector<std::string> always_there;
  std::string backend;
  std::optional<Value> rest;
  bool operator==(const Tree&) const = default;
};

struct Safe {
  std::map<std::string, Secret, std::less<>> contents;
};

template <>
struct EnumNames<Colour> {
  static constexpr auto names =
      std::to_array<std::pair<Colour, std::string_view>>({{Colour::red, "Red"}, {Colour::green, "Green"}});
};

template <>
struct EnumNames<Lenient> {
  static constexpr auto names =
      std::to_array<std::pair<Lenient, std::string_view>>({{Lenient::none, "none"}, {Lenient::some, "some"}});
  static constexpr auto fallback = Lenient::none;
};

template <>
struct Schema<Leaf> {
  static auto fields() { return std::tuple{required("name", &Leaf::name), optional("port", &Leaf::port).in(1, 5000)}; }
};

template <>
struct Schema<Safe> {
  static auto fields() { return std::tuple{optional("data", &Safe::contents)}; }
};

template <>
struct Schema<Tree> {
  static auto fields() {
    return std::tuple{required("id", &Tree::id),
                      optional("weight", &Tree::weight),
                      optional("flag", &Tree::flag),
                      optional("colour", &Tree::colour),
                      optional("lenient", &Tree::lenient),
                      optional("leaves", &Tree::leaves),
                      optional("named", &Tree::named),
                      optional("best", &Tree::best),
                      optional("nested", &Tree::nested),
                      optional("prefix", &Tree::prefix),
                      optional("addresses", &Tree::addresses),
                      optional("target", &Tree::target),
                      optional("interval", &Tree::interval),
                      optional("created", &Tree::created),
                      always("alwaysThere", &Tree::always_there),
                      with_default("backend", &Tree::backend, "xfrm"),
                      optional("rest", &Tree::rest)};
  }
};

namespace {

std::string error_of(std::string_view text) {
  const auto tree = decode<Tree>(text);
  return tree ? "no error" : tree.error().context;
}

TEST(Schema, GivesInitialValuesAndDefaultsForAbsentFields) {
  const auto tree = decode<Tree>(R"({"id":"x","best":null,"unknown":[1,2]})");
  ASSERT_TRUE(tree) << tree.error().context;
  Tree expected;
  expected.id = "x";
  expected.backend = "xfrm";
  EXPECT_EQ(*tree, expected);
}

TEST(Schema, DoesNotWriteAbsentFieldsAndWritesRequiredOnes) {
  Tree tree;
  EXPECT_EQ(encode(tree), R"({"alwaysThere":[],"backend":"","id":"","nested":{"name":""}})");
  tree.flag = false;
  tree.weight = 0;
  EXPECT_EQ(*to_value(tree).find("flag"), Value(false));
  EXPECT_EQ(*to_value(tree).find("weight"), Value(0));
}

TEST(Schema, RoundTripsEveryKindOfField) {
  const std::string text =
      R"({"addresses":["10.0.0.1","fd00::1"],"alwaysThere":["a"],"backend":"vxlan","best":{"name":"b","port":80},)"
      R"("colour":"Green","created":"2024-02-29T12:34:56Z","flag":true,"id":"x","interval":"1m30s",)"
      R"("leaves":[{"name":"l1"},{"name":"l2","port":1}],"lenient":"none","named":{"k/1":{"name":"n"}},)"
      R"("nested":{"name":"in"},"prefix":"10.0.0.0/16","rest":{"any":[1,"x"]},"target":"http","weight":-3})";
  const auto tree = decode<Tree>(text);
  ASSERT_TRUE(tree) << tree.error().context;
  EXPECT_EQ(tree->interval, std::chrono::seconds(90));
  // A nested object with required fields is always written.
  EXPECT_EQ(encode(*tree), text);
}

TEST(Schema, NamesThePathAndTheExpectationOfAnError) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({})", "id: required"},
      {R"([])", "expected an object, got a list"},
      {R"({"id":1})", "id: expected a string, got 1"},
      {R"({"id":"x","weight":3000000000})", "weight: expected -2147483648..2147483647, got 3000000000"},
      {R"({"id":"x","weight":1.5})", "weight: expected -2147483648..2147483647, got 1.5"},
      {R"({"id":"x","flag":"true"})", "flag: expected true or false, got a string"},
      {R"({"id":"x","colour":"Blue"})", "colour: expected one of Red, Green, got 'Blue'"},
      {R"({"id":"x","leaves":[{"name":"a"},{}]})", "leaves[1].name: required"},
      {R"({"id":"x","leaves":[{"name":"a","port":70000}]})", "leaves[0].port: expected 0..65535, got 70000"},
      {R"({"id":"x","best":{"name":"a","port":5001}})", "best.port: expected 1..5000, got 5001"},
      {R"({"id":"x","named":{"a/b":{"name":2}}})", "named[\"a/b\"].name: expected a string, got 2"},
      {R"({"id":"x","target":{}})", "target: expected a number or a string, got an object"},
  };
  for (const auto& [text, message] : rows)
    EXPECT_EQ(error_of(text), message) << text;
  EXPECT_TRUE(error_of(R"({"id":"x","prefix":"10.0.0.1/16"})").starts_with("prefix: "));
  EXPECT_TRUE(error_of(R"({"id":"x","interval":"soon"})").starts_with("interval: "));
  const auto below_root = read<Tree>(Value(Object{}), "spec.tree");
  ASSERT_FALSE(below_root);
  EXPECT_EQ(below_root.error().context, "spec.tree.id: required");
}

TEST(Schema, ReadsAnUnknownNameAsTheFallbackWhereOneIsGiven) {
  const auto tree = decode<Tree>(R"({"id":"x","lenient":"new in a later version"})");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->lenient, Lenient::none);
}

TEST(Schema, MovesSecretsThroughBase64AndNeverQuotesThem) {
  const auto safe = decode<Safe>(R"({"data":{"psk":"c2VjcmV0"}})");
  ASSERT_TRUE(safe);
  EXPECT_TRUE(safe->contents.at("psk").equals(Secret::from_text("secret")));
  EXPECT_EQ(encode(*safe), R"({"data":{"psk":"c2VjcmV0"}})");
  const auto broken = decode<Safe>(R"({"data":{"psk":"hunter2*"}})");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(broken.error().context.starts_with("data.psk: ")) << broken.error().context;
  EXPECT_EQ(broken.error().context.find("hunter2"), std::string::npos);
}

TEST(Schema, ListsItsPaths) {
  const auto paths = schema_paths<Tree>();
  EXPECT_EQ(paths.front(), "id");
  for (const char* path : {"leaves", "leaves[].name", "named{}.port", "best.name", "nested.name"}) {
    EXPECT_NE(std::ranges::find(paths, path), paths.end()) << path;
  }
}

TEST(Get, ReadsTypedValuesInsideOfATree) {
  const Value pod = Object{{"spec", Object{{"nodeName", "n1"}, {"replicas", 3}}}};
  EXPECT_EQ(get<std::string>(pod, {"spec", "nodeName"}), "n1");
  EXPECT_EQ(get<int>(pod, {"spec", "replicas"}), 3);
  const auto absent = get<int>(pod, {"spec", "missing"});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Errc::not_found);
  const auto wrong_type = get<int>(pod, {"spec", "nodeName"});
  ASSERT_FALSE(wrong_type);
  EXPECT_EQ(wrong_type.error().code, Errc::invalid);
  EXPECT_TRUE(wrong_type.error().context.starts_with("spec.nodeName: ")) << wrong_type.error().context;
}

}  // namespace
}  // namespace fabric::json
