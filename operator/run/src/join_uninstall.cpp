#include <fabric/api/names.hpp>
#include <fabric/broker/join.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/operator/join_role.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>
#include <set>

namespace fabric::operators {
namespace {

namespace names = api::names;

constexpr Duration kPoll{2'000};  // acknowledgements wake us; this is for Nodes that go away silently
/// A broker that is gone must not keep a cluster from leaving. Its records of us are then for its owner to delete.
constexpr std::chrono::seconds kBrokerPatience{60};
/// A node that is down must not keep the others' cluster from leaving: a reboot takes less than this.
constexpr std::chrono::seconds kNodePatience{300};

Step waiting(std::string reason, std::string message) {
  return {std::string(kUninstalled), StepState::working, std::move(reason), std::move(message)};
}

template <class T>
std::map<std::string, std::string> cleaned_by(const std::vector<T>& objects) {
  std::map<std::string, std::string> out;
  for (const T& object : objects) {
    if (const std::string* value = object.metadata.annotation(names::kCleanedAnnotation))
      out.emplace(object.metadata.name, *value);
  }
  return out;
}

const api::DaemonSet* find(const Observed& observed, Agent agent) {
  const auto found = std::ranges::find(observed.daemonsets, name_of(agent),
                                       [](const api::DaemonSet& d) { return std::string_view(d.metadata.name); });
  return found == observed.daemonsets.end() ? nullptr : &*found;
}

/// The nodes that the DaemonSet puts a pod on.
std::vector<std::string> nodes_of(const Observed& observed, Agent agent) {
  std::vector<std::string> out;
  for (const api::Node& node : observed.nodes) {
    if (agent == Agent::route_agent || facts_of(node).gateway) out.push_back(node.metadata.name);
  }
  return out;
}

UninstallProgress progress_of(const Observed& observed, Agent agent, const std::string& token,
                              const std::vector<std::string>& nodes) {
  if (find(observed, agent) == nullptr) return {};  // it was never deployed, or is deleted already
  const auto cleaned = agent == Agent::gateway ? cleaned_by(observed.gateways) : cleaned_by(observed.route_agents);
  return uninstall_progress(name_of(agent), token, nodes, cleaned);
}

bool is_down(const Observed& observed, const std::string& name) {
  return std::ranges::any_of(observed.nodes,
                             [&](const api::Node& node) { return node.metadata.name == name && !api::is_ready(node); });
}

/// Warnings about nodes that are left as they are, since nothing runs there that could clean them.
std::vector<std::string> left_behind(const Observed& observed, const std::string& token) {
  std::set<std::string> nodes;
  for (const Agent agent : kAgents) {
    const auto progress = progress_of(observed, agent, token, nodes_of(observed, agent));
    nodes.insert(progress.waiting.begin(), progress.waiting.end());
  }
  std::vector<std::string> out;
  for (const std::string& node : nodes) {
    out.push_back(
        fmt::format("node '{}' was not Ready for {} s after the deletion and was not cleaned: its tunnels, routes and "
                    "filter rules stay until it is rebooted; reboot it before it is used again",
                    node, kNodePatience.count()));
  }
  return out;
}

template <class T>
void add_all(const std::vector<T>& objects, std::string_view ns, std::vector<json::Value>& out) {
  for (const T& object : objects)
    out.push_back(object_to_delete(T::kGvk, ns, object.metadata.name));
}

}  // namespace

Task<RoleOutcome> JoinRole::uninstall(api::Fabric fabric, Observed observed) {
  RoleOutcome outcome;
  outcome.requeue = kPoll;
  const auto stop = [&outcome](Step step) {
    outcome.steps.push_back(std::move(step));
    return outcome;
  };
  // A spec that is not valid any more must not keep the object: cleaning up needs only the id.
  const api::JoinConfig config = fabric.spec.join_config.value_or(api::JoinConfig{});
  auto effective = api::effective(config);
  api::JoinSettings settings;
  settings.cluster_id = api::ClusterId(config.cluster_id);
  if (effective) settings = *std::move(effective);

  AgentPlan plan = agent_plan(fabric, settings);
  const std::string token = std::to_string(fabric.metadata.generation);
  const TimePoint since = fabric.metadata.deletion_timestamp.value_or(env_.clock.now());
  const Duration waited = env_.clock.now() - since;
  for (const Agent agent : {Agent::route_agent, Agent::gateway}) {
    (agent == Agent::gateway ? plan.uninstall_gateway : plan.uninstall_route_agent) = token;
    std::vector<std::string> nodes = nodes_of(observed, agent);
    if (waited >= kNodePatience) std::erase_if(nodes, [&](const auto& node) { return is_down(observed, node); });
    const UninstallProgress progress = progress_of(observed, agent, token, nodes);
    if (progress.waiting.empty()) continue;
    auto applied = co_await apply_object(env_.client, agent_daemonset(agent, plan));
    if (!applied) co_return stop(step_of(kUninstalled, applied.error()));
    co_return stop(waiting("CleaningNodes", progress.message));
  }

  const auto left = co_await leave_broker(settings);
  if (!left && waited < kBrokerPatience) {
    co_return stop(waiting("LeavingBroker", fmt::format("{}; leaving without it {} s after the deletion",
                                                        left.error().message(), kBrokerPatience.count())));
  }
  if (!left) {
    outcome.events.push_back(fmt::format("left without the broker: {}; delete Cluster '{}' and its Endpoints there",
                                         left.error().message(), settings.cluster_id));
  }
  auto deleted = co_await delete_local(fabric, observed, plan, left.has_value());
  if (!deleted) co_return stop(step_of(kUninstalled, deleted.error()));
  outcome.requeue = Duration{0};
  outcome.warnings = left_behind(observed, token);
  co_return stop(
      {std::string(kUninstalled), StepState::done, "Uninstalled",
       outcome.warnings.empty() ? "every node is clean" : fmt::format("{}", fmt::join(outcome.warnings, "; "))});
}

Task<Result<void>> JoinRole::leave_broker(const api::JoinSettings& settings) {
  const std::string id = settings.cluster_id.value();
  auto stored = co_await env_.client.get<api::SecretObject>({env_.ns, std::string(names::kBrokerSecret)});
  if (!stored && stored.error().code == Errc::not_found) co_return Result<void>();  // never joined, or left already
  if (!stored) co_return std::unexpected(std::move(stored).error());
  const auto text = [&](std::string_view key) {
    const Secret* found = stored->find(key);
    return found == nullptr ? std::string() : std::string(found->reveal_text());
  };
  const BrokerAccess access{text(names::kBrokerUrlKey), text(names::kCaKey), text(names::kNamespaceKey),
                            Secret::from_text(text(names::kTokenKey))};
  FABRIC_CO_TRY(kube::Client * client, broker_client(access));
  FABRIC_CO_TRY(auto gone, co_await endpoints_to_delete(*client, access.ns, id));
  gone.push_back(object_to_delete(api::Cluster::kGvk, access.ns, id));
  FABRIC_CO_CHECK(co_await delete_objects(*client, std::move(gone)));

  // The rest (account, token) only the broker's operator can delete. Without broker-info we cannot ask; then it stays.
  std::vector<std::string> warnings;
  const auto info = co_await read_info(settings, warnings);
  if (!info) co_return Result<void>();
  const auto member = co_await read_member(id, *info);
  if (!member) co_return Result<void>();
  FABRIC_CO_TRY(const crypto::PskSet psks, crypto::make_psk_set(member->psk));
  FABRIC_CO_TRY(kube::Client * asking,
                broker_client({info->url, info->client.ca_pem, info->client.ns, info->client.token.duplicate()}));
  json::Value request =
      broker::join_request_config_map(id, broker::make_leave_request(*psks.newest(), id, member->identity));
  request["metadata"]["namespace"] = info->client.ns;
  auto created = co_await asking->create(kube::resource_of<api::ConfigMap>(), std::move(request));
  if (!created && created.error().code != Errc::already_exists) co_return std::unexpected(std::move(created).error());
  co_return Result<void>();
}

Task<Result<void>> JoinRole::delete_local(const api::Fabric& fabric, const Observed& observed, const AgentPlan& plan,
                                          bool left) {
  std::vector<json::Value> gone = agent_objects_to_delete(plan);
  add_all(observed.gateways, env_.ns, gone);
  add_all(observed.route_agents, env_.ns, gone);
  add_all(observed.clusters, env_.ns, gone);
  FABRIC_CO_TRY(const auto endpoints, co_await env_.client.list<api::Endpoint>(select(env_.ns)));
  add_all(endpoints.items, env_.ns, gone);
  gone.push_back(object_to_delete(api::SecretObject::kGvk, env_.ns, names::kPskSecret));
  gone.push_back(object_to_delete(api::SecretObject::kGvk, env_.ns, names::kJoinSecret));
  gone.push_back(object_to_delete(api::SecretObject::kGvk, env_.ns, names::kBrokerSecret));
  // A broker that still knows us by this identity lets nobody else use our id, not even us with another one.
  if (left) gone.push_back(object_to_delete(api::SecretObject::kGvk, env_.ns, names::kIdentitySecret));
  FABRIC_CO_CHECK(co_await delete_objects(env_.client, std::move(gone)));

  std::vector<NodeFacts> nodes;
  for (const api::Node& node : observed.nodes)
    nodes.push_back(facts_of(node));
  for (const std::string& node :
       labels_to_remove(nodes, fmt::format("{}.{}", fabric.metadata.ns, fabric.metadata.name))) {
    json::Value patch = json::Object{
        {"metadata", json::Object{{"labels", json::Object{{std::string(names::kGatewayLabel), nullptr}}},
                                  {"annotations", json::Object{{std::string(names::kLabelledByUs), nullptr}}}}}};
    auto patched = co_await env_.client.merge_patch(kube::resource_of<api::Node>(), {"", node}, std::move(patch));
    if (!patched && patched.error().code != Errc::not_found) co_return std::unexpected(std::move(patched).error());
  }
  published_.reset();
  following_.reset();
  answer_.reset();
  connections_.clear();
  co_return Result<void>();
}

}  // namespace fabric::operators
