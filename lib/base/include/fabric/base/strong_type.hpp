#pragma once

#include <fmt/format.h>

#include <compare>
#include <functional>
#include <utility>

namespace fabric {

/// A value with a name of its own: explicit construction, no implicit conversion, comparison and formatting of the
/// underlying value. `using Spi = StrongType<struct SpiTag, std::uint32_t>;`
template <class Tag, class T>
class StrongType {
 public:
  using value_type = T;
  StrongType() = default;

  explicit StrongType(T value) : value_(std::move(value)) {}

  const T& value() const { return value_; }

  auto operator<=>(const StrongType&) const = default;

 private:
  T value_{};
};

}  // namespace fabric

template <class Tag, class T>
struct fmt::formatter<fabric::StrongType<Tag, T>> : fmt::formatter<T> {
  auto format(const fabric::StrongType<Tag, T>& value, fmt::format_context& ctx) const {
    return fmt::formatter<T>::format(value.value(), ctx);
  }
};

template <class Tag, class T>
struct std::hash<fabric::StrongType<Tag, T>> {
  std::size_t operator()(const fabric::StrongType<Tag, T>& value) const { return std::hash<T>{}(value.value()); }
};
