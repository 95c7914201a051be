#include "link.hpp"

#include <fabric/netstate/diff.hpp>

#include <cerrno>

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

namespace fabric::kernel {

namespace {

ifinfomsg link_header(std::uint32_t index = 0) {
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  header.ifi_index = static_cast<int>(index);
  return header;
}

ifinfomsg link_header_up(std::uint32_t index) {
  auto header = link_header(index);
  header.ifi_flags = IFF_UP;
  header.ifi_change = IFF_UP;
  return header;
}

void fill_vxlan(Message& message, const netstate::VxlanLink& link) {
  const bool v4 = link.local.is_v4();
  message.put(IFLA_VXLAN_ID, link.vni)
      .put(v4 ? IFLA_VXLAN_LOCAL : IFLA_VXLAN_LOCAL6, link.local)
      .put(IFLA_VXLAN_PORT, to_network(link.port))
      .put(IFLA_VXLAN_LEARNING, std::uint8_t{0})
      // RFC 7348 section 5: the outer checksum over IPv4 should be zero (the inner packet has its own, and checksum
      // offload of encapsulated packets is broken in several drivers). RFC 6935 allows that over IPv6 only by
      // configuration of both ends, so it stays on there.
      .put(IFLA_VXLAN_UDP_CSUM, static_cast<std::uint8_t>(v4 ? 0 : 1));
}

Result<void> create(NetlinkSocket& socket, const std::string& name, const netstate::VxlanLink& link) {
  Message message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  message.header(link_header())
      .put(IFLA_IFNAME, std::string_view(name))
      .put(IFLA_MTU, link.mtu)
      .put(IFLA_ADDRESS, link.mac);
  message.nest(IFLA_LINKINFO, [&](Message& details) {
    details.put(IFLA_INFO_KIND, std::string_view("vxlan"));
    details.nest(IFLA_INFO_DATA, [&](Message& vxlan) { fill_vxlan(vxlan, link); });
  });
  return socket.transact(message);
}

/// Nothing speaks on this link by itself: no link-local address, no router solicitations, no duplicate detection. The
/// kernel takes this only for a link that exists (inet6_validate_link_af), so it is set before the link goes up.
Result<void> silence(NetlinkSocket& socket, std::uint32_t index) {
  Message message(RTM_SETLINK, 0);
  message.header(link_header(index)).nest(IFLA_AF_SPEC, [](Message& families) {
    families.nest(AF_INET6,
                  [](Message& inet6) { inet6.put(IFLA_INET6_ADDR_GEN_MODE, std::uint8_t{IN6_ADDR_GEN_MODE_NONE}); });
  });
  auto result = socket.transact(message);
  if (!result && result.error().code == Errc::unsupported) return {};  // IPv6 is off on this node.
  return result;
}

Result<void> change_in_place(NetlinkSocket& socket, std::uint32_t index, const netstate::VxlanLink& link) {
  Message message(RTM_NEWLINK, 0);
  message.header(link_header_up(index)).put(IFLA_MTU, link.mtu).put(IFLA_ADDRESS, link.mac);
  return socket.transact(message);
}

}  // namespace

Result<std::optional<SeenLink>> find_link(NetlinkSocket& socket, const std::string& name) {
  Message message(RTM_GETLINK, 0);
  message.header(link_header()).put(IFLA_IFNAME, std::string_view(name));
  std::optional<SeenLink> seen;
  auto result = socket.transact(message, [&](nlmsghdr& answer) {
    if (auto found = read_link(answer)) seen = *std::move(found);
  });
  if (!result && errno_of(result.error()) == ENODEV) return std::optional<SeenLink>();
  if (!result) return std::unexpected(std::move(result).error().with(fmt::format("looking for link {}", name)));
  return seen;
}

Result<std::uint32_t> link_index(NetlinkSocket& socket, const std::string& name) {
  FABRIC_TRY(const auto seen, find_link(socket, name));
  if (!seen) return fail(Errc::not_found, "there is no link {}", name);
  return seen->index;
}

Result<void> put_link(NetlinkSocket& socket, const std::string& name, const netstate::VxlanLink& link) {
  FABRIC_TRY(const auto seen, find_link(socket, name));
  if (seen && !seen->is_vxlan) {
    return fail(Errc::already_exists, "a link {} exists that is not a VXLAN and so not ours; delete or rename it",
                name);
  }
  if (seen && !seen->learning && !netstate::link_is_recreated(seen->vxlan, link)) {
    return change_in_place(socket, seen->index, link);
  }
  if (seen) FABRIC_CHECK(remove_link(socket, name));
  FABRIC_CHECK(create(socket, name, link));
  FABRIC_TRY(const auto index, link_index(socket, name));
  FABRIC_CHECK(silence(socket, index));
  return change_in_place(socket, index, link);
}

Result<void> remove_link(NetlinkSocket& socket, const std::string& name) {
  FABRIC_TRY(const auto seen, find_link(socket, name));
  if (!seen || !seen->is_vxlan) return {};
  Message message(RTM_DELLINK, 0);
  message.header(link_header(seen->index));
  auto result = socket.transact(message);
  if (!result && errno_of(result.error()) == ENODEV) return {};
  return result;
}

}  // namespace fabric::kernel
