#include <fabric/kernel/host_facts.hpp>

#include <limits>
#include <utility>

#include <linux/rtnetlink.h>

#include "dump.hpp"
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
      [&](nlmsghdr& answer) {
        const auto found = read_interface(answer);
        if (found) interfaces.insert_or_assign(found->index, *found);
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
  return socket.dump(message, forget, [&](nlmsghdr& answer) {
    const auto found = read_address(answer);
    if (!found) return;
    const auto interface = interfaces.find(found->link);
    if (interface != interfaces.end()) interface->second.addresses.push_back(found->address);
  });
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
  auto result = socket.dump(message, begin, [&](nlmsghdr& answer) {
    const auto found = read_default(answer);
    if (!found || found->metric >= best) return;
    best = found->metric;
    link = found->link;
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
    if (!value && value.error().code != Errc::not_found) return std::unexpected(std::move(value).error());
    if (value) facts.sysctls[key] = *std::move(value);
  }
  return facts;
}

}  // namespace fabric::kernel
