#include "dump.hpp"

#include <fabric/netstate/ownership.hpp>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "netlink.hpp"

namespace fabric::kernel {

namespace {

/// The family header of a message of this type.
template <class Header>
const Header* header_of(nlmsghdr& message, std::uint16_t type) {
  if (message.nlmsg_type != type || nlmsg_datalen(&message) < static_cast<int>(sizeof(Header))) return nullptr;
  return static_cast<const Header*>(nlmsg_data(&message));
}

template <std::size_t Max>
std::array<nlattr*, Max + 1> nested(nlattr* parent) {
  std::array<nlattr*, Max + 1> attributes{};
  if (parent != nullptr) nla_parse_nested(attributes.data(), static_cast<int>(Max), parent, nullptr);
  return attributes;
}

std::uint32_t first_link(const std::array<nlattr*, RTA_MAX + 1>& attributes) {
  if (attributes[RTA_MULTIPATH] == nullptr) return number_in<std::uint32_t>(attributes[RTA_OIF]);
  if (nla_len(attributes[RTA_MULTIPATH]) < static_cast<int>(sizeof(rtnexthop))) return 0;
  return static_cast<std::uint32_t>(static_cast<const rtnexthop*>(nla_data(attributes[RTA_MULTIPATH]))->rtnh_ifindex);
}

void read_vxlan(nlattr* properties, SeenLink& seen) {
  const auto vxlan = nested<IFLA_VXLAN_MAX>(properties);
  seen.vxlan.vni = number_in<std::uint32_t>(vxlan[IFLA_VXLAN_ID]);
  seen.vxlan.port = to_network(number_in<std::uint16_t>(vxlan[IFLA_VXLAN_PORT], to_network(seen.vxlan.port)));
  seen.learning = number_in<std::uint8_t>(vxlan[IFLA_VXLAN_LEARNING]) != 0;
  if (const auto local = address_in(vxlan[IFLA_VXLAN_LOCAL])) seen.vxlan.local = *local;
  if (const auto local = address_in(vxlan[IFLA_VXLAN_LOCAL6])) seen.vxlan.local = *local;
}

}  // namespace

std::optional<netstate::Interface> read_interface(nlmsghdr& message) {
  const auto* link = header_of<ifinfomsg>(message, RTM_NEWLINK);
  if (link == nullptr) return std::nullopt;
  const auto attributes = parse_attributes<IFLA_MAX>(message, sizeof *link);
  if (attributes[IFLA_IFNAME] == nullptr) return std::nullopt;
  return netstate::Interface{.name = text_in(attributes[IFLA_IFNAME]),
                             .index = link->ifi_index,
                             .mtu = number_in<std::uint32_t>(attributes[IFLA_MTU]),
                             .up = (link->ifi_flags & IFF_UP) != 0 && (link->ifi_flags & IFF_RUNNING) != 0,
                             .addresses = {}};
}

std::optional<SeenAddress> read_address(nlmsghdr& message) {
  const auto* entry = header_of<ifaddrmsg>(message, RTM_NEWADDR);
  if (entry == nullptr) return std::nullopt;
  const auto attributes = parse_attributes<IFA_MAX>(message, sizeof *entry);
  const auto flags = number_in<std::uint32_t>(attributes[IFA_FLAGS], entry->ifa_flags);
  if ((flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) != 0 && (flags & IFA_F_OPTIMISTIC) == 0) return std::nullopt;
  // On point-to-point links IFA_ADDRESS is the peer.
  auto address = address_in(attributes[IFA_LOCAL]);
  if (!address) address = address_in(attributes[IFA_ADDRESS]);
  if (!address) return std::nullopt;
  return SeenAddress{.link = static_cast<int>(entry->ifa_index), .address = {*address, entry->ifa_prefixlen}};
}

std::optional<SeenDefault> read_default(nlmsghdr& message) {
  const auto* route = header_of<rtmsg>(message, RTM_NEWROUTE);
  if (route == nullptr || route->rtm_dst_len != 0 || route->rtm_type != RTN_UNICAST) return std::nullopt;
  const auto attributes = parse_attributes<RTA_MAX>(message, sizeof *route);
  if (number_in<std::uint32_t>(attributes[RTA_TABLE], route->rtm_table) != RT_TABLE_MAIN) return std::nullopt;
  const auto link = first_link(attributes);
  if (link == 0) return std::nullopt;
  return SeenDefault{.link = link, .metric = number_in<std::uint32_t>(attributes[RTA_PRIORITY])};
}

std::optional<SeenRoute> read_route(nlmsghdr& message) {
  const auto* route = header_of<rtmsg>(message, RTM_NEWROUTE);
  if (route == nullptr || route->rtm_protocol != netstate::kRouteProtocol || route->rtm_type != RTN_UNICAST ||
      (route->rtm_flags & RTM_F_CLONED) != 0) {
    return std::nullopt;
  }
  const auto attributes = parse_attributes<RTA_MAX>(message, sizeof *route);
  if (number_in<std::uint32_t>(attributes[RTA_TABLE], route->rtm_table) != RT_TABLE_MAIN) return std::nullopt;
  if (route->rtm_family != AF_INET && route->rtm_family != AF_INET6) return std::nullopt;
  const auto family = route->rtm_family == AF_INET ? net::Family::ipv4 : net::Family::ipv6;
  auto dst = net::Cidr::of(address_in(attributes[RTA_DST]).value_or(net::IpAddress::any(family)), route->rtm_dst_len);
  if (!dst) return std::nullopt;
  SeenRoute seen{.object = {.key = {*dst}, .route = {}}};
  seen.link = attributes[RTA_MULTIPATH] != nullptr ? 0 : number_in<std::uint32_t>(attributes[RTA_OIF]);
  seen.object.route.via = address_in(attributes[RTA_GATEWAY]);
  seen.object.route.source = address_in(attributes[RTA_PREFSRC]);
  seen.object.route.mtu = number_in<std::uint32_t>(nested<RTAX_MAX>(attributes[RTA_METRICS])[RTAX_MTU]);
  return seen;
}

std::optional<SeenNeighbour> read_neighbour(nlmsghdr& message) {
  const auto* entry = header_of<ndmsg>(message, RTM_NEWNEIGH);
  if (entry == nullptr) return std::nullopt;
  const auto attributes = parse_attributes<NDA_MAX>(message, sizeof *entry);
  const auto address = address_in(attributes[NDA_DST]);
  const auto mac = mac_in(attributes[NDA_LLADDR]);
  if (!address || !mac) return std::nullopt;
  return SeenNeighbour{.link = static_cast<std::uint32_t>(entry->ndm_ifindex),
                       .permanent = (entry->ndm_state & NUD_PERMANENT) != 0,
                       .address = *address,
                       .mac = *mac};
}

std::optional<SeenLink> read_link(nlmsghdr& message) {
  const auto* interface = header_of<ifinfomsg>(message, RTM_NEWLINK);
  if (interface == nullptr) return std::nullopt;
  const auto attributes = parse_attributes<IFLA_MAX>(message, sizeof *interface);
  SeenLink seen;
  seen.index = static_cast<std::uint32_t>(interface->ifi_index);
  seen.up = (interface->ifi_flags & IFF_UP) != 0;
  seen.vxlan.mtu = number_in<std::uint32_t>(attributes[IFLA_MTU]);
  seen.vxlan.mac = mac_in(attributes[IFLA_ADDRESS]).value_or(net::Mac{});
  const auto details = nested<IFLA_INFO_MAX>(attributes[IFLA_LINKINFO]);
  seen.is_vxlan = text_in(details[IFLA_INFO_KIND]) == "vxlan";
  if (seen.is_vxlan) read_vxlan(details[IFLA_INFO_DATA], seen);
  return seen;
}

}  // namespace fabric::kernel
