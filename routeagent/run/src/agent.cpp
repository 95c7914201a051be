#include <fabric/api/names.hpp>
#include <fabric/async/backoff.hpp>
#include <fabric/base/version.hpp>
#include <fabric/netstate/diff.hpp>
#include <fabric/routeagent/agent.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::routeagent {

using async::Task;
namespace names = api::names;

namespace {

/// A burst of changes (a list, a restarting CNI) is planned once.
constexpr Duration kSettle{30};
/// Drift that no notification tells of (a rule deleted by hand) is found this late at most.
constexpr Duration kResync{30'000};
/// A gateway agent whose node is no gateway any more ends within seconds.
constexpr Duration kGatewayLeaves{1'000};
/// In an uninstall, which has to come to its end without an API server too.
constexpr Duration kOwnNodeGrace{10'000};

kube::Selection in_namespace(const Options& options) {
  return {.ns = options.ns, .label_selector = {}, .field_selector = {}};
}

}  // namespace

Agent::Agent(Options options, kube::Client& client, kernel::Kernel& kernel, controller::Runtime runtime,
             telemetry::Health& health, GatewayLock gateway_lock)
    : options_(std::move(options)),
      client_(client),
      kernel_(kernel),
      runtime_(runtime),
      health_(health),
      gateway_lock_(std::move(gateway_lock)),
      wake_(runtime.executor),
      own_node_(client, {.ns = {}, .label_selector = {}, .field_selector = "metadata.name=" + options_.node}, runtime),
      gateway_nodes_(client,
                     {.ns = {},
                      .label_selector = fmt::format("{}={}", names::kGatewayLabel, names::kGatewayLabelValue),
                      .field_selector = {}},
                     runtime),
      endpoints_(client, in_namespace(options_), runtime),
      clusters_(client, in_namespace(options_), runtime),
      gateways_(client, in_namespace(options_), runtime) {
  health_.set("stores", false, "waiting for the API server");
  health_.set("kernel", false, "nothing applied yet");
  const auto wake = [this](const kube::ObjectKey&, const auto*, const auto*) { wake_.notify(); };
  own_node_.store().on_change(wake);
  gateway_nodes_.store().on_change(wake);
  endpoints_.store().on_change(wake);
  clusters_.store().on_change(wake);
  gateways_.store().on_change(wake);
}

void Agent::start(async::TaskGroup& group) {
  group.spawn("own node", own_node_.run());
  if (options_.uninstall) {
    group.spawn("uninstall", uninstall());
    return;
  }
  group.spawn("gateway nodes", gateway_nodes_.run());
  group.spawn("endpoints", endpoints_.run());
  group.spawn("clusters", clusters_.run());
  group.spawn("gateways", gateways_.run());
  group.spawn("reconcile", run());
}

Task<Result<void>> Agent::wait_synced() {
  FABRIC_CO_CHECK(co_await own_node_.store().wait_synced());
  FABRIC_CO_CHECK(co_await gateway_nodes_.store().wait_synced());
  FABRIC_CO_CHECK(co_await endpoints_.store().wait_synced());
  FABRIC_CO_CHECK(co_await clusters_.store().wait_synced());
  FABRIC_CO_CHECK(co_await gateways_.store().wait_synced());
  health_.set("stores", true);
  log::info("stores synced");
  co_return Result<void>();
}

Task<Result<void>> Agent::run() {
  FABRIC_CO_CHECK(co_await wait_synced());
  const async::Backoff backoff{.initial = Duration{200}, .max = Duration{10'000}};
  while (true) {
    const auto done = co_await reconcile();
    if (!done && done.error().code == Errc::cancelled) co_return Result<void>();
    if (done) {
      if (failures_ > 0) log::info("the kernel follows the plan again");
      failures_ = 0;
      health_.set("kernel", true);
    } else {
      if (failures_++ == 0) log::warn("the node is not as planned", {{"error", done.error().message()}});
      health_.set("kernel", false, done.error().message());
    }
    const Duration resync = gateway_leaves_ ? kGatewayLeaves : kResync;
    const Duration pause = failures_ == 0 ? resync : backoff.delay(failures_ - 1, runtime_.random());
    const auto woken = co_await wake_.wait_for(runtime_.clock, pause);
    if (!woken) co_return Result<void>();
    const auto settled = co_await async::sleep_for(runtime_.clock, kSettle);
    if (!settled) co_return Result<void>();
  }
}

Agent::Tenure Agent::tenure() {
  Tenure result;
  gateway_leaves_ = false;
  const auto node = own_node_.store().find({"", options_.node});
  if (!gateway_lock_ || node == nullptr || api::is_gateway(*node)) return result;
  auto lock = gateway_lock_();
  gateway_leaves_ = !lock;
  if (!lock) return result;
  result.slices = result.slices | netstate::kGatewaySlices;
  result.lock = *std::move(lock);
  return result;
}

Task<Result<void>> Agent::reconcile() {
  FABRIC_CO_TRY(auto facts, co_await read_facts());
  const Tenure tenure = this->tenure();
  FABRIC_CO_TRY(auto observed, co_await kernel_.observe(tenure.slices));
  auto inputs = gather(options_, snapshot(), std::move(facts), observed.sysctls);
  if (!inputs) {
    const auto reported = co_await report(inputs.error().message(), {});
    if (!reported) co_return reported;
    co_return std::unexpected(std::move(inputs).error());
  }
  const Plan planned = plan(*inputs);
  note_findings(planned.findings);
  const auto applied = co_await apply(observed, planned.desired, tenure.slices);
  std::string failure;
  if (!applied) failure = applied.error().message();
  for (const Finding& finding : planned.findings)
    failure += (failure.empty() ? "" : "; ") + finding.message;
  const auto reported = co_await report(std::move(failure), planned.gateway);
  if (!applied) co_return applied;
  co_return reported;
}

Task<Result<netstate::HostFacts>> Agent::read_facts() {
  kernel::FactsRequest request;
  FABRIC_CO_TRY(const auto first, co_await kernel_.facts(request));
  request.sysctls = sysctls_of_interest(first.interfaces);
  co_return co_await kernel_.facts(std::move(request));
}

Task<Result<void>> Agent::apply(const netstate::State& observed, const netstate::State& desired,
                                netstate::Slices slices) {
  auto script = netstate::diff(observed, desired, slices);
  if (script.empty()) co_return Result<void>();
  for (const auto& step : script.steps)
    log::info("kernel", {{"step", netstate::describe(step)}});
  const auto result = co_await kernel_.apply(std::move(script));
  if (const Error* error = result.first_error()) co_return std::unexpected(*error);
  co_return Result<void>();
}

Task<Result<void>> Agent::uninstall() {
  const async::Backoff backoff{.initial = Duration{200}, .max = Duration{5'000}};
  health_.remove("stores");
  const auto known =
      co_await own_node_.store().wait_synced_until(runtime_.clock, runtime_.clock.steady() + kOwnNodeGrace);
  if (!known) co_return Result<void>();
  for (unsigned attempt = 0;; ++attempt) {
    const Tenure tenure = this->tenure();
    auto observed = co_await kernel_.observe(tenure.slices);
    Result<void> done;
    if (observed && gateway_leaves_) {
      done = fail(Errc::unavailable, "the gateway agent of this node, which is no gateway any more, still runs");
    } else if (observed) {
      done = co_await apply(*observed, {}, tenure.slices);
    } else {
      done = std::unexpected(std::move(observed).error());
    }
    if (done) {
      api::RouteAgent object{.metadata = {.name = options_.node, .ns = options_.ns},
                             .status = {.version = std::string(version())}};
      object.metadata.annotations[std::string(names::kCleanedAnnotation)] =
          fmt::format("{}@{}", names::kRouteAgentName, *options_.uninstall);
      done = co_await write_status(std::move(object));
    }
    if (done) break;
    log::warn("uninstall is not complete", {{"error", done.error().message()}});
    const auto slept = co_await async::sleep_for(runtime_.clock, backoff.delay(attempt, runtime_.random()));
    if (!slept) co_return Result<void>();
  }
  log::info("everything of ours is removed from this node");
  health_.set("kernel", true);
  while (co_await wake_.wait()) {
  }
  co_return Result<void>();
}

Task<Result<void>> Agent::report(std::string failure, std::string gateway) {
  api::RouteAgent object{.metadata = {.name = options_.node, .ns = options_.ns},
                         .status = {.version = std::string(version()),
                                    .status_failure = std::move(failure),
                                    .remote_endpoints = remote_endpoints(options_, snapshot(), gateway)}};
  if (written_ == object) co_return Result<void>();
  auto result = co_await write_status(object);
  if (result) written_ = std::move(object);
  co_return result;
}

Task<Result<void>> Agent::write_status(api::RouteAgent object) {
  kube::ApplyOptions options{.field_manager = std::string(names::kRouteAgentManager), .force = true};
  FABRIC_CO_CHECK(co_await client_.apply(std::move(object), std::move(options)));
  co_return Result<void>();
}

void Agent::note_findings(const std::vector<Finding>& findings) {
  std::set<Finding> now(findings.begin(), findings.end());
  for (const Finding& finding : now) {
    if (!findings_.contains(finding)) log::warn("finding", {{"message", finding.message}});
  }
  for (const Finding& finding : findings_) {
    if (!now.contains(finding)) log::info("finding is gone", {{"message", finding.message}});
  }
  findings_ = std::move(now);
}

Objects Agent::snapshot() const {
  return {.own_node = own_node_.store().snapshot(),
          .gateway_nodes = gateway_nodes_.store().snapshot(),
          .endpoints = endpoints_.store().snapshot(),
          .clusters = clusters_.store().snapshot(),
          .gateways = gateways_.store().snapshot()};
}

}  // namespace fabric::routeagent
