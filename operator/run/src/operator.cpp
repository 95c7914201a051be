#include <fabric/api/names.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/operator/broker_role.hpp>
#include <fabric/operator/operator.hpp>
#include <fabric/operator/status.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::operators {
namespace {

namespace names = api::names;
using controller::RequeueAfter;

/// What an agent changes in its Gateway several times a minute must not make us work: only what the summary shows.
bool same_for_us(const api::Gateway& a, const api::Gateway& b) {
  const auto reduced = [](api::Gateway gateway) {
    gateway.metadata.resource_version.clear();
    gateway.metadata.generation = 0;
    gateway.metadata.annotations.erase(std::string(names::kUpdateTimestamp));
    for (api::Connection& connection : gateway.status.connections)
      connection.latency_rtt.reset();
    return gateway;
  };
  return reduced(a) == reduced(b);
}

/// Nodes report their heartbeat in the status: only what discovery, the choice of gateways and uninstall look at.
bool same_for_us(const api::Node& a, const api::Node& b) {
  return facts_of(a) == facts_of(b) && a.spec.pod_cidrs == b.spec.pod_cidrs;
}

bool same_for_us(const api::RouteAgent& a, const api::RouteAgent& b) {
  const std::string* left = a.metadata.annotation(names::kCleanedAnnotation);
  const std::string* right = b.metadata.annotation(names::kCleanedAnnotation);
  return (left == nullptr) == (right == nullptr) && (left == nullptr || *left == *right);
}

template <class T>
bool same_for_us(const T& a, const T& b) {
  T left = a;
  T right = b;
  left.metadata.resource_version.clear();
  right.metadata.resource_version.clear();
  return left == right;
}

Duration sooner(Duration a, Duration b) {
  if (a == Duration::zero()) return b;
  return b == Duration::zero() ? a : std::min(a, b);
}

}  // namespace

struct Operator::Report {
  std::vector<Step> steps;
  Duration requeue{0};
  std::vector<std::string> events;
  std::vector<std::string> warnings;

  void add(RoleOutcome outcome) {
    steps.insert(steps.end(), std::make_move_iterator(outcome.steps.begin()),
                 std::make_move_iterator(outcome.steps.end()));
    events.insert(events.end(), std::make_move_iterator(outcome.events.begin()),
                  std::make_move_iterator(outcome.events.end()));
    warnings.insert(warnings.end(), std::make_move_iterator(outcome.warnings.begin()),
                    std::make_move_iterator(outcome.warnings.end()));
    requeue = sooner(requeue, outcome.requeue);
  }
};

Operator::Operator(Environment& env, kube::EventRecorder& events, controller::Runtime runtime,
                   telemetry::Health& health)
    : env_(env),
      events_(events),
      runtime_(runtime),
      health_(health),
      fabrics_(env.client, select(""), runtime),
      config_maps_(env.client, select(std::string(names::kBrokerNamespace)), runtime),
      nodes_(env.client, select(""), runtime),
      daemonsets_(env.client, select(env.ns), runtime),
      gateways_(env.client, select(env.ns), runtime),
      route_agents_(env.client, select(env.ns), runtime),
      clusters_(env.client, select(env.ns), runtime),
      broker_clusters_(env.client, select(std::string(names::kBrokerNamespace)), runtime),
      controller_(
          {.name = "fabric", .limits = {}}, [this](kube::ObjectKey key) { return reconcile(std::move(key)); }, runtime),
      join_(env) {
  watch();
}

void Operator::watch() {
  fabrics_.store().on_change([this](const kube::ObjectKey& key, const api::Fabric* before, const api::Fabric* after) {
    // Our own writes of the status are no news.
    const bool same = before != nullptr && after != nullptr &&
                      before->metadata.generation == after->metadata.generation &&
                      before->metadata.deletion_timestamp == after->metadata.deletion_timestamp &&
                      before->metadata.finalizers == after->metadata.finalizers;
    if (!same) controller_.queue().add(key);
    if (after == nullptr) enqueue_all();  // another Fabric may have waited for this one's role
  });
  const auto wake = [this](auto& informer) {
    informer.store().on_change([this](const kube::ObjectKey&, const auto* before, const auto* after) {
      if (before != nullptr && after != nullptr && same_for_us(*before, *after)) return;
      enqueue_all();
    });
  };
  wake(config_maps_);
  wake(nodes_);
  wake(daemonsets_);
  wake(gateways_);
  wake(route_agents_);
  wake(clusters_);
  wake(broker_clusters_);
}

void Operator::enqueue_all() {
  for (const auto& [key, fabric] : *fabrics_.store().snapshot())
    controller_.queue().add(key);
}

Task<Result<void>> Operator::apply_definitions() {
  const async::Backoff backoff;
  for (unsigned attempt = 0;; ++attempt) {
    const auto applied = co_await apply_objects(env_.client, broker::submariner_crds());
    if (applied) co_return applied;
    health_.set("definitions", false, applied.error().message());
    log::warn("custom resource definitions were not applied", {{"error", applied.error().message()}});
    FABRIC_CO_CHECK(co_await async::sleep_for(env_.clock, backoff.delay(attempt, runtime_.random())));
  }
}

Task<Result<void>> Operator::wait_synced() {
  FABRIC_CO_CHECK(co_await fabrics_.store().wait_synced());
  FABRIC_CO_CHECK(co_await config_maps_.store().wait_synced());
  FABRIC_CO_CHECK(co_await nodes_.store().wait_synced());
  FABRIC_CO_CHECK(co_await daemonsets_.store().wait_synced());
  FABRIC_CO_CHECK(co_await gateways_.store().wait_synced());
  FABRIC_CO_CHECK(co_await route_agents_.store().wait_synced());
  FABRIC_CO_CHECK(co_await clusters_.store().wait_synced());
  co_return co_await broker_clusters_.store().wait_synced();
}

Task<Result<void>> Operator::run(async::TaskGroup& group) {
  FABRIC_CO_CHECK(co_await apply_definitions());
  health_.set("definitions", true);
  group.spawn("fabrics", fabrics_.run());
  group.spawn("config maps", config_maps_.run());
  group.spawn("nodes", nodes_.run());
  group.spawn("daemonsets", daemonsets_.run());
  group.spawn("gateways", gateways_.run());
  group.spawn("route agents", route_agents_.run());
  group.spawn("clusters", clusters_.run());
  group.spawn("broker clusters", broker_clusters_.run());
  group.spawn("broker answer", join_.watch_broker([this] { enqueue_all(); }));
  health_.set("stores", false, "waiting for the first lists");
  FABRIC_CO_CHECK(co_await wait_synced());
  health_.set("stores", true);
  log::info("stores are in sync");
  enqueue_all();
  co_return co_await controller_.run();
}

Observed Operator::observe() const {
  return {controller::values(nodes_.store().snapshot()), controller::values(daemonsets_.store().snapshot()),
          controller::values(gateways_.store().snapshot()), controller::values(route_agents_.store().snapshot()),
          controller::values(clusters_.store().snapshot())};
}

std::string Operator::taken_by(const api::Fabric& fabric, bool broker) const {
  const auto age = [](const api::Fabric& each) {
    return std::tuple(each.metadata.creation_timestamp.value_or(TimePoint::max()), each.metadata.ns,
                      each.metadata.name);
  };
  for (const auto& [key, other] : *fabrics_.store().snapshot()) {
    if (other->metadata.uid == fabric.metadata.uid) continue;
    const api::Roles roles = api::chosen_roles(other->spec);
    const bool same_role = broker ? roles.broker : roles.join;
    if (same_role && age(*other) < age(fabric)) return api::describe(*other);
  }
  return {};
}

Task<Result<void>> Operator::set_finalizer(const api::Fabric& fabric, bool present) {
  std::vector<std::string> finalizers = fabric.metadata.finalizers;
  std::erase(finalizers, names::kFabricFinalizer);
  if (present) finalizers.emplace_back(names::kFabricFinalizer);
  if (finalizers == fabric.metadata.finalizers) co_return Result<void>();
  // The version makes it conditional: a finalizer that somebody adds meanwhile is not lost.
  json::Value patch =
      json::Object{{"metadata", json::Object{{"resourceVersion", fabric.metadata.resource_version},
                                             {"finalizers", json::Array(finalizers.begin(), finalizers.end())}}}};
  auto patched = co_await env_.client.merge_patch(kube::resource_of<api::Fabric>(),
                                                  {fabric.metadata.ns, fabric.metadata.name}, std::move(patch));
  if (!patched && patched.error().code != Errc::not_found) co_return std::unexpected(std::move(patched).error());
  co_return Result<void>();
}

Task<Operator::Report> Operator::work(const api::Fabric& fabric, api::FabricStatus& status) {
  Report report;
  const std::vector<api::FieldError> findings = api::validate(fabric);
  if (api::has_errors(findings)) {
    report.steps.push_back(
        {std::string(kSpecValid), StepState::stalled, "InvalidSpec", api::summarize(fabric, findings)});
    co_return report;
  }
  std::string warnings;
  for (const api::FieldError& finding : findings)
    warnings += (warnings.empty() ? "" : "; ") + finding.to_string();
  report.steps.push_back({std::string(kSpecValid), StepState::done, warnings.empty() ? "Valid" : "Warnings", warnings});

  const api::Roles roles = api::chosen_roles(fabric.spec);
  if (!roles.broker && !roles.join) {
    report.steps.push_back({std::string(kSpecValid), StepState::stalled, "NothingToDo",
                            fmt::format("{}: neither spec.brokerConfig nor spec.joinConfig is set: set one of them",
                                        api::describe(fabric))});
    co_return report;
  }
  for (const bool broker : {true, false}) {
    if (!(broker ? roles.broker : roles.join)) continue;
    if (const std::string other = taken_by(fabric, broker); !other.empty()) {
      report.steps.push_back({std::string(broker ? kBrokerReady : kJoined), StepState::stalled, "AnotherFabric",
                              fmt::format("{}: {} {} in this cluster already; delete one of them",
                                          api::describe(fabric), other, broker ? "is the broker" : "joins")});
      continue;
    }
    report.add(broker ? co_await reconcile_broker(env_, fabric, status)
                      : co_await join_.reconcile(fabric, observe(), status));
  }
  co_return report;
}

Task<Result<RequeueAfter>> Operator::reconcile(kube::ObjectKey key) {
  const auto found = co_await env_.client.get<api::Fabric>(key);
  if (!found && found.error().code == Errc::not_found) co_return RequeueAfter{};
  if (!found) co_return std::unexpected(found.error());
  const api::Fabric& fabric = *found;
  if (fabric.metadata.is_deleting()) co_return co_await uninstall(fabric);
  FABRIC_CO_CHECK(co_await set_finalizer(fabric, true));

  api::FabricStatus status = fabric.status;
  const Report report = co_await work(fabric, status);
  status.action = api::describe(api::chosen_roles(fabric.spec));
  const TimePoint now = env_.clock.now();
  apply_unserved(status, api::unserved_fields(fabric.spec), fabric.metadata.generation, now);
  apply_steps(status, report.steps, fabric.metadata.generation, now);
  tell(fabric, status, report);
  FABRIC_CO_CHECK(co_await write_status(fabric, std::move(status)));
  co_return RequeueAfter{report.requeue};
}

Task<Result<RequeueAfter>> Operator::uninstall(const api::Fabric& fabric) {
  if (!fabric.metadata.has_finalizer(names::kFabricFinalizer)) co_return RequeueAfter{};
  const api::Roles roles = api::chosen_roles(fabric.spec);
  Report report;
  if (roles.join && taken_by(fabric, false).empty()) report.add(co_await join_.uninstall(fabric, observe()));
  const bool left = std::ranges::all_of(report.steps, [](const Step& step) { return step.state == StepState::done; });
  if (left && roles.broker && taken_by(fabric, true).empty()) report.add(co_await uninstall_broker(env_, fabric));
  const bool gone = std::ranges::all_of(report.steps, [](const Step& step) { return step.state == StepState::done; });
  tell(fabric, fabric.status, report);
  if (gone) {
    FABRIC_CO_CHECK(co_await set_finalizer(fabric, false));
    log::info("uninstalled", {{"fabric", api::object_key(fabric.metadata)}});
    co_return RequeueAfter{};
  }
  api::FabricStatus status = fabric.status;
  apply_steps(status, report.steps, fabric.metadata.generation, env_.clock.now());
  FABRIC_CO_CHECK(co_await write_status(fabric, std::move(status)));
  co_return RequeueAfter{report.requeue};
}

Task<Result<void>> Operator::write_status(const api::Fabric& fabric, api::FabricStatus status) {
  if (!worth_writing(fabric.status, status)) co_return Result<void>();
  json::Value object =
      json::Object{{"metadata", json::Object{{"name", fabric.metadata.name}, {"namespace", fabric.metadata.ns}}},
                   {"status", json::to_value(status)}};
  auto applied =
      co_await env_.client.apply_status(kube::resource_of<api::Fabric>(), std::move(object),
                                        {.field_manager = std::string(names::kOperatorManager), .force = true});
  if (!applied && applied.error().code != Errc::not_found) co_return std::unexpected(std::move(applied).error());
  co_return Result<void>();
}

void Operator::tell(const api::Fabric& fabric, const api::FabricStatus& status, const Report& report) {
  const api::ObjectReference regarding = api::reference_to(fabric);
  for (const std::string& text : report.events)
    events_.record(regarding, kube::EventKind::normal, "Progress", "Reconcile", text);
  for (const std::string& text : report.warnings) {
    events_.record(regarding, kube::EventKind::warning, "LeftBehind", "Reconcile", text);
    log::warn("something was left behind", {{"fabric", api::object_key(fabric.metadata)}, {"message", text}});
  }
  const api::Condition* before = api::find_condition(fabric.status.conditions, api::kReady);
  const api::Condition* after = api::find_condition(status.conditions, api::kReady);
  if (after == nullptr || (before != nullptr && before->reason == after->reason && before->message == after->message))
    return;
  const bool ready = after->status == api::ConditionStatus::yes;
  const bool stalled = api::is_true(status.conditions, api::kStalled);
  events_.record(regarding, stalled ? kube::EventKind::warning : kube::EventKind::normal, after->reason, "Reconcile",
                 after->message);
  log::info("fabric changed", {{"fabric", api::object_key(fabric.metadata)},
                               {"ready", ready},
                               {"reason", after->reason},
                               {"message", after->message}});
}

}  // namespace fabric::operators
