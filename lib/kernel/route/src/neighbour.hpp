#pragma once

#include <fabric/netstate/state.hpp>

#include <set>
#include <string>

#include "netlink.hpp"

/// Permanent neighbours and FDB entries on one link of ours.
namespace fabric::kernel {

Result<std::set<netstate::FdbEntry>> dump_fdb(NetlinkSocket& socket, const std::string& link, std::uint32_t index);
Result<std::set<netstate::Neighbour>> dump_neighbours(NetlinkSocket& socket, const std::string& link,
                                                      std::uint32_t index);

Result<void> put_fdb(NetlinkSocket& socket, const netstate::FdbEntry& entry);
Result<void> remove_fdb(NetlinkSocket& socket, const netstate::FdbEntry& entry);
Result<void> put_neighbour(NetlinkSocket& socket, const netstate::Neighbour& neighbour);
Result<void> remove_neighbour(NetlinkSocket& socket, const netstate::Neighbour& neighbour);

}  // namespace fabric::kernel
