#include <fabric/json/value.hpp>

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>

namespace fabric::json {

namespace {

using rapidjson::SizeType;

// Builds the tree from events. Open containers are kept on a stack of their own, so that nothing points into a vector
// that may move.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::size_t depth) : depth_limit_(depth) {}

  bool Null() { return add(Value()); }

  bool Bool(bool b) { return add(Value(b)); }

  bool Int(int i) { return add(Value(i)); }

  bool Uint(unsigned u) { return add(Value(u)); }

  bool Int64(std::int64_t i) { return add(Value(i)); }

  bool Uint64(std::uint64_t u) { return add(Value(u)); }

  bool Double(double d) { return add(Value(d)); }

  bool RawNumber(const char*, SizeType, bool) { return false; }

  bool String(const char* text, SizeType size, bool) { return add(Value(std::string(text, size))); }

  bool Key(const char* text, SizeType size, bool) {
    open_.back().key.assign(text, size);
    return true;
  }

  bool StartObject() { return open(Value(Object{})); }

  bool EndObject(SizeType) { return close(); }

  bool StartArray() { return open(Value(Array{})); }

  bool EndArray(SizeType) { return close(); }

  bool too_deep() const { return too_deep_; }

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
      rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag | rapidjson::kParseFullPrecisionFlag;
  rapidjson::MemoryStream bytes(text.data(), text.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> stream(bytes);
  rapidjson::Reader reader;
  TreeBuilder builder(limits.depth);
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, builder);
  if (result) return builder.take();
  if (builder.too_deep()) {
    return fail(Errc::invalid, "JSON at {}: nested deeper than {} levels", position(text, result.Offset()),
                limits.depth);
  }
  return fail(Errc::invalid, "JSON at {}: {}", position(text, result.Offset()),
              rapidjson::GetParseError_En(result.Code()));
}

}  // namespace fabric::json
