#include <fabric/kernel/host_facts.hpp>

#include <limits>
#include <utility>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "netlink.hpp"

namespace fabric::kernel {

namespace {

using Interfaces = std::map<int, netstate::Interface>;

Result<Interfaces> dump_interfaces(NetlinkSocket& socket) {
  Message message(RTM_GETLINK, 0);
  message.header(ifinfomsg{});
  Interfaces interfaces;
  FABRIC_CHECK(socket.dump(
      message, [&] { interfaces.clear(); },
      [&](nlmsghdr& header) {
        if (header.nlmsg_type != RTM_NEWLINK) return;
        const auto& link = *static_cast<const ifinfomsg*>(nlmsg_data(&header));
        const auto attributes = parse_attributes<IFLA_MAX>(header, sizeof link);
        if (attributes[IFLA_IFNAME] == nullptr) return;
        interfaces[link.ifi_index] = {.name = nla_get_string(const_cast<nlattr*>(attributes[IFLA_IFNAME])),
                                      .index = link.ifi_index,
                                      .mtu = u32_in(attributes[IFLA_MTU]),
                                      .up = (link.ifi_flags & IFF_UP) != 0 && (link.ifi_flags & IFF_RUNNING) != 0,
                                      .addresses = {}};
      }));
  return interfaces;
}

Result<void> dump_addresses(NetlinkSocket& socket, Interfaces& interfaces) {
  Message message(RTM_GETADDR, 0);
  message.header(ifaddrmsg{});
  const auto forget = [&] {
    for (auto& [index, interface] : interfaces)
      interface.addresses.clear();
  };
  return socket.dump(message, forget, [&](nlmsghdr& header) {
    if (header.nlmsg_type != RTM_NEWADDR) return;
    const auto& entry = *static_cast<const ifaddrmsg*>(nlmsg_data(&header));
    const auto interface = interfaces.find(static_cast<int>(entry.ifa_index));
    if (interface == interfaces.end()) return;
    const auto attributes = parse_attributes<IFA_MAX>(header, sizeof entry);
    const auto flags = u32_in(attributes[IFA_FLAGS], entry.ifa_flags);
    if ((flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0 && (flags & IFA_F_OPTIMISTIC) == 0) return;
    // On point-to-point links IFA_ADDRESS is the peer.
    auto address = address_in(attributes[IFA_LOCAL]);
    if (!address) address = address_in(attributes[IFA_ADDRESS]);
    if (address) interface->second.addresses.push_back({*address, entry.ifa_prefixlen});
  });
}

std::uint32_t output_link(const std::array<nlattr*, RTA_MAX + 1>& attributes) {
  if (attributes[RTA_MULTIPATH] == nullptr) return u32_in(attributes[RTA_OIF]);
  if (nla_len(attributes[RTA_MULTIPATH]) < static_cast<int>(sizeof(rtnexthop))) return 0;
  return static_cast<std::uint32_t>(static_cast<const rtnexthop*>(nla_data(attributes[RTA_MULTIPATH]))->rtnh_ifindex);
}

/// The index of the default route's link, 0 without a default route.
Result<std::uint32_t> default_link(NetlinkSocket& socket, net::Family family) {
  Message message(RTM_GETROUTE, 0);
  rtmsg filter{};
  filter.rtm_family = family_number(family);
  filter.rtm_table = RT_TABLE_MAIN;
  message.header(filter);
  std::uint32_t link = 0;
  std::uint64_t best = 0;
  const auto begin = [&] {
    link = 0;
    best = std::numeric_limits<std::uint64_t>::max();
  };
  auto result = socket.dump(message, begin, [&](nlmsghdr& header) {
    if (header.nlmsg_type != RTM_NEWROUTE) return;
    const auto& route = *static_cast<const rtmsg*>(nlmsg_data(&header));
    if (route.rtm_dst_len != 0 || route.rtm_type != RTN_UNICAST) return;
    const auto attributes = parse_attributes<RTA_MAX>(header, sizeof route);
    if (u32_in(attributes[RTA_TABLE], route.rtm_table) != RT_TABLE_MAIN) return;
    const auto metric = u32_in(attributes[RTA_PRIORITY]);
    const auto candidate = output_link(attributes);
    if (candidate == 0 || metric >= best) return;
    best = metric;
    link = candidate;
  });
  // The kernel has no such table or no such family.
  if (!result && (errno_of(result.error()) == ENOENT || result.error().code == Errc::unsupported)) return 0U;
  if (!result) return std::unexpected(std::move(result).error());
  return link;
}

}  // namespace

HostFactsReader::HostFactsReader(std::unique_ptr<NetlinkSocket> socket, SysctlOptions sysctls)
    : socket_(std::move(socket)), sysctls_(std::move(sysctls)) {}

HostFactsReader::~HostFactsReader() = default;

Result<std::unique_ptr<HostFactsReader>> HostFactsReader::open(SysctlOptions sysctls) {
  FABRIC_TRY(auto socket, NetlinkSocket::open());
  return std::unique_ptr<HostFactsReader>(new HostFactsReader(std::move(socket), std::move(sysctls)));
}

Result<netstate::HostFacts> HostFactsReader::read(const FactsRequest& request) {
  netstate::HostFacts facts;
  FABRIC_TRY(auto interfaces, dump_interfaces(*socket_).with("dumping links"));
  FABRIC_CHECK(dump_addresses(*socket_, interfaces).with("dumping addresses"));
  for (const auto family : {net::Family::ipv4, net::Family::ipv6}) {
    FABRIC_TRY(const auto index, default_link(*socket_, family).with("looking for the default route"));
    const auto link = interfaces.find(static_cast<int>(index));
    if (link != interfaces.end()) facts.default_link[family] = link->second.name;
  }
  for (auto& [index, interface] : interfaces)
    facts.interfaces.push_back(std::move(interface));
  for (const auto& key : request.sysctls) {
    auto value = read_sysctl(sysctls_, key);
    if (value) facts.sysctls[key] = *std::move(value);
    if (!value && value.error().code != Errc::not_found) return std::unexpected(std::move(value).error());
  }
  return facts;
}

}  // namespace fabric::kernel
