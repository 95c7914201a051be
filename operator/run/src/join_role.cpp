#include <fabric/api/names.hpp>
#include <fabric/base/assert.hpp>
#include <fabric/crypto/hash.hpp>
#include <fabric/operator/join_role.hpp>

#include <algorithm>

#include "broker_errors.hpp"

namespace fabric::operators {
namespace {

namespace names = api::names;

constexpr Duration kAnswerPoll{500};      // the broker answers within a second; it is another API server, so we ask
constexpr Duration kRetryBroker{10'000};  // a broker that cannot be reached, or that refused us

Step done(std::string_view type, std::string reason, std::string message) {
  return {std::string(type), StepState::done, std::move(reason), std::move(message)};
}

Step step_of_finding(std::string_view type, const Finding& finding) {
  return {std::string(type), StepState::stalled, finding.reason, finding.message};
}

std::string fingerprint(const BrokerAccess& access) {
  const std::string text = fmt::format("{}\n{}\n{}\n", access.url, access.ca_pem, access.ns);
  crypto::Bytes bytes(text.begin(), text.end());
  bytes.insert(bytes.end(), access.token.reveal().begin(), access.token.reveal().end());
  const auto digest = crypto::sha256(bytes);
  cleanse_memory(bytes);
  return crypto::to_base64(std::span(digest).first(12));
}

std::vector<std::string> texts(const std::vector<net::Cidr>& prefixes) {
  std::vector<std::string> out;
  for (const net::Cidr& prefix : prefixes)
    out.push_back(prefix.to_string());
  return out;
}

std::vector<api::SourcedCidr> sourced(const SourcedPrefixes& prefixes) {
  std::vector<api::SourcedCidr> out;
  for (const net::Cidr& prefix : prefixes.prefixes)
    out.push_back({prefix.to_string(), prefixes.source});
  return out;
}

std::vector<net::Cidr> readable(const std::vector<std::string>& list) {
  std::vector<net::Cidr> out;
  for (const std::string& text : list) {
    if (const auto prefix = net::Cidr::parse(text)) out.push_back(*prefix);
  }
  return out;
}

broker::ClusterRecord record_of(const api::Cluster& cluster) {
  return {cluster.spec.cluster_id, readable(cluster.spec.cluster_cidr), readable(cluster.spec.service_cidr),
          readable(cluster.spec.global_cidr)};
}

json::Value cluster_object(api::Cluster cluster, std::string_view ns) {
  cluster.metadata.ns = ns;
  return api::to_object(cluster);
}

}  // namespace

NodeFacts facts_of(const api::Node& node) {
  NodeFacts facts;
  facts.name = node.metadata.name;
  facts.ready = api::is_ready(node);
  facts.schedulable = !node.spec.unschedulable && !node.metadata.is_deleting();
  facts.control_plane = api::is_control_plane(node);
  facts.worker = node.metadata.label(names::kWorkerRole) != nullptr;
  facts.gateway = api::is_gateway(node);
  if (const std::string* owner = node.metadata.annotation(names::kLabelledByUs)) facts.label_owner = *owner;
  return facts;
}

/// One reconcile: each part adds its step and says whether the next one makes sense.
struct JoinRole::Work {
  JoinRole& role;
  api::Fabric fabric;
  Observed observed;
  api::FabricStatus& status;
  RoleOutcome outcome{};
  api::JoinSettings settings{};
  broker::BrokerInfo info{};
  std::optional<Member> member{};
  BrokerAccess access{};
  Discovery discovery{};
  api::Cluster cluster{};

  /// Records an error as the step's outcome.
  bool failed(std::string_view type, const Error& error, Duration requeue) {
    outcome.steps.push_back(step_of(type, error));
    outcome.requeue = requeue;
    return false;
  }

  Task<bool> read_broker_info() {
    auto effective = api::effective(fabric.spec.join_config.value_or(api::JoinConfig{}));
    if (!effective) {
      co_return failed(kBrokerInfoRead, std::move(effective).error().with(api::describe(fabric)), Duration{0});
    }
    settings = *std::move(effective);
    status.cluster_id = settings.cluster_id.value();
    std::vector<std::string> warnings;
    auto read = co_await role.read_info(settings, warnings);
    if (!read) co_return failed(kBrokerInfoRead, read.error(), kRetryBroker);
    info = *std::move(read);
    status.broker_url = info.url;
    outcome.steps.push_back(
        done(kBrokerInfoRead, warnings.empty() ? "Read" : "ReadWithWarnings",
             warnings.empty() ? fmt::format("broker {}", info.url) : fmt::format("{}", fmt::join(warnings, "; "))));
    co_return true;
  }

  Task<bool> discover_network() {
    auto facts = co_await role.gather(fabric, observed);
    if (!facts) co_return failed(kNetworkDiscovered, facts.error(), kRetryBroker);
    discovery = discover(*facts);
    status.cluster_cidrs = sourced(discovery.pods);
    status.service_cidrs = sourced(discovery.services);
    status.network_plugin = discovery.network_plugin;
    if (const Finding* finding = first_blocking(discovery.findings)) {
      outcome.steps.push_back(step_of_finding(kNetworkDiscovered, *finding));
      outcome.requeue = kRetryBroker;
      co_return false;
    }
    std::string message =
        fmt::format("pods {} from {}; services {} from {}", net::join(discovery.pods.prefixes), discovery.pods.source,
                    net::join(discovery.services.prefixes), discovery.services.source);
    for (const Finding& finding : discovery.findings)
      message += "; " + finding.message;
    outcome.steps.push_back(done(kNetworkDiscovered,
                                 discovery.findings.empty() ? "Discovered" : discovery.findings.front().reason,
                                 std::move(message)));
    co_return true;
  }

  Task<bool> join() {
    auto read = co_await role.read_member(settings.cluster_id.value(), info);
    if (!read) co_return failed(kJoined, read.error(), kRetryBroker);
    member = *std::move(read);
    auto granted = co_await role.member_access(settings, info, *member);
    if (!granted) {
      const bool waiting = granted.error().code == Errc::conflict;
      if (!waiting) co_return failed(kJoined, granted.error(), kRetryBroker);
      outcome.steps.push_back(
          {std::string(kJoined), StepState::working, "WaitingForBroker", granted.error().message()});
      outcome.requeue = kAnswerPoll;
      co_return false;
    }
    access = *std::move(granted);
    co_await follow();
    co_return co_await publish() && co_await store();
  }

  /// A PSK that does not come or is refused says nothing about those that we have: the work goes on with them.
  Task<void> follow() {
    const std::uint32_t before = member->psk.number;
    const bool two = member->psk.previous.has_value();
    const auto followed = co_await role.follow_broker(settings.cluster_id.value(), access, *member);
    if (!followed) {
      outcome.steps.push_back(step_of(kPskCurrent, followed.error()));
      outcome.requeue = kRetryBroker;
      co_return;
    }
    const std::uint32_t number = member->psk.number;
    if (number > before) outcome.events.push_back(fmt::format("PSK {} came from the broker", number));
    if (two && !member->psk.previous) outcome.events.push_back(fmt::format("PSK {} is not valid any more", number - 1));
    outcome.steps.push_back(
        member->psk.previous
            ? done(kPskCurrent, "Rotating", fmt::format("PSKs {} and {} are valid", number - 1, number))
            : done(kPskCurrent, "Current", fmt::format("PSK {} is the only valid one", number)));
  }

  /// After the record: peers must know this cluster by the newest PSK before the broker may drop the one before it, and
  /// the broker waits for gateways, which wait for the Secret.
  Task<bool> store() {
    auto stored = co_await role.store_psk(*member);
    if (!stored) co_return failed(kJoined, stored.error(), kAnswerPoll);
    status.psk_ids.clear();
    for (const crypto::PskId& id : psks().ids())
      status.psk_ids.push_back(id.to_string());
    outcome.steps.push_back(done(kJoined, "Joined", fmt::format("cluster '{}' is a member", settings.cluster_id)));
    co_return true;
  }

  /// Of a bundle that was checked when it was read.
  crypto::PskSet psks() const {
    auto set = crypto::make_psk_set(member->psk);
    FABRIC_ASSERT(set.has_value());
    return *std::move(set);
  }

  Task<bool> publish() {
    const auto proof = broker::prove_identity(psks(), settings.cluster_id.value(), member->identity.public_key);
    cluster.metadata.name = settings.cluster_id.value();
    cluster.metadata.annotations = {{std::string(names::kIdentityAnnotation), proof.identity},
                                    {std::string(names::kIdentityMacAnnotation), proof.mac}};
    cluster.spec.cluster_id = settings.cluster_id.value();
    cluster.spec.cluster_cidr = texts(discovery.pods.prefixes);
    cluster.spec.service_cidr = texts(discovery.services.prefixes);
    auto published = co_await role.publish_cluster(cluster, access.duplicate());
    if (!published && published.error().code == Errc::unauthorized) {
      // The broker took the member's token away (or was made anew): ask again with the token of broker-info.
      ignore(co_await role.forget_access(settings.cluster_id.value(), access), "the next reconcile finds out");
    }
    if (!published) {
      const Error error = about_broker(std::move(published).error(), info, "publishing this cluster's record");
      co_return failed(kJoined, error, error.code == Errc::unauthorized ? kAnswerPoll : kRetryBroker);
    }
    auto local = co_await apply_object(role.env_.client, cluster_object(cluster, role.env_.ns));
    if (!local) co_return failed(kJoined, local.error(), kAnswerPoll);
    co_return true;
  }

  Task<bool> choose() {
    std::vector<NodeFacts> nodes;
    for (const api::Node& node : observed.nodes)
      nodes.push_back(facts_of(node));
    const GatewayChoice choice = choose_gateways(api::object_key(fabric.metadata), nodes, settings.label_gateway);
    if (const Finding* finding = first_blocking(choice.findings)) {
      outcome.steps.push_back(step_of_finding(kGatewaysChosen, *finding));
      co_return false;
    }
    auto labelled = co_await role.label_gateways(fabric, choice);
    if (!labelled) co_return failed(kGatewaysChosen, labelled.error(), kRetryBroker);
    for (const std::string& node : choice.to_label)
      outcome.events.push_back(fmt::format("node '{}' was labelled as a gateway", node));
    outcome.steps.push_back(
        choice.findings.empty()
            ? done(kGatewaysChosen, "Chosen", fmt::format("gateway nodes: {}", fmt::join(choice.gateways, ", ")))
            : done(kGatewaysChosen, choice.findings.front().reason, choice.findings.front().message));
    co_await retire(choice.gateways);
    co_return true;
  }

  /// Gateways whose nodes are none any more. A broker that does not answer holds up nothing else.
  Task<void> retire(const std::vector<std::string>& gateways) {
    for (const api::Gateway& gateway : observed.gateways) {
      const std::string& node = gateway.metadata.name;
      if (std::ranges::find(gateways, node) != gateways.end()) continue;
      const auto retired = co_await role.retire_gateway(node, settings.cluster_id.value(), access);
      if (retired) {
        outcome.events.push_back(fmt::format("node '{}' is no gateway any more", node));
        continue;
      }
      outcome.steps.back() = {
          std::string(kGatewaysChosen), StepState::working, "RetiringGateway",
          fmt::format("node '{}' is no gateway any more, and its records are still to be deleted: {}", node,
                      retired.error().message())};
      outcome.requeue = kRetryBroker;
    }
  }

  Task<bool> deploy() {
    AgentPlan plan = role.agent_plan(fabric, settings);
    // The values come from random secrets of 32 bytes and more, so a hash tells nothing about them.
    plan.secrets_fingerprint =
        fmt::format("{}.{}", fingerprint(access), crypto::to_base64(member->identity.public_key).substr(0, 12));
    std::vector<json::Value> objects = agent_rbac(plan);
    objects.insert(objects.begin(), agent_namespace(plan));
    for (const Agent agent : kAgents)
      objects.push_back(agent_daemonset(agent, plan));
    auto applied = co_await apply_objects(role.env_.client, std::move(objects));
    if (!applied) co_return failed(kAgentsReady, applied.error(), kRetryBroker);
    report();
    co_return true;
  }

  void report() {
    std::vector<std::optional<api::DaemonSet>> daemonsets;
    for (const Agent agent : kAgents) {
      const auto found = std::ranges::find(observed.daemonsets, name_of(agent),
                                           [](const api::DaemonSet& d) { return std::string_view(d.metadata.name); });
      daemonsets.push_back(found == observed.daemonsets.end() ? std::nullopt : std::optional(*found));
    }
    outcome.steps.push_back(agents_step(daemonsets));
    std::vector<std::string> remote;
    for (const api::Cluster& each : observed.clusters)
      remote.push_back(each.spec.cluster_id);
    ConnectionReport connections = report_connections(settings.cluster_id.value(), observed.gateways, remote);
    status.gateways = std::move(connections.gateways);
    status.connections = std::move(connections.connections);
    status.connection_summary = std::move(connections.summary);
    outcome.steps.push_back(std::move(connections.step));
  }
};

Task<RoleOutcome> JoinRole::reconcile(api::Fabric fabric, Observed observed, api::FabricStatus& status) {
  Work work{*this, std::move(fabric), std::move(observed), status};
  // Short-circuit: each part needs what the one before it found.
  if (co_await work.read_broker_info() && co_await work.discover_network() && co_await work.join() &&
      co_await work.choose()) {
    static_cast<void>(co_await work.deploy());
  }
  co_return std::move(work.outcome);
}

Task<Result<broker::BrokerInfo>> JoinRole::read_info(const api::JoinSettings& settings,
                                                     std::vector<std::string>& warnings) {
  const kube::ObjectKey key{settings.broker_info_namespace, settings.broker_info_name};
  const auto config_map = co_await env_.client.get<api::ConfigMap>(key);
  if (!config_map && config_map.error().code == Errc::not_found) {
    co_return fail(Errc::invalid,
                   "ConfigMap {} does not exist: copy it from the broker cluster (kubectl get cm {} -n {} -o yaml)",
                   key, names::kBrokerInfo, names::kBrokerNamespace);
  }
  if (!config_map) co_return std::unexpected(config_map.error());
  const auto text = config_map->data.find(names::kBrokerInfoKey);
  if (text == config_map->data.end()) {
    co_return fail(Errc::invalid, "ConfigMap {}: key {} is missing: copy the ConfigMap from the broker cluster again",
                   key, names::kBrokerInfoKey);
  }
  auto read = broker::read_broker_info(text->second);
  if (!read) co_return std::unexpected(std::move(read).error().with(fmt::format("ConfigMap {}", key)));
  warnings = std::move(read->warnings);
  co_return std::move(read->info);
}

Task<Result<void>> JoinRole::publish_cluster(const api::Cluster& cluster, BrokerAccess access) {
  if (published_ == cluster && connections_.contains(fingerprint(access))) co_return Result<void>();
  FABRIC_CO_TRY(kube::Client * client, broker_client(access));
  FABRIC_CO_TRY(const auto others, co_await client->list<api::Cluster>(select(access.ns)));
  std::vector<broker::ClusterRecord> records;
  for (const api::Cluster& other : others.items)
    records.push_back(record_of(other));
  const auto overlaps = broker::check_overlaps(record_of(cluster), records);
  if (!overlaps.empty()) co_return fail(Errc::invalid, "{}", overlaps.front().message);
  FABRIC_CO_CHECK(co_await apply_object(*client, cluster_object(cluster, access.ns)));
  published_ = cluster;
  co_return Result<void>();
}

/// The Gateway object goes last: while it is there, the rest is tried again.
Task<Result<void>> JoinRole::retire_gateway(const std::string& node, const std::string& id,
                                            const BrokerAccess& access) {
  FABRIC_CO_TRY(kube::Client * broker, broker_client(access));
  FABRIC_CO_TRY(auto theirs, co_await endpoints_to_delete(*broker, access.ns, id, node));
  FABRIC_CO_CHECK(co_await delete_objects(*broker, std::move(theirs)));
  FABRIC_CO_TRY(auto ours, co_await endpoints_to_delete(env_.client, env_.ns, id, node));
  FABRIC_CO_CHECK(co_await delete_objects(env_.client, std::move(ours)));
  auto removed = co_await env_.client.remove<api::Gateway>({env_.ns, node});
  if (!removed && removed.error().code != Errc::not_found) co_return removed;
  co_return Result<void>();
}

Result<std::shared_ptr<kube::Connection>> JoinRole::broker_connection(const BrokerAccess& access) {
  const std::string key = fingerprint(access);
  const auto found = connections_.find(key);
  if (found != connections_.end()) return found->second;
  FABRIC_TRY(kube::Connection connection, env_.connect_broker(access.duplicate()));
  return connections_.emplace(key, std::make_shared<kube::Connection>(std::move(connection))).first->second;
}

Result<kube::Client*> JoinRole::broker_client(const BrokerAccess& access) {
  FABRIC_TRY(const auto connection, broker_connection(access));
  return connection->client.get();
}

Task<Result<void>> JoinRole::label_gateways(const api::Fabric& fabric, const GatewayChoice& choice) {
  const std::string owner = fmt::format("{}.{}", fabric.metadata.ns, fabric.metadata.name);
  for (const std::string& node : choice.to_label) {
    json::Value patch = json::Object{
        {"metadata",
         json::Object{{"labels", json::Object{{std::string(names::kGatewayLabel), names::kGatewayLabelValue}}},
                      {"annotations", json::Object{{std::string(names::kLabelledByUs), owner}}}}}};
    auto patched = co_await env_.client.merge_patch(kube::resource_of<api::Node>(), {"", node}, std::move(patch));
    if (!patched) co_return std::unexpected(std::move(patched).error());
  }
  co_return Result<void>();
}

AgentPlan JoinRole::agent_plan(const api::Fabric& fabric, const api::JoinSettings& settings) const {
  AgentPlan plan;
  plan.fabric = fmt::format("{}.{}", fabric.metadata.ns, fabric.metadata.name);
  plan.ns = env_.ns;
  plan.settings = settings;
  plan.defaults = env_.agents;
  return plan;
}

}  // namespace fabric::operators
