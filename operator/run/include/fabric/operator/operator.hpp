#pragma once

#include <fabric/async/task_group.hpp>
#include <fabric/controller/controller.hpp>
#include <fabric/controller/informer.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/kube/events.hpp>
#include <fabric/operator/environment.hpp>
#include <fabric/operator/join_role.hpp>
#include <fabric/telemetry/health.hpp>

#include <optional>
#include <string>

namespace fabric::operators {

/// The operator of one cluster: stores, the queue of Fabrics, and the loop that makes the cluster match them. Start it
/// only while leading. Belongs to the io thread; lives as long as the loop.
class Operator {
 public:
  Operator(Environment& env, kube::EventRecorder& events, controller::Runtime runtime, telemetry::Health& health);

  /// Applies the definitions that the stores need, starts the stores, waits for them, and reconciles until cancelled.
  Task<Result<void>> run(async::TaskGroup& group);

  /// One reconcile of a Fabric; for the queue and for tests.
  Task<Result<controller::RequeueAfter>> reconcile(kube::ObjectKey key);

 private:
  struct Report;  ///< What a reconcile found, over the roles.

  void watch();
  void enqueue_all();
  Task<Result<void>> apply_definitions();
  Task<Result<void>> wait_synced();
  Observed observe() const;
  /// Why another Fabric has this role already; empty when none has. The oldest one wins.
  std::string taken_by(const api::Fabric& fabric, bool broker) const;
  Task<Result<void>> set_finalizer(const api::Fabric& fabric, bool present);
  Task<Report> work(const api::Fabric& fabric, api::FabricStatus& status);
  Task<Result<controller::RequeueAfter>> uninstall(const api::Fabric& fabric);
  Task<Result<void>> write_status(const api::Fabric& fabric, api::FabricStatus status);
  void tell(const api::Fabric& fabric, const api::FabricStatus& status, const Report& report);

  Environment& env_;
  kube::EventRecorder& events_;
  controller::Runtime runtime_;
  telemetry::Health& health_;
  controller::Informer<api::Fabric> fabrics_;
  controller::Informer<api::ConfigMap> config_maps_;  ///< Of the broker namespace.
  controller::Informer<api::Node> nodes_;
  controller::Informer<api::DaemonSet> daemonsets_;
  controller::Informer<api::Gateway> gateways_;
  controller::Informer<api::RouteAgent> route_agents_;
  controller::Informer<api::Cluster> clusters_;         ///< Of our namespace.
  controller::Informer<api::Cluster> broker_clusters_;  ///< Of the broker namespace.
  controller::Controller controller_;
  JoinRole join_;
};

}  // namespace fabric::operators
