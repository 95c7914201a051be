#pragma once

#include <fabric/base/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fabric::json {

class Value;
using Array = std::vector<Value>;
/// Ordered by key, so that writing is deterministic.
using Object = std::map<std::string, Value, std::less<>>;

enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };

std::string_view to_string(Kind kind);

/// One JSON value. A plain value type: copies are deep, equality is structural. Integers keep 64 bits: a value that
/// fits std::int64_t is held as one, larger ones as std::uint64_t, so that equal numbers compare equal. Manifests are
/// written with `Object{{"name", "x"}, {"ports", array(80, 443)}}`; use `array(...)` instead of `Array{...}`, since
/// compilers disagree about braces around a single array.
class Value {
 public:
  Value() = default;

  Value(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)

  Value(bool value) : data_(value) {}  // NOLINT(google-explicit-constructor)

  Value(double value) : data_(value) {}  // NOLINT(google-explicit-constructor)

  Value(const char* value) : data_(std::string(value)) {}  // NOLINT(google-explicit-constructor)

  Value(std::string_view value) : data_(std::string(value)) {}  // NOLINT(google-explicit-constructor)

  Value(std::string value) : data_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  Value(Array value) : data_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  Value(Object value) : data_(std::move(value)) {}  // NOLINT(google-explicit-constructor)

  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Value(I value) : data_(integer(value)) {}  // NOLINT(google-explicit-constructor)

  Kind kind() const;

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }

  bool is_string() const { return std::holds_alternative<std::string>(data_); }

  bool is_array() const { return std::holds_alternative<Array>(data_); }

  bool is_object() const { return std::holds_alternative<Object>(data_); }

  bool is_integer() const { return kind() == Kind::integer; }

  /// Pointers into this value; nullptr when it is of another kind. `if_int64` is nullptr above the range of int64.
  const bool* if_bool() const { return std::get_if<bool>(&data_); }

  const std::int64_t* if_int64() const { return std::get_if<std::int64_t>(&data_); }

  const std::uint64_t* if_large_uint64() const { return std::get_if<std::uint64_t>(&data_); }

  const double* if_double() const { return std::get_if<double>(&data_); }

  const std::string* if_string() const { return std::get_if<std::string>(&data_); }

  const Array* if_array() const { return std::get_if<Array>(&data_); }

  const Object* if_object() const { return std::get_if<Object>(&data_); }

  Array* if_array() { return std::get_if<Array>(&data_); }

  Object* if_object() { return std::get_if<Object>(&data_); }

  /// The member of an object; nullptr when absent or when this is no object. A member may be null.
  const Value* find(std::string_view key) const;
  Value* find(std::string_view key);
  /// As find, but ASCII letters match in either case; an exact match wins. For broker-info, whose writers disagree.
  const Value* find_nocase(std::string_view key) const;
  /// Walks members and, by decimal segments, elements: `at({"spec", "containers", "0", "name"})`; nullptr when absent.
  const Value* at(std::initializer_list<std::string_view> path) const;
  /// The text at a path; the fallback when absent or no string.
  std::string string_at(std::initializer_list<std::string_view> path, std::string_view fallback = "") const;

  /// The member of an object, made (null) when absent. A null value becomes an object; any other kind is an assertion.
  Value& operator[](std::string_view key);
  /// Appends to an array. A null value becomes an array; any other kind is an assertion.
  void push_back(Value value);

  bool operator==(const Value& other) const;

 private:
  using Data = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object>;

  template <class I>
  static Data integer(I value) {
    if (std::in_range<std::int64_t>(value)) return static_cast<std::int64_t>(value);
    return static_cast<std::uint64_t>(value);
  }

  Data data_;
};

/// `array(1, "two", Object{})`.
template <class... Ts>
Array array(Ts&&... elements) {
  Array out;
  out.reserve(sizeof...(elements));
  (out.emplace_back(std::forward<Ts>(elements)), ...);
  return out;
}

/// What parse accepts at most; Errc::invalid beyond.
struct Limits {
  std::size_t depth = 100;
  std::size_t bytes = std::size_t{64} << 20U;
};

/// Parses one JSON document (RFC 8259, UTF-8 checked, no comments). Of duplicate keys the last one wins, as in Go.
/// Errors are Errc::invalid with offset, line and column and never quote the text, which may be secret. No recursion.
Result<Value> parse(std::string_view text, const Limits& limits = {});

/// Compact, keys in order: equal values give equal bytes. Numbers that JSON does not have (NaN, infinities) become
/// null.
std::string write(const Value& value);

/// Indented by two spaces, for people.
std::string write_pretty(const Value& value);

}  // namespace fabric::json
