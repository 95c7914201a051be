#pragma once

#include <fabric/async/event.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/controller/informer.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/kernel/kernel.hpp>
#include <fabric/kernel/netns_lock.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/routeagent/gather.hpp>
#include <fabric/routeagent/options.hpp>
#include <fabric/telemetry/health.hpp>

#include <functional>
#include <optional>
#include <set>

namespace fabric::routeagent {

/// Takes kernel::kGatewaySlicesLock. Empty where this kernel has no xfrm: then nothing can be left behind.
using GatewayLock = std::function<Result<kernel::NetnsLock>()>;

/// The route agent of one node: stores → plan → difference → kernel, whenever something changed. Belongs to the io
/// thread; lives as long as the loop. Nothing is written to the kernel before all stores have synced, and nothing is
/// removed when it stops. On a node that is no gateway it also removes what a gateway agent left there, which cannot do
/// it itself, since its pod goes with the label: policies that nobody keeps would take packets into dead tunnels.
class Agent {
 public:
  Agent(Options options, kube::Client& client, kernel::Kernel& kernel, controller::Runtime runtime,
        telemetry::Health& health, GatewayLock gateway_lock);

  /// Starts the informers and the loop.
  void start(async::TaskGroup& group);

  /// Something outside the API server changed: links, addresses, routes.
  void kernel_changed() { wake_.notify(); }

 private:
  /// What may be changed in the kernel now, for as long as this lives.
  struct Tenure {
    netstate::Slices slices = netstate::kRouteAgentSlices;
    kernel::NetnsLock lock{};
  };

  async::Task<Result<void>> run();
  async::Task<Result<void>> wait_synced();
  async::Task<Result<void>> reconcile();
  async::Task<Result<netstate::HostFacts>> read_facts();
  Tenure tenure();
  async::Task<Result<void>> apply(const netstate::State& observed, const netstate::State& desired,
                                  netstate::Slices slices);
  async::Task<Result<void>> uninstall();
  async::Task<Result<void>> report(std::string failure, std::string gateway);
  async::Task<Result<void>> write_status(api::RouteAgent object);
  void note_findings(const std::vector<Finding>& findings);
  Objects snapshot() const;

  Options options_;
  kube::Client& client_;
  kernel::Kernel& kernel_;
  controller::Runtime runtime_;
  telemetry::Health& health_;
  GatewayLock gateway_lock_;
  async::Notifier wake_;
  controller::Informer<api::Node> own_node_;
  controller::Informer<api::Node> gateway_nodes_;
  controller::Informer<api::Endpoint> endpoints_;
  controller::Informer<api::Cluster> clusters_;
  controller::Informer<api::Gateway> gateways_;
  std::optional<api::RouteAgent> written_;  ///< Status as last written, so that nothing is written without a change.
  std::set<Finding> findings_;              ///< Of the last plan, so that each is logged once.
  bool gateway_leaves_ = false;             ///< The node is no gateway any more, but its agent still runs.
  unsigned failures_ = 0;
};

}  // namespace fabric::routeagent
