#include <fabric/kernel/route.hpp>
#include <fabric/netstate/ownership.hpp>

#include <cerrno>
#include <utility>

#include <linux/rtnetlink.h>
#include <net/if.h>

#include "dump.hpp"
#include "link.hpp"
#include "neighbour.hpp"
#include "netlink.hpp"

namespace fabric::kernel {

namespace {

using netstate::Route;
using netstate::RouteKey;
using netstate::RouteObject;
using netstate::Slice;

rtmsg route_header(const RouteKey& key, unsigned char scope, unsigned char type, unsigned flags) {
  rtmsg header{};
  header.rtm_family = family_number(key.dst.family());
  header.rtm_dst_len = static_cast<unsigned char>(key.dst.length());
  header.rtm_table = RT_TABLE_MAIN;
  header.rtm_protocol = netstate::kRouteProtocol;
  header.rtm_scope = scope;
  header.rtm_type = type;
  header.rtm_flags = flags;
  return header;
}

Message route_message(const RouteKey& key, const Route& route, std::uint32_t link, int flags) {
  Message message(RTM_NEWROUTE, NLM_F_CREATE | flags);
  const unsigned char scope = route.via || !key.dst.address().is_v4() ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
  message.header(route_header(key, scope, RTN_UNICAST, route.via ? RTNH_F_ONLINK : 0U))
      .put(RTA_DST, key.dst.address())
      .put(RTA_OIF, link);
  if (route.via) message.put(RTA_GATEWAY, *route.via);
  if (route.source) message.put(RTA_PREFSRC, *route.source);
  if (route.mtu != 0) {
    message.nest(RTA_METRICS, [&](Message& metrics) { metrics.put(RTAX_MTU, route.mtu); });
  }
  return message;
}

Result<void> remove_route(NetlinkSocket& socket, const RouteKey& key) {
  // More than one exists only after somebody appended to ours; the bound keeps a fight with him from lasting for ever.
  constexpr int kMostCopies = 16;
  for (int copy = 0; copy < kMostCopies; ++copy) {
    Message message(RTM_DELROUTE, 0);
    message.header(route_header(key, RT_SCOPE_NOWHERE, RTN_UNSPEC, 0)).put(RTA_DST, key.dst.address());
    auto result = socket.transact(message);
    if (!result && errno_of(result.error()) == ESRCH) return {};
    if (!result) return result;
  }
  return {};
}

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace

RouteDriver::RouteDriver(std::unique_ptr<NetlinkSocket> socket) : socket_(std::move(socket)) {}

RouteDriver::~RouteDriver() = default;

Result<std::unique_ptr<RouteDriver>> RouteDriver::open() {
  FABRIC_TRY(auto socket, NetlinkSocket::open());
  return std::unique_ptr<RouteDriver>(new RouteDriver(std::move(socket)));
}

netstate::Slices RouteDriver::slices() const {
  return {Slice::links, Slice::fdb, Slice::neighbours, Slice::routes};
}

Result<std::vector<RouteObject>> RouteDriver::dump_routes() {
  std::vector<RouteObject> routes;
  std::vector<std::uint32_t> links;
  for (const auto family : {AF_INET, AF_INET6}) {
    Message message(RTM_GETROUTE, 0);
    rtmsg filter{};
    filter.rtm_family = static_cast<unsigned char>(family);
    filter.rtm_table = RT_TABLE_MAIN;
    filter.rtm_protocol = netstate::kRouteProtocol;
    message.header(filter);
    const auto first = routes.size();
    const auto forget = [&] {
      routes.resize(first);
      links.resize(first);
    };
    auto result = socket_->dump(message, forget, [&](nlmsghdr& answer) {
      auto found = read_route(answer);
      if (!found) return;
      routes.push_back(std::move(found->object));
      links.push_back(found->link);
    });
    // ENOENT and EAFNOSUPPORT: the filter names a table that does not exist, or the kernel has no IPv6.
    if (!result && errno_of(result.error()) != ENOENT && result.error().code != Errc::unsupported) {
      return std::unexpected(std::move(result).error().with("dumping routes"));
    }
  }
  std::array<char, IF_NAMESIZE> name{};
  for (std::size_t i = 0; i < routes.size(); ++i) {
    const bool known = links[i] != 0 && if_indextoname(links[i], name.data()) != nullptr;
    routes[i].route.link = known ? name.data() : "";
  }
  return routes;
}

Result<void> RouteDriver::observe(netstate::Slices wanted, netstate::State& into) {
  const std::string name(netstate::kVxlanLink);
  FABRIC_TRY(const auto link, find_link(*socket_, name));
  const bool in_order = link && link->in_order();
  if (wanted.has(Slice::links) && in_order) into.links[name] = link->vxlan;
  if (wanted.has(Slice::fdb) && in_order) {
    FABRIC_TRY(into.fdb, dump_fdb(*socket_, name, link->index));
  }
  if (wanted.has(Slice::neighbours) && in_order) {
    FABRIC_TRY(into.neighbours, dump_neighbours(*socket_, name, link->index));
  }
  if (!wanted.has(Slice::routes)) return {};
  FABRIC_TRY(auto routes, dump_routes());
  into.routes.clear();
  ours_.clear();
  for (auto& [key, route] : routes) {
    const bool first = ours_.insert(key).second;
    if (!first) route = Route{};  // IPv6 lists several next hops as several routes.
    if (in_order || route.link != name) into.routes[key] = std::move(route);
  }
  return {};
}

Result<void> RouteDriver::put_route(const RouteObject& object) {
  const auto& [key, route] = object;
  FABRIC_TRY(const auto link, link_index(*socket_, route.link));
  if (!ours_.contains(key)) {
    auto created = socket_->transact(route_message(key, route, link, NLM_F_EXCL));
    if (created) ours_.insert(key);
    if (created || errno_of(created.error()) != EEXIST) return created;
    FABRIC_TRY(const auto routes, dump_routes());
    ours_.clear();
    for (const auto& present : routes)
      ours_.insert(present.key);
    if (!ours_.contains(key)) {
      return fail(Errc::already_exists, "a route to {} that is not ours is in the main table; remove it or its owner",
                  key.dst);
    }
  }
  return socket_->transact(route_message(key, route, link, NLM_F_REPLACE));
}

Result<void> RouteDriver::apply_one(const netstate::Step& step) {
  const bool remove = step.verb == netstate::Verb::remove;
  return std::visit(
      Overloaded{[&](const netstate::LinkObject& o) {
                   return remove ? remove_link(*socket_, o.name) : put_link(*socket_, o.name, o.link);
                 },
                 [&](const netstate::FdbEntry& o) { return remove ? remove_fdb(*socket_, o) : put_fdb(*socket_, o); },
                 [&](const netstate::Neighbour& o) {
                   return remove ? remove_neighbour(*socket_, o) : put_neighbour(*socket_, o);
                 },
                 [&](const RouteObject& o) {
                   if (!remove) return put_route(o);
                   ours_.erase(o.key);
                   return remove_route(*socket_, o.key);
                 },
                 [](const auto&) -> Result<void> { return fail(Errc::unsupported, "not an object of rtnetlink"); }},
      step.object);
}

std::vector<Result<void>> RouteDriver::apply(std::span<const netstate::Step> steps) {
  std::vector<Result<void>> results;
  results.reserve(steps.size());
  for (const auto& step : steps)
    results.push_back(apply_one(step));
  return results;
}

}  // namespace fabric::kernel
