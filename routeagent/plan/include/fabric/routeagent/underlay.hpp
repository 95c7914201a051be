#pragma once

#include <fabric/net/ip_address.hpp>
#include <fabric/net/mac.hpp>

#include <cstdint>

/// What every node can compute about another node's end of the VXLAN from its address alone, so that nothing has to be
/// exchanged or resolved.
namespace fabric::routeagent {

/// The locally administered unicast address of a node's VXLAN device: 02 and 40 bits of a hash of the node's address.
/// 1,000 nodes collide with a probability of about 5e-7.
net::Mac vxlan_mac(const net::IpAddress& node_address);

/// The next hop by which a route names that device. It exists only as a permanent neighbour on the sending node, so it
/// must be unique there only: 169.254.x.y for IPv4, the EUI-64 link-local address for IPv6.
net::IpAddress vxlan_next_hop(const net::Mac& mac, net::Family family);

/// How packets between clusters are wrapped on the way.
struct Encapsulation {
  bool outer_ipv6 = false;
  bool udp = false;  ///< RFC 3948.
};

/// Bytes that ESP in tunnel mode with AES-GCM or ChaCha20-Poly1305 adds at most: outer IP header 20 or 40, ESP header
/// 8, IV 8, padding and trailer 5 (RFC 4303 aligns to 4), ICV 16, and 8 of UDP.
constexpr std::uint32_t esp_overhead(Encapsulation encapsulation) {
  return (encapsulation.outer_ipv6 ? 40U : 20U) + 8U + 8U + 5U + 16U + (encapsulation.udp ? 8U : 0U);
}

/// Bytes that VXLAN adds: outer IP 20 or 40, UDP 8, VXLAN 8, inner Ethernet 14.
constexpr std::uint32_t vxlan_overhead(net::Family outer) {
  return (outer == net::Family::ipv6 ? 40U : 20U) + 8U + 8U + 14U;
}

/// IP and TCP headers without options.
constexpr std::uint32_t tcp_header(net::Family family) {
  return family == net::Family::ipv6 ? 60U : 40U;
}

}  // namespace fabric::routeagent
