#pragma once

#include <fabric/base/error.hpp>

#include <fmt/format.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace fabric::net {

/// An Ethernet address.
struct Mac {
  std::array<std::uint8_t, 6> bytes{};
  static Result<Mac> parse(std::string_view text);
  std::string to_string() const;
  auto operator<=>(const Mac&) const = default;
};

}  // namespace fabric::net

template <>
struct fmt::formatter<fabric::net::Mac> : fmt::formatter<std::string> {
  auto format(const fabric::net::Mac& mac, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(mac.to_string(), ctx);
  }
};
