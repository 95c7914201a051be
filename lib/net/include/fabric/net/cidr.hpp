#pragma once

#include <fabric/net/ip_address.hpp>

#include <fmt/format.h>

#include <compare>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::net {

/// A network prefix in canonical form: all host bits are zero. Ordered by address, then by length.
class Cidr {
 public:
  /// 0.0.0.0/0.
  Cidr() = default;
  /// "10.1.0.0/16" or "fd00::/48". A missing length or a set host bit is refused; the message names the canonical form.
  static Result<Cidr> parse(std::string_view text);
  /// The prefix of this length that holds the address; the length must be 0..address_bits(family).
  static Result<Cidr> of(const IpAddress& address, int length);
  /// The /32 or /128 of one address.
  static Cidr host(const IpAddress& address);
  /// 0.0.0.0/0 or ::/0.
  static Cidr any(Family family);

  const IpAddress& address() const { return address_; }

  int length() const { return length_; }

  Family family() const { return address_.family(); }

  bool contains(const IpAddress& address) const;
  bool contains(const Cidr& other) const;

  bool overlaps(const Cidr& other) const { return contains(other) || other.contains(*this); }

  std::string to_string() const;
  auto operator<=>(const Cidr&) const = default;

 private:
  IpAddress address_;
  int length_ = 0;
};

/// Parses "a,b, c" and lists of single prefixes alike; an empty text gives an empty list.
Result<std::vector<Cidr>> parse_cidr_list(std::string_view comma_separated);

/// Sorted, without duplicates and without prefixes that another one of the list contains. Adjacent halves are not
/// merged, since every prefix stays one that somebody configured.
std::vector<Cidr> canonical_set(std::span<const Cidr> prefixes);

/// The first pair (a of left, b of right) that overlaps, in order; nullptrs when none does.
struct Overlap {
  const Cidr* left = nullptr;
  const Cidr* right = nullptr;

  explicit operator bool() const { return left != nullptr; }
};

Overlap first_overlap(std::span<const Cidr> left, std::span<const Cidr> right);

/// "10.0.0.0/16, fd00::/48".
std::string join(std::span<const Cidr> prefixes, std::string_view separator = ", ");

}  // namespace fabric::net

template <>
struct fmt::formatter<fabric::net::Cidr> : fmt::formatter<std::string> {
  auto format(const fabric::net::Cidr& cidr, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(cidr.to_string(), ctx);
  }
};
