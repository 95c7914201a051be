#pragma once

#include <fabric/base/error.hpp>
#include <fabric/kernel/driver.hpp>
#include <fabric/netstate/state.hpp>

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace fabric::kernel {

class NetlinkSocket;

/// Links, FDB entries, neighbours and routes of one network namespace through rtnetlink: the namespace of the thread
/// that calls open(). Blocking; one thread uses an object.
///
/// Ours are: the link named netstate::kVxlanLink if it is a VXLAN, the permanent entries on it, and the routes of the
/// main table with netstate::kRouteProtocol. A link that is down or learns is not reported, and neither is what is on
/// it; a route with several next hops is reported with an empty link name. Both make a diff write them again.
///
/// Errors of steps: already_exists when a foreign object is in the way (a link of our name that is not a VXLAN, a route
/// to the same prefix with the same metric), which is never replaced; invalid and unsupported with the kernel's own
/// words.
class RouteDriver final : public Driver {
 public:
  static Result<std::unique_ptr<RouteDriver>> open();
  ~RouteDriver() override;

  netstate::Slices slices() const override;
  Result<void> observe(netstate::Slices wanted, netstate::State& into) override;
  std::vector<Result<void>> apply(std::span<const netstate::Step> steps) override;

 private:
  explicit RouteDriver(std::unique_ptr<NetlinkSocket> socket);
  Result<void> apply_one(const netstate::Step& step);
  Result<void> put_route(const netstate::RouteObject& object);
  Result<std::vector<netstate::RouteObject>> dump_routes();
  std::unique_ptr<NetlinkSocket> socket_;
  std::set<netstate::RouteKey>
      ours_;  ///< As of the latest dump: tells a replacement of ours from one of somebody else's.
};

}  // namespace fabric::kernel
