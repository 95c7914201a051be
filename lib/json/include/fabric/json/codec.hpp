#pragma once

#include <fabric/base/secret.hpp>
#include <fabric/base/strong_type.hpp>
#include <fabric/base/time.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/json/path.hpp>
#include <fabric/json/time.hpp>
#include <fabric/json/value.hpp>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fabric::json {

/// How a C++ type looks in JSON: `static Result<T> read(const Value&, const Path&)` and `static Value write(const T&)`.
template <class T>
struct Codec;

/// The JSON names of an enum:
/// `template <> struct EnumNames<Color> { static constexpr auto names = std::to_array<std::pair<Color,
/// std::string_view>>({...}); };` With a member `static constexpr Color fallback`, unknown names read as that value
/// instead of being refused.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires { EnumNames<E>::names; };

/// The JSON name of an enumerator; empty for a value outside of the enum.
template <NamedEnum E>
constexpr std::string_view enum_name(E value) {
  for (const auto& [enumerator, name] : EnumNames<E>::names) {
    if (enumerator == value) return name;
  }
  return {};
}

template <NamedEnum E>
constexpr std::optional<E> enum_value(std::string_view text) {
  for (const auto& [enumerator, name] : EnumNames<E>::names) {
    if (name == text) return enumerator;
  }
  return std::nullopt;
}

/// A field that holds a number or a text, such as a Service's targetPort.
struct IntOrString {
  std::variant<std::int64_t, std::string> value;

  std::string to_string() const {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    return std::get<std::string>(value);
  }

  bool operator==(const IntOrString&) const = default;
};

template <>
struct Codec<Value> {
  static Result<Value> read(const Value& value, const Path&) { return value; }

  static Value write(const Value& value) { return value; }
};

template <>
struct Codec<bool> {
  static Result<bool> read(const Value& value, const Path& path) {
    if (const bool* b = value.if_bool()) return *b;
    return mismatch(path, "true or false", value);
  }

  static Value write(bool value) { return value; }
};

template <std::integral I>
  requires(!std::same_as<I, bool>)
struct Codec<I> {
  static Result<I> read(const Value& value, const Path& path) {
    if (const auto* number = value.if_int64(); number && std::in_range<I>(*number)) return static_cast<I>(*number);
    if (const auto* number = value.if_large_uint64(); number && std::in_range<I>(*number)) {
      return static_cast<I>(*number);
    }
    return mismatch(path, fmt::format("{}..{}", std::numeric_limits<I>::min(), std::numeric_limits<I>::max()), value);
  }

  static Value write(I value) { return value; }
};

template <>
struct Codec<double> {
  static Result<double> read(const Value& value, const Path& path) {
    if (const double* number = value.if_double()) return *number;
    if (const auto* number = value.if_int64()) return static_cast<double>(*number);
    return mismatch(path, "a number", value);
  }

  static Value write(double value) { return value; }
};

template <>
struct Codec<std::string> {
  static Result<std::string> read(const Value& value, const Path& path) {
    if (const std::string* text = value.if_string()) return *text;
    return mismatch(path, "a string", value);
  }

  static Value write(const std::string& value) { return value; }
};

/// Secrets are base64 text, as in the data of a Kubernetes Secret.
template <>
struct Codec<Secret> {
  static Result<Secret> read(const Value& value, const Path& path) {
    const std::string* text = value.if_string();
    if (text == nullptr) return mismatch(path, "a base64 string", value);
    return decode_base64_secret(*text).with(path.to_string());
  }

  static Value write(const Secret& value) { return encode_base64(value.reveal()); }
};

template <>
struct Codec<IntOrString> {
  static Result<IntOrString> read(const Value& value, const Path& path) {
    if (const auto* number = value.if_int64()) return IntOrString{*number};
    if (const auto* text = value.if_string()) return IntOrString{*text};
    return mismatch(path, "a number or a string", value);
  }

  static Value write(const IntOrString& value) {
    return std::visit([](const auto& alternative) { return Value(alternative); }, value.value);
  }
};

/// metav1.Time: RFC 3339, written in whole seconds.
template <>
struct Codec<TimePoint> {
  static Result<TimePoint> read(const Value& value, const Path& path) {
    const std::string* text = value.if_string();
    if (text == nullptr) return mismatch(path, "an RFC 3339 time", value);
    FABRIC_TRY(const MicroTime time, parse_time(*text).with(path.to_string()));
    return std::chrono::floor<Duration>(time);
  }

  static Value write(TimePoint value) { return format_time(value); }
};

/// metav1.MicroTime.
template <>
struct Codec<MicroTime> {
  static Result<MicroTime> read(const Value& value, const Path& path) {
    const std::string* text = value.if_string();
    if (text == nullptr) return mismatch(path, "an RFC 3339 time", value);
    return parse_time(*text).with(path.to_string());
  }

  static Value write(MicroTime value) { return format_micro_time(value); }
};

/// Go duration text such as "1h30m"; cut to the precision of the C++ type.
template <class Rep, class Period>
struct Codec<std::chrono::duration<Rep, Period>> {
  using T = std::chrono::duration<Rep, Period>;

  static Result<T> read(const Value& value, const Path& path) {
    const std::string* text = value.if_string();
    if (text == nullptr) return mismatch(path, "a duration such as 1h30m", value);
    FABRIC_TRY(const auto nanoseconds, parse_duration(*text).with(path.to_string()));
    return std::chrono::duration_cast<T>(nanoseconds);
  }

  static Value write(T value) { return format_duration(std::chrono::duration_cast<std::chrono::nanoseconds>(value)); }
};

template <NamedEnum E>
struct Codec<E> {
  static Result<E> read(const Value& value, const Path& path) {
    const std::string* text = value.if_string();
    if (text == nullptr) return mismatch(path, "one of " + listed(), value);
    if (const auto found = enum_value<E>(*text)) return *found;
    if constexpr (requires { EnumNames<E>::fallback; }) {
      return EnumNames<E>::fallback;
    } else {
      return wrong(path, fmt::format("expected one of {}, got '{}'", listed(), text->substr(0, 64)));
    }
  }

  static Value write(E value) { return enum_name(value); }

 private:
  static std::string listed() {
    std::string out;
    for (const auto& entry : EnumNames<E>::names) {
      if (!out.empty()) out += ", ";
      out += entry.second;
    }
    return out;
  }
};

template <class Tag, class U>
struct Codec<StrongType<Tag, U>> {
  static Result<StrongType<Tag, U>> read(const Value& value, const Path& path) {
    FABRIC_TRY(auto inner, Codec<U>::read(value, path));
    return StrongType<Tag, U>(std::move(inner));
  }

  static Value write(const StrongType<Tag, U>& value) { return Codec<U>::write(value.value()); }
};

template <class U>
struct Codec<std::optional<U>> {
  static Result<std::optional<U>> read(const Value& value, const Path& path) {
    if (value.is_null()) return std::optional<U>{};
    FABRIC_TRY(auto inner, Codec<U>::read(value, path));
    return std::optional<U>(std::move(inner));
  }

  static Value write(const std::optional<U>& value) { return value ? Codec<U>::write(*value) : Value(); }
};

template <class U>
struct Codec<std::vector<U>> {
  static Result<std::vector<U>> read(const Value& value, const Path& path) {
    const Array* array = value.if_array();
    if (array == nullptr) return mismatch(path, "a list", value);
    std::vector<U> out;
    out.reserve(array->size());
    for (std::size_t i = 0; i < array->size(); ++i) {
      FABRIC_TRY(auto element, Codec<U>::read((*array)[i], path.index(i)));
      out.push_back(std::move(element));
    }
    return out;
  }

  static Value write(const std::vector<U>& value) {
    Array out;
    out.reserve(value.size());
    for (const auto& element : value)
      out.push_back(Codec<U>::write(element));
    return Value(std::move(out));
  }
};

template <class U, class Compare>
struct Codec<std::map<std::string, U, Compare>> {
  using T = std::map<std::string, U, Compare>;

  static Result<T> read(const Value& value, const Path& path) {
    const Object* object = value.if_object();
    if (object == nullptr) return mismatch(path, "an object", value);
    T out;
    for (const auto& [key, member] : *object) {
      FABRIC_TRY(auto element, Codec<U>::read(member, path.field(key)));
      out.emplace_hint(out.end(), key, std::move(element));
    }
    return out;
  }

  static Value write(const T& value) {
    Object out;
    for (const auto& [key, element] : value)
      out.emplace_hint(out.end(), key, Codec<U>::write(element));
    return Value(std::move(out));
  }
};

}  // namespace fabric::json
