#include "neighbour.hpp"

#include <cerrno>

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "dump.hpp"
#include "link.hpp"

namespace fabric::kernel {

namespace {

/// Removing something that is gone, or whose link is gone, is done.
Result<void> gone_is_done(Result<void> result) {
  if (!result && result.error().code == Errc::not_found) return {};
  return result;
}

ndmsg entry_header(int family, std::uint32_t index, int state, int flags) {
  ndmsg header{};
  header.ndm_family = static_cast<std::uint8_t>(family);
  header.ndm_ifindex = static_cast<int>(index);
  header.ndm_state = static_cast<std::uint16_t>(state);
  header.ndm_flags = static_cast<std::uint8_t>(flags);
  return header;
}

}  // namespace

Result<std::set<netstate::FdbEntry>> dump_fdb(NetlinkSocket& socket, const std::string& link, std::uint32_t index) {
  // A dump cannot be limited to one device that is in no bridge (rtnl_fdb_dump), so it is filtered here.
  Message message(RTM_GETNEIGH, 0);
  message.header(entry_header(AF_BRIDGE, 0, 0, 0));
  std::set<netstate::FdbEntry> entries;
  FABRIC_CHECK(socket.dump(
      message, [&] { entries.clear(); },
      [&](nlmsghdr& answer) {
        const auto found = read_neighbour(answer);
        if (found && found->link == index) entries.insert({link, found->mac, found->address});
      }));
  return entries;
}

Result<std::set<netstate::Neighbour>> dump_neighbours(NetlinkSocket& socket, const std::string& link,
                                                      std::uint32_t index) {
  Message message(RTM_GETNEIGH, 0);
  message.header(ndmsg{}).put(NDA_IFINDEX, index);
  std::set<netstate::Neighbour> neighbours;
  FABRIC_CHECK(socket.dump(
      message, [&] { neighbours.clear(); },
      [&](nlmsghdr& answer) {
        const auto found = read_neighbour(answer);
        if (found && found->link == index && found->permanent) neighbours.insert({link, found->address, found->mac});
      }));
  return neighbours;
}

Result<void> put_fdb(NetlinkSocket& socket, const netstate::FdbEntry& entry) {
  FABRIC_TRY(const auto index, link_index(socket, entry.link));
  // An individual address has one destination (vxlan_fdb_update appends to group addresses only), which this replaces.
  Message message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  message.header(entry_header(AF_BRIDGE, index, NUD_PERMANENT | NUD_NOARP, NTF_SELF))
      .put(NDA_LLADDR, entry.mac)
      .put(NDA_DST, entry.remote);
  return socket.transact(message);
}

Result<void> remove_fdb(NetlinkSocket& socket, const netstate::FdbEntry& entry) {
  const auto index = link_index(socket, entry.link);
  if (!index) return gone_is_done(std::unexpected(index.error()));
  Message message(RTM_DELNEIGH, 0);
  message.header(entry_header(AF_BRIDGE, *index, 0, NTF_SELF)).put(NDA_LLADDR, entry.mac).put(NDA_DST, entry.remote);
  return gone_is_done(socket.transact(message));
}

Result<void> put_neighbour(NetlinkSocket& socket, const netstate::Neighbour& neighbour) {
  FABRIC_TRY(const auto index, link_index(socket, neighbour.link));
  Message message(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  message.header(entry_header(family_number(neighbour.address.family()), index, NUD_PERMANENT, 0))
      .put(NDA_DST, neighbour.address)
      .put(NDA_LLADDR, neighbour.mac);
  return socket.transact(message);
}

Result<void> remove_neighbour(NetlinkSocket& socket, const netstate::Neighbour& neighbour) {
  const auto index = link_index(socket, neighbour.link);
  if (!index) return gone_is_done(std::unexpected(index.error()));
  Message message(RTM_DELNEIGH, 0);
  message.header(entry_header(family_number(neighbour.address.family()), *index, 0, 0)).put(NDA_DST, neighbour.address);
  return gone_is_done(socket.transact(message));
}

}  // namespace fabric::kernel
