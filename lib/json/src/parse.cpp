#include <fabric/json/value.hpp>

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace fabric::json {

namespace {

using rapidjson::SizeType;

template <class T>
std::optional<T> whole(std::string_view text) {
  T out{};
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, out);
  return error == std::errc{} && last == end ? std::optional(out) : std::nullopt;
}

// A number in JSON's grammar. RapidJSON's own conversion relies on undefined behaviour for zeros with an exponent.
std::optional<Value> number_of(std::string_view text) {
  if (const auto small = whole<std::int64_t>(text)) return Value(*small);
  if (const auto large = whole<std::uint64_t>(text)) return Value(*large);
  if (const auto real = whole<double>(text)) return Value(*real);
  return std::nullopt;
}

// RapidJSON lets an escaped low surrogate through, whose UTF-8 form (ED A0 80 to ED BF BF) is no valid text.
bool has_surrogate(std::string_view text) {
  for (auto at = text.find('\xed'); at != std::string_view::npos; at = text.find('\xed', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  }
  return false;
}

// Builds the tree from events. Open containers are kept on a stack of their own, so that nothing points into a vector
// that may move.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::size_t depth) : depth_limit_(depth) {}

  // NOLINTBEGIN(readability-identifier-naming): RapidJSON looks for these names.
  bool Null() { return add(Value()); }

  bool Bool(bool b) { return add(Value(b)); }

  // Not called, since numbers arrive as text; RapidJSON wants them to exist.
  bool Int(int) { return false; }

  bool Uint(unsigned) { return false; }

  bool Int64(std::int64_t) { return false; }

  bool Uint64(std::uint64_t) { return false; }

  bool Double(double) { return false; }

  bool RawNumber(const char* text, SizeType size, bool) {
    auto number = number_of({text, size});
    out_of_range_ = !number;
    return number && add(*std::move(number));
  }

  bool String(const char* text, SizeType size, bool) {
    lone_surrogate_ = has_surrogate({text, size});
    return !lone_surrogate_ && add(Value(std::string(text, size)));
  }

  bool Key(const char* text, SizeType size, bool) {
    lone_surrogate_ = has_surrogate({text, size});
    open_.back().key.assign(text, size);
    return !lone_surrogate_;
  }

  bool StartObject() { return open(Value(Object{})); }

  bool EndObject(SizeType) { return close(); }

  bool StartArray() { return open(Value(Array{})); }

  bool EndArray(SizeType) { return close(); }

  // NOLINTEND(readability-identifier-naming)

  bool too_deep() const { return too_deep_; }

  bool out_of_range() const { return out_of_range_; }

  bool lone_surrogate() const { return lone_surrogate_; }

  Value take() { return std::move(root_); }

 private:
  struct Open {
    Value container;
    std::string key;
  };

  bool add(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& top = open_.back();
    if (Array* array = top.container.if_array()) {
      array->push_back(std::move(value));
    } else {
      top.container.if_object()->insert_or_assign(std::move(top.key), std::move(value));
    }
    return true;
  }

  bool open(Value container) {
    too_deep_ = open_.size() >= depth_limit_;
    if (!too_deep_) open_.push_back({std::move(container), {}});
    return !too_deep_;
  }

  bool close() {
    Value done = std::move(open_.back().container);
    open_.pop_back();
    return add(std::move(done));
  }

  std::size_t depth_limit_;
  bool too_deep_ = false;
  bool out_of_range_ = false;
  bool lone_surrogate_ = false;
  std::vector<Open> open_;
  Value root_;
};

std::string position(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, std::min(offset, text.size()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto start = before.rfind('\n');
  const auto column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return fmt::format("offset {} (line {}, column {})", offset, line, column);
}

}  // namespace

Result<Value> parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Errc::invalid, "JSON text of {} bytes is larger than the limit of {}", text.size(), limits.bytes);
  }
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::MemoryStream bytes(text.data(), text.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(bytes);
  rapidjson::Reader reader;
  TreeBuilder builder(limits.depth);
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  // RapidJSON takes a zero byte for the end of the text.
  if (result && stream.Tell() < text.size()) {
    return fail(Errc::invalid, "JSON at {}: a zero byte follows the document", position(text, stream.Tell()));
  }
  if (result) return builder.take();
  if (builder.too_deep()) {
    return fail(Errc::invalid, "JSON at {}: nested deeper than {} levels", position(text, result.Offset()),
                limits.depth);
  }
  if (builder.out_of_range()) {
    return fail(Errc::invalid, "JSON at {}: a number is out of range", position(text, result.Offset()));
  }
  if (builder.lone_surrogate()) {
    return fail(Errc::invalid, "JSON at {}: half of a surrogate pair", position(text, result.Offset()));
  }
  return fail(Errc::invalid, "JSON at {}: {}", position(text, result.Offset()),
              rapidjson::GetParseError_En(result.Code()));
}

}  // namespace fabric::json
