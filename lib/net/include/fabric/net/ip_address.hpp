#pragma once

#include <fabric/base/error.hpp>

#include <fmt/format.h>

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fabric::net {

enum class Family : std::uint8_t { ipv4, ipv6 };

std::string_view to_string(Family family);

/// Bits in an address of this family: 32 or 128.
constexpr int address_bits(Family family) {
  return family == Family::ipv4 ? 32 : 128;
}

/// An IPv4 or IPv6 address; IPv4-mapped IPv6 addresses are refused by parse. Ordered by family, then numerically.
class IpAddress {
 public:
  /// The IPv4 wildcard 0.0.0.0.
  IpAddress() = default;
  static Result<IpAddress> parse(std::string_view text);
  /// Four or sixteen bytes in network order; anything else is Errc::invalid.
  static Result<IpAddress> from_bytes(std::span<const std::uint8_t> bytes);
  static IpAddress any(Family family);
  static IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d);

  Family family() const { return family_; }

  bool is_v4() const { return family_ == Family::ipv4; }

  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_link_local() const;
  bool is_multicast() const;

  /// Network order; four bytes for IPv4, sixteen for IPv6.
  std::span<const std::uint8_t> bytes() const { return {bytes_.data(), is_v4() ? std::size_t{4} : std::size_t{16}}; }

  std::string to_string() const;
  auto operator<=>(const IpAddress&) const = default;

 private:
  Family family_ = Family::ipv4;
  std::array<std::uint8_t, 16> bytes_{};
};

}  // namespace fabric::net

template <>
struct fmt::formatter<fabric::net::IpAddress> : fmt::formatter<std::string> {
  auto format(const fabric::net::IpAddress& address, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(address.to_string(), ctx);
  }
};
