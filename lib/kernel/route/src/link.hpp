#pragma once

#include <fabric/netstate/state.hpp>

#include <optional>
#include <string>

#include "dump.hpp"
#include "netlink.hpp"

/// Our VXLAN link.
namespace fabric::kernel {

/// Absent: there is no link of this name.
Result<std::optional<SeenLink>> find_link(NetlinkSocket& socket, const std::string& name);

/// Errc::not_found names the link.
Result<std::uint32_t> link_index(NetlinkSocket& socket, const std::string& name);

/// Creates the link, or brings an existing one to these properties: MAC, MTU and state in place, otherwise by a new
/// link.
Result<void> put_link(NetlinkSocket& socket, const std::string& name, const netstate::VxlanLink& link);
Result<void> remove_link(NetlinkSocket& socket, const std::string& name);

}  // namespace fabric::kernel
