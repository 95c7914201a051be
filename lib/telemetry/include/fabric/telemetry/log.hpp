#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

/// Structured logs: one JSON object per line on stderr. One line per transition, none per tick; the message is a
/// constant, everything variable is a key and value. Any thread.
///
///   log::info("tunnel installed", {{"cluster", id}, {"spi", spi}});
namespace fabric::log {

enum class Level : std::uint8_t { debug, info, warn, error };

std::string_view to_string(Level level);
/// "debug", "info", "warn" or "error"; Errc::invalid names the choices.
Result<Level> parse_level(std::string_view text);

/// A string literal: a message that is put together at run time does not compile.
class Message {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): written as a literal at every call.
  consteval Message(const char* text) : text_(text) {}

  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

/// A key and its value: a bool, number, text, or anything that fmt formats. A Secret does not compile.
class Field {
 public:
  using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;

  template <class T>
    requires(!std::same_as<std::remove_cvref_t<T>, Secret>)
  Field(std::string_view key, const T& value) : key_(key), value_(to_value(value)) {}

  Field(std::string_view key, const Secret& value) = delete;

  std::string_view key() const { return key_; }

  const Value& value() const { return value_; }

 private:
  template <class T>
  static Value to_value(const T& value) {
    if constexpr (std::same_as<T, bool>) {
      return value;
    } else if constexpr (std::signed_integral<T>) {
      return static_cast<std::int64_t>(value);
    } else if constexpr (std::unsigned_integral<T>) {
      return static_cast<std::uint64_t>(value);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(value);
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
      return std::string(std::string_view(value));
    } else {
      return fmt::format("{}", value);
    }
  }

  std::string_view key_;
  Value value_;
};

using Fields = std::initializer_list<Field>;

/// The lowest level that is written; info at start.
void set_level(Level level);
bool enabled(Level level);

void write(Level level, Message message, Fields fields = {});

inline void debug(Message message, Fields fields = {}) {
  if (enabled(Level::debug)) write(Level::debug, message, fields);
}

inline void info(Message message, Fields fields = {}) {
  write(Level::info, message, fields);
}

inline void warn(Message message, Fields fields = {}) {
  write(Level::warn, message, fields);
}

inline void error(Message message, Fields fields = {}) {
  write(Level::error, message, fields);
}

/// For tests: while alive, lines of every level go to `sink` (without the time) instead of stderr. One at a time.
class Capture {
 public:
  Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture();

  /// Everything written so far, one JSON object per line.
  std::string text() const;

 private:
  Level previous_;
};

}  // namespace fabric::log
