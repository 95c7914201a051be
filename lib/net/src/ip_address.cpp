#include <fabric/net/ip_address.hpp>

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>

namespace fabric::net {

std::string_view to_string(Family family) {
  return family == Family::ipv4 ? "IPv4" : "IPv6";
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
  // inet_pton wants a terminated string, and no address is longer than INET6_ADDRSTRLEN.
  std::array<char, INET6_ADDRSTRLEN + 1> buffer{};
  if (text.empty() || text.size() >= buffer.size()) return fail(Errc::invalid, "'{}' is not an IP address", text);
  std::ranges::copy(text, buffer.begin());
  IpAddress address;
  address.family_ = text.contains(':') ? Family::ipv6 : Family::ipv4;
  const int af = address.is_v4() ? AF_INET : AF_INET6;
  if (::inet_pton(af, buffer.data(), address.bytes_.data()) != 1) {
    return fail(Errc::invalid, "'{}' is not an IP address", text);
  }
  constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (!address.is_v4() && std::ranges::equal(kMappedPrefix, std::span(address.bytes_).first(12))) {
    return fail(Errc::invalid, "'{}' is an IPv4-mapped address; write it as IPv4", text);
  }
  return address;
}

Result<IpAddress> IpAddress::from_bytes(std::span<const std::uint8_t> bytes) {
  if (bytes.size() != 4 && bytes.size() != 16) {
    return fail(Errc::invalid, "an IP address has 4 or 16 bytes, not {}", bytes.size());
  }
  IpAddress address;
  address.family_ = bytes.size() == 4 ? Family::ipv4 : Family::ipv6;
  std::ranges::copy(bytes, address.bytes_.begin());
  return address;
}

IpAddress IpAddress::any(Family family) {
  IpAddress address;
  address.family_ = family;
  return address;
}

IpAddress IpAddress::v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  IpAddress address;
  address.bytes_ = {a, b, c, d};
  return address;
}

bool IpAddress::is_unspecified() const {
  return std::ranges::all_of(bytes(), [](std::uint8_t b) { return b == 0; });
}

bool IpAddress::is_loopback() const {
  if (is_v4()) return bytes_[0] == 127;
  return std::ranges::all_of(std::span(bytes_).first(15), [](std::uint8_t b) { return b == 0; }) && bytes_[15] == 1;
}

bool IpAddress::is_link_local() const {
  if (is_v4()) return bytes_[0] == 169 && bytes_[1] == 254;
  return bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
}

bool IpAddress::is_multicast() const {
  return is_v4() ? (bytes_[0] & 0xf0) == 0xe0 : bytes_[0] == 0xff;
}

std::string IpAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(is_v4() ? AF_INET : AF_INET6, bytes_.data(), buffer.data(), buffer.size());
  return buffer.data();
}

}  // namespace fabric::net
