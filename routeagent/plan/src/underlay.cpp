#include <fabric/routeagent/underlay.hpp>

#include <algorithm>
#include <array>

namespace fabric::routeagent {

net::Mac vxlan_mac(const net::IpAddress& node_address) {
  // FNV-1a, 64 bit: stable across builds and machines, as both ends must compute the same.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::uint8_t byte : node_address.bytes())
    hash = (hash ^ byte) * 0x100000001b3ULL;
  // FNV hardly mixes inputs as short and alike as the addresses of one subnet; MurmurHash3's finaliser does.
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53ULL;
  hash ^= hash >> 33U;
  net::Mac mac;
  mac.bytes[0] = 0x02;
  for (std::size_t i = 1; i < mac.bytes.size(); ++i) {
    mac.bytes.at(i) = static_cast<std::uint8_t>(hash >> (8U * (i - 1)));
  }
  return mac;
}

net::IpAddress vxlan_next_hop(const net::Mac& mac, net::Family family) {
  const auto& b = mac.bytes;
  if (family == net::Family::ipv4) {
    // RFC 3927 reserves the first and the last 256 addresses of 169.254.0.0/16.
    return net::IpAddress::v4(169, 254, std::clamp<std::uint8_t>(b[4], 1, 254), b[5]);
  }
  const std::array<std::uint8_t, 16> eui64{
      0xfe, 0x80, 0, 0, 0, 0, 0, 0, static_cast<std::uint8_t>(b[0] ^ 0x02U), b[1], b[2], 0xff, 0xfe, b[3], b[4], b[5]};
  return *net::IpAddress::from_bytes(eui64);
}

}  // namespace fabric::routeagent
