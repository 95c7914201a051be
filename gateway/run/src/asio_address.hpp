#pragma once

#include <fabric/net/ip_address.hpp>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <optional>

namespace fabric::gateway {

inline boost::asio::ip::address to_asio(const net::IpAddress& address) {
  if (address.is_v4()) {
    boost::asio::ip::address_v4::bytes_type bytes{};
    std::ranges::copy(address.bytes(), bytes.begin());
    return boost::asio::ip::address_v4(bytes);
  }
  boost::asio::ip::address_v6::bytes_type bytes{};
  std::ranges::copy(address.bytes(), bytes.begin());
  return boost::asio::ip::address_v6(bytes);
}

inline std::optional<net::IpAddress> from_asio(const boost::asio::ip::address& address) {
  const auto parsed = address.is_v4() ? net::IpAddress::from_bytes(address.to_v4().to_bytes())
                                      : net::IpAddress::from_bytes(address.to_v6().to_bytes());
  if (!parsed) return std::nullopt;
  return *parsed;
}

}  // namespace fabric::gateway
