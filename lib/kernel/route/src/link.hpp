#pragma once

#include <fabric/netstate/state.hpp>

#include <optional>
#include <string>

#include "netlink.hpp"

/// Our VXLAN link.
namespace fabric::kernel {

struct SeenLink {
  std::uint32_t index = 0;
  bool is_vxlan = false;
  bool up = false;
  bool learning = false;
  netstate::VxlanLink vxlan;  ///< Valid if is_vxlan.

  /// Up and without learning, as put_link() leaves it.
  bool in_order() const { return is_vxlan && up && !learning; }
};

/// Absent: there is no link of this name.
Result<std::optional<SeenLink>> find_link(NetlinkSocket& socket, const std::string& name);

/// Errc::not_found names the link.
Result<std::uint32_t> link_index(NetlinkSocket& socket, const std::string& name);

/// Creates the link, or brings an existing one to these properties: MAC, MTU and state in place, otherwise by a new
/// link.
Result<void> put_link(NetlinkSocket& socket, const std::string& name, const netstate::VxlanLink& link);
Result<void> remove_link(NetlinkSocket& socket, const std::string& name);

}  // namespace fabric::kernel
