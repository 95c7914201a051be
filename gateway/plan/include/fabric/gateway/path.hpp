#pragma once

#include <fabric/crypto/record.hpp>
#include <fabric/netstate/state.hpp>

#include <optional>

namespace fabric::gateway {

/// How ESP travels between two gateways: outer addresses of one family, and UDP encapsulation when NAT is in between.
struct Path {
  net::IpAddress local;
  net::IpAddress remote;
  std::optional<netstate::UdpEncap> encap;  ///< Ports as seen by packets that leave here.
  auto operator<=>(const Path&) const = default;
};

struct LocalEnd {
  std::vector<net::IpAddress> addresses;  ///< Private addresses of this node, most wanted first.
  bool nat = false;                       ///< Behind NAT, or told to encapsulate always.
  std::uint16_t natt_port = 4500;
};

/// The remote's private address, or its public one when it is behind NAT and has one; IPv4 before IPv6. ESP is put into
/// UDP when either end is behind NAT. Absent when no family is common to both.
std::optional<Path> choose_path(const LocalEnd& local, const crypto::StateRecord& remote);

}  // namespace fabric::gateway
