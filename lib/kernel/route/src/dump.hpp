#pragma once

#include <fabric/net/ip_address.hpp>
#include <fabric/net/mac.hpp>
#include <fabric/netstate/script.hpp>

#include <cstdint>
#include <optional>

#include <linux/netlink.h>

/// Answers of rtnetlink, read: pure. Whatever a message says of its own size, nothing beyond its end is read. All are
/// absent when the message is of another type, too short, or not of interest.
namespace fabric::kernel {

/// Without its addresses.
std::optional<netstate::Interface> read_interface(nlmsghdr& message);

struct SeenAddress {
  int link = 0;  ///< Index.
  netstate::InterfaceAddress address;
};

/// Absent too for an address that may not be used yet.
std::optional<SeenAddress> read_address(nlmsghdr& message);

struct SeenDefault {
  std::uint32_t link = 0;  ///< Index; of several next hops the first.
  std::uint32_t metric = 0;
};

/// A default route of the main table.
std::optional<SeenDefault> read_default(nlmsghdr& message);

struct SeenRoute {
  netstate::RouteObject object;  ///< Without the name of its link.
  std::uint32_t link = 0;        ///< Index; 0 when there are several next hops.
};

/// A route of ours.
std::optional<SeenRoute> read_route(nlmsghdr& message);

/// Of the neighbour table or of an FDB.
struct SeenNeighbour {
  std::uint32_t link = 0;  ///< Index.
  bool permanent = false;
  net::IpAddress address;
  net::Mac mac;
};

std::optional<SeenNeighbour> read_neighbour(nlmsghdr& message);

struct SeenLink {
  std::uint32_t index = 0;
  bool is_vxlan = false;
  bool up = false;
  bool learning = false;
  netstate::VxlanLink vxlan;  ///< Valid if is_vxlan.

  /// Up and without learning, as put_link() leaves it.
  bool in_order() const { return is_vxlan && up && !learning; }
};

std::optional<SeenLink> read_link(nlmsghdr& message);

}  // namespace fabric::kernel
