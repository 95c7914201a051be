#include <fabric/api/names.hpp>
#include <fabric/broker/join.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/crypto/hash.hpp>
#include <fabric/operator/join_role.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::operators {
namespace {

namespace names = api::names;

constexpr Duration kAnswerPoll{500};      // the broker answers within a second; it is another API server, so we ask
constexpr Duration kRetryBroker{10'000};  // a broker that cannot be reached, or that refused us
constexpr std::size_t kKeySize = 32;      // X25519 and Ed25519 private halves
constexpr std::string_view kClusterKey = "clusterID";  // in Secret submariner-broker-secret: whom the token is for

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

/// In the words of joinConfig, so that the message names what the user can change.
Error about_broker(Error error, const broker::BrokerInfo& info, std::string_view doing) {
  const std::string_view remedy =
      error.code == Errc::unauthorized
          ? "; the token in broker-info is not valid any more: copy the ConfigMap from the broker again"
      : error.code == Errc::forbidden
          ? "; the token in broker-info lacks rights: copy the ConfigMap from the broker again"
      : error.code == Errc::unavailable || error.code == Errc::timeout
          ? "; check that brokerURL is reachable from this cluster, or set brokerConfig.publicAPIServerURL at the "
            "broker"
          : "";
  Error out = std::move(error).with(fmt::format("broker {}: {}", info.url, doing));
  out.context += remedy;
  return out;
}

}  // namespace

NodeFacts facts_of(const api::Node& node) {
  NodeFacts facts;
  facts.name = node.metadata.name;
  facts.ready = api::is_ready(node);
  facts.schedulable = !node.spec.unschedulable && !node.metadata.is_deleting();
  facts.control_plane = api::is_control_plane(node);
  facts.worker = node.metadata.label(names::kWorkerRole) != nullptr;
  const std::string* label = node.metadata.label(names::kGatewayLabel);
  facts.gateway = label != nullptr && *label == names::kGatewayLabelValue;
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
    auto read = co_await role.read_member(info.psk);
    if (!read) co_return failed(kJoined, read.error(), kRetryBroker);
    member = *std::move(read);
    status.psk_ids.clear();
    for (const crypto::PskId& id : member->psks.ids())
      status.psk_ids.push_back(id.to_string());
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
    co_return co_await publish();
  }

  Task<bool> publish() {
    const auto proof =
        broker::prove_identity(*member->psks.newest(), settings.cluster_id.value(), member->identity.public_key);
    cluster.metadata.name = settings.cluster_id.value();
    cluster.metadata.annotations = {{std::string(names::kIdentityAnnotation), proof.identity},
                                    {std::string(names::kIdentityMacAnnotation), proof.mac}};
    cluster.spec.cluster_id = settings.cluster_id.value();
    cluster.spec.cluster_cidr = texts(discovery.pods.prefixes);
    cluster.spec.service_cidr = texts(discovery.services.prefixes);
    auto published = co_await role.publish_cluster(cluster, access.duplicate());
    if (!published && published.error().code == Errc::unauthorized) {
      // The broker took the member's token away (or was made anew): ask again with the token of broker-info.
      ignore(co_await role.env_.client.remove<api::SecretObject>({role.env_.ns, std::string(names::kBrokerSecret)}),
             "the next reconcile finds out");
    }
    if (!published) {
      const Error error = about_broker(std::move(published).error(), info, "publishing this cluster's record");
      co_return failed(kJoined, error, error.code == Errc::unauthorized ? kAnswerPoll : kRetryBroker);
    }
    auto local = co_await apply_object(role.env_.client, cluster_object(cluster, role.env_.ns));
    if (!local) co_return failed(kJoined, local.error(), kAnswerPoll);
    outcome.steps.push_back(done(kJoined, "Joined", fmt::format("cluster '{}' is a member", settings.cluster_id)));
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
    co_return true;
  }

  Task<bool> deploy() {
    AgentPlan plan = role.agent_plan(fabric, settings);
    // The values come from random secrets of 32 bytes and more, so a hash tells nothing about them.
    plan.secrets_fingerprint = fmt::format("{}.{}.{}", fingerprint(access), member->psks.newest()->id().to_string(),
                                           crypto::to_base64(member->identity.public_key).substr(0, 12));
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

Task<Result<JoinRole::Member>> JoinRole::read_member(const Secret& psk) {
  const kube::ObjectKey psk_key{env_.ns, std::string(names::kPskSecret)};
  const auto current = co_await read_secret(env_.client, psk_key, std::string(names::kPskKey));
  if (!current && current.error().code != Errc::not_found) co_return std::unexpected(current.error());
  if (!current || !current->equals(psk)) {
    FABRIC_CO_CHECK(co_await apply_object(env_.client, broker::psk_secret({}, env_.ns, psk)));
  }
  FABRIC_CO_TRY(Secret seed, co_await read_or_create_secret(env_.client, {env_.ns, std::string(names::kIdentitySecret)},
                                                            std::string(names::kIdentityKey), [this] {
                                                              return crypto::draw_secret(env_.entropy, kKeySize);
                                                            }));
  Member member;
  FABRIC_CO_TRY(crypto::Psk made, crypto::Psk::make(1, psk));
  FABRIC_CO_CHECK(member.psks.add(std::move(made)));
  FABRIC_CO_TRY(member.identity,
                crypto::Ed25519KeyPair::from_seed(std::move(seed))
                    .with(fmt::format("Secret {}/{}: key {}", env_.ns, names::kIdentitySecret, names::kIdentityKey)));
  co_return member;
}

Task<Result<BrokerAccess>> JoinRole::member_access(const api::JoinSettings& settings, const broker::BrokerInfo& info,
                                                   const Member& member) {
  const std::string id = settings.cluster_id.value();
  auto stored = co_await env_.client.get<api::SecretObject>({env_.ns, std::string(names::kBrokerSecret)});
  if (!stored && stored.error().code != Errc::not_found) co_return std::unexpected(stored.error());
  if (stored) {
    const auto text = [&](std::string_view key) {
      const Secret* found = stored->find(key);
      return found == nullptr ? std::string() : std::string(found->reveal_text());
    };
    const Secret* token = stored->find(names::kTokenKey);
    const bool fits = text(names::kBrokerUrlKey) == info.url && text(names::kCaKey) == info.client.ca_pem &&
                      text(names::kNamespaceKey) == info.client.ns && text(kClusterKey) == id;
    if (fits && token != nullptr && !token->empty()) {
      co_return BrokerAccess{info.url, info.client.ca_pem, info.client.ns, token->duplicate()};
    }
  }
  FABRIC_CO_TRY(BrokerAccess access, co_await ask_to_join(id, info, member));
  FABRIC_CO_CHECK(co_await store_access(id, access));
  co_return access;
}

/// Errc::conflict while the broker has not answered.
Task<Result<BrokerAccess>> JoinRole::ask_to_join(const std::string& id, const broker::BrokerInfo& info,
                                                 const Member& member) {
  const kube::ObjectKey join_secret{env_.ns, std::string(names::kJoinSecret)};
  FABRIC_CO_TRY(Secret private_key,
                co_await read_or_create_secret(env_.client, join_secret, std::string(names::kJoinKey),
                                               [this] { return crypto::draw_secret(env_.entropy, kKeySize); }));
  FABRIC_CO_TRY(const auto reply_key, crypto::X25519KeyPair::from_private(std::move(private_key))
                                          .with(fmt::format("Secret {}: key {}", join_secret, names::kJoinKey)));
  auto connected = broker_client({info.url, info.client.ca_pem, info.client.ns, info.client.token.duplicate()});
  if (!connected) co_return std::unexpected(about_broker(std::move(connected).error(), info, "connecting"));
  kube::Client* client = *connected;
  auto answer = if_exists(co_await client->get<api::ConfigMap>({info.client.ns, broker::member_answer_name(id)}));
  if (!answer)
    co_return std::unexpected(about_broker(std::move(answer).error(), info, "reading the answer to our join request"));
  const auto read =
      broker::read_member_answer(member.psks, id, reply_key, *answer ? (*answer)->data : broker::ConfigData());
  if (!read) co_return std::unexpected(read.error());
  switch (read->state) {
    case broker::MemberAnswer::State::accepted:
      co_return BrokerAccess{info.url, info.client.ca_pem, info.client.ns, read->token.duplicate()};
    case broker::MemberAnswer::State::refused:
      // Another key asks anew, so that the refusal is not taken for the answer to the next attempt.
      ignore(co_await env_.client.remove<api::SecretObject>(join_secret), "the next reconcile reads the same refusal");
      co_return fail(Errc::invalid, "broker {} refused cluster '{}': {}", info.url, id, read->reason);
    case broker::MemberAnswer::State::waiting:
      break;
  }
  const auto data =
      broker::make_join_request(*member.psks.newest(), id, reply_key.public_key, member.identity.public_key);
  json::Value request = broker::join_request_config_map(id, data);
  request["metadata"]["namespace"] = info.client.ns;
  auto created = co_await client->create(kube::resource_of<api::ConfigMap>(), std::move(request));
  if (!created && created.error().code != Errc::already_exists && created.error().code != Errc::conflict) {
    co_return std::unexpected(about_broker(std::move(created).error(), info, "asking to join"));
  }
  co_return fail(Errc::conflict,
                 "cluster '{}' has asked broker {} to join and waits for the answer; if it does not come, check that "
                 "fabric-operator runs in the broker cluster",
                 id, info.url);
}

Task<Result<void>> JoinRole::store_access(std::string id, const BrokerAccess& access) {
  std::map<std::string, Secret, std::less<>> data;
  data.emplace(names::kTokenKey, access.token.duplicate());
  data.emplace(names::kCaKey, Secret::from_text(access.ca_pem));
  data.emplace(names::kNamespaceKey, Secret::from_text(access.ns));
  data.emplace(names::kBrokerUrlKey, Secret::from_text(access.url));
  data.emplace(kClusterKey, Secret::from_text(id));
  const kube::ObjectKey key{env_.ns, std::string(names::kBrokerSecret)};
  FABRIC_CO_CHECK(co_await apply_object(env_.client, secret_manifest(key, data)));
  ignore(co_await env_.client.remove<api::SecretObject>({env_.ns, std::string(names::kJoinSecret)}),
         "a key that is left over is drawn anew or used again by the next join");
  co_return Result<void>();
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

Result<kube::Client*> JoinRole::broker_client(const BrokerAccess& access) {
  const std::string key = fingerprint(access);
  const auto found = connections_.find(key);
  if (found != connections_.end()) return found->second.client.get();
  FABRIC_TRY(kube::Connection connection, env_.connect_broker(access.duplicate()));
  return connections_.emplace(key, std::move(connection)).first->second.client.get();
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
  plan.images = env_.images;
  return plan;
}

}  // namespace fabric::operators
