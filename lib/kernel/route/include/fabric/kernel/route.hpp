#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/state.hpp>

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

/// Links, FDB entries, neighbours and routes of this network namespace through rtnetlink. Blocking; one thread (the
/// kernel thread) uses an object; the namespace is that of the thread that called open().
namespace fabric::kernel {

class NetlinkSocket;

/// The slice of netstate::State that rtnetlink holds.
struct RouteState {
  std::map<std::string, netstate::VxlanLink> links;
  std::set<netstate::FdbEntry> fdb;
  std::set<netstate::Neighbour> neighbours;
  std::map<netstate::RouteKey, netstate::Route> routes;
  bool operator==(const RouteState&) const = default;
};

class RouteDriver {
 public:
  static Result<RouteDriver> open();
  RouteDriver(RouteDriver&&) noexcept;
  RouteDriver& operator=(RouteDriver&&) noexcept;
  ~RouteDriver();

  /// What is ours: the link named netstate::kVxlanLink if it is a VXLAN, the permanent entries on it, and the routes of
  /// the main table with netstate::kRouteProtocol. A link that is down, learns or lacks our properties is left out, and
  /// all that is on it too; a route with more than one next hop shows an empty link name. Both make a diff write them
  /// again.
  Result<RouteState> observe();

  /// Creates the link and sets it up, or brings an existing one to these properties. MAC and MTU change in place; VNI,
  /// port, local address and learning cannot, so the link is made anew: what was on it is gone and the next observe()
  /// shows that. A foreign link of this name that is not a VXLAN is Errc::already_exists.
  Result<void> put_link(const std::string& name, const netstate::VxlanLink& link);
  /// Idempotent, as all remove functions are.
  Result<void> remove_link(const std::string& name);

  /// Replaces the destination of this Ethernet address on this link.
  Result<void> put_fdb(const netstate::FdbEntry& entry);
  Result<void> remove_fdb(const netstate::FdbEntry& entry);

  Result<void> put_neighbour(const netstate::Neighbour& neighbour);
  Result<void> remove_neighbour(const netstate::Neighbour& neighbour);

  /// Replaces our route to this prefix, leaving exactly one. A foreign route to the same prefix with the same metric is
  /// never replaced: Errc::already_exists.
  Result<void> put_route(const netstate::RouteKey& key, const netstate::Route& route);
  Result<void> remove_route(const netstate::RouteKey& key);

 private:
  explicit RouteDriver(std::unique_ptr<NetlinkSocket> socket);
  Result<void> replace_link(const std::string& name, const netstate::VxlanLink& link);
  std::unique_ptr<NetlinkSocket> socket_;
  std::set<netstate::RouteKey> ours_;  ///< Of the latest dump; tells a replacement of ours from one of somebody else's.
};

}  // namespace fabric::kernel
