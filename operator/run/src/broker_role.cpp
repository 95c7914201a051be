#include <fabric/api/fabric_rules.hpp>
#include <fabric/api/names.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/net/ip_address.hpp>
#include <fabric/operator/broker_psk.hpp>
#include <fabric/operator/broker_role.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>
#include <iterator>
#include <set>

namespace fabric::operators {
namespace {

namespace names = api::names;

constexpr Duration kSoon{300};  // a token controller needs about this long to fill a token Secret

/// While a PSK is rotated, Endpoints and time decide when it is done; nothing wakes us for either.
constexpr Duration kRotationPoll{2'000};

constexpr api::Gvk kEndpointSlice{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true};

kube::ObjectKey in_broker(std::string_view name) {
  return {std::string(names::kBrokerNamespace), std::string(name)};
}

std::string bracketed(const net::IpAddress& address) {
  return address.is_v4() ? address.to_string() : fmt::format("[{}]", address.to_string());
}

/// The first usable address of the slices, IPv4 before IPv6.
std::optional<std::string> url_of_slices(const std::vector<json::Value>& slices) {
  std::vector<std::pair<net::IpAddress, std::int64_t>> found;
  for (const json::Value& slice : slices) {
    const json::Value* port = slice.at({"ports", "0", "port"});
    const json::Value* endpoints = slice.find("endpoints");
    if (port == nullptr || port->if_int64() == nullptr || endpoints == nullptr || endpoints->if_array() == nullptr)
      continue;
    for (const json::Value& endpoint : *endpoints->if_array()) {
      const auto address = net::IpAddress::parse(endpoint.string_at({"addresses", "0"}));
      if (address) found.emplace_back(*address, *port->if_int64());
    }
  }
  if (found.empty()) return std::nullopt;
  const auto& [address, port] = *std::ranges::min_element(found);
  return fmt::format("https://{}:{}", bracketed(address), port);
}

/// The `server:` of the kubeconfig in kube-public/cluster-info. kubeadm writes it with one scalar per line.
std::optional<std::string> url_of_cluster_info(const api::ConfigMap& config_map) {
  const auto found = config_map.data.find("kubeconfig");
  if (found == config_map.data.end()) return std::nullopt;
  constexpr std::string_view kKey = "server: ";
  const auto begin = found->second.find(kKey);
  if (begin == std::string::npos) return std::nullopt;
  const std::string rest = found->second.substr(begin + kKey.size());
  std::string url = rest.substr(0, rest.find_first_of(" \r\n"));
  if (!url.starts_with("https://")) return std::nullopt;
  return url;
}

broker::FabricRef ref_of(const api::Fabric& fabric) {
  return {fabric.metadata.ns, fabric.metadata.name};
}

Task<Result<broker::ClientToken>> read_client_token(Environment& env) {
  FABRIC_CO_TRY(const api::SecretObject secret,
                co_await env.client.get<api::SecretObject>(in_broker(broker::kClientTokenSecret)));
  const Secret* token = secret.find(names::kTokenKey);
  const Secret* ca = secret.find(names::kCaKey);
  if (token == nullptr || token->empty() || ca == nullptr || ca->empty()) {
    co_return fail(Errc::unavailable, "Secret {}/{}: the API server's token controller has not filled in the token yet",
                   names::kBrokerNamespace, broker::kClientTokenSecret);
  }
  co_return broker::ClientToken{secret.metadata.name, std::string(names::kBrokerNamespace),
                                std::string(ca->reveal_text()), token->duplicate()};
}

Task<Result<void>> publish_broker_info(Environment& env, api::Fabric fabric, api::BrokerSettings settings,
                                       crypto::PskBundle psk, api::FabricStatus& status) {
  broker::BrokerInfo info;
  FABRIC_CO_TRY(info.url, co_await public_api_server_url(env.client, settings.public_api_server_url.value_or("")));
  FABRIC_CO_TRY(info.client, co_await read_client_token(env));
  info.psk = std::move(psk);
  if (settings.connectivity) info.components.emplace_back("connectivity");
  if (settings.service_discovery) info.components.emplace_back("service-discovery");
  if (settings.globalnet) {
    info.components.emplace_back("globalnet");
    info.globalnet_cidr_range = settings.globalnet_range.to_string();
    info.default_globalnet_cluster_size = settings.globalnet_cluster_size;
    FABRIC_CO_CHECK(co_await apply_object(
        env.client,
        broker::globalnet_info(ref_of(fabric), {info.globalnet_cidr_range, info.default_globalnet_cluster_size})));
  }
  info.service_discovery = settings.service_discovery;
  info.custom_domains = settings.custom_domains;
  status.broker_url = info.url;
  co_return co_await apply_object(env.client, broker::broker_info_config_map(ref_of(fabric), info));
}

/// Deletes what a member has at the broker.
Task<Result<void>> forget_member(Environment& env, std::string id) {
  const std::string_view ns = names::kBrokerNamespace;
  std::vector<json::Value> gone = broker::member_manifests(id);
  std::ranges::reverse(gone);  // the token first
  gone.push_back(object_to_delete(api::Cluster::kGvk, ns, id));
  FABRIC_CO_TRY(auto endpoints, co_await endpoints_to_delete(env.client, std::string(ns), id));
  std::ranges::move(endpoints, std::back_inserter(gone));
  gone.push_back(object_to_delete(api::ConfigMap::kGvk, ns, broker::member_answer_name(id)));
  co_return co_await delete_objects(env.client, std::move(gone));
}

/// Errc::unavailable while the member's token is not there yet.
Task<Result<void>> admit(Environment& env, const crypto::PskSet& psks, broker::JoinRequest request) {
  FABRIC_CO_CHECK(co_await apply_objects(env.client, broker::member_manifests(request.cluster_id)));
  auto token = co_await read_secret(env.client, in_broker(broker::member_token_name(request.cluster_id)),
                                    std::string(names::kTokenKey));
  if (!token && token.error().code == Errc::not_found) {
    co_return fail(Errc::unavailable, "{}: the API server's token controller has not filled it in yet",
                   token.error().message());
  }
  if (!token) co_return std::unexpected(std::move(token).error());
  FABRIC_CO_TRY(const auto answer, broker::make_member_answer(env.entropy, *psks.newest(), request, *token));
  co_return co_await apply_object(env.client, broker::member_answer_config_map(request.cluster_id, answer));
}

/// Answers one request and deletes it. The returned text is an event, if anything happened.
Task<Result<std::string>> answer_request(Environment& env, const crypto::PskSet& psks, api::ConfigMap request) {
  const std::string id(broker::cluster_of_join_request(request.metadata.name));
  FABRIC_CO_TRY(const auto existing,
                if_exists(co_await env.client.get<api::ConfigMap>(in_broker(broker::member_answer_name(id)))));
  const broker::ConfigData answer = existing ? existing->data : broker::ConfigData();
  const auto decision =
      broker::verify_join_request(psks, request.metadata.name, request.data, broker::pinned_identity(answer));
  std::string event;
  if (decision.refused) {
    event = decision.refused->text;
    FABRIC_CO_CHECK(co_await apply_object(
        env.client, broker::member_answer_config_map(id, broker::with_refusal(answer, *decision.refused))));
  } else if (decision.granted->kind == broker::JoinKind::leave) {
    FABRIC_CO_CHECK(co_await forget_member(env, id));
    event = fmt::format("cluster '{}' left", id);
  } else {
    FABRIC_CO_CHECK(co_await admit(env, psks, *decision.granted));
    event = fmt::format("cluster '{}' was admitted", id);
  }
  log::info("join request answered", {{"cluster", id}, {"answer", event}});
  const auto removed = co_await env.client.remove<api::ConfigMap>(
      in_broker(request.metadata.name),
      {.propagation = kube::Propagation::background, .uid = request.metadata.uid, .resource_version = ""});
  if (!removed && removed.error().code != Errc::not_found) co_return std::unexpected(removed.error());
  co_return event;
}

Task<Result<void>> answer_requests(Environment& env, const crypto::PskBundle& bundle,
                                   std::vector<api::ConfigMap> config_maps, RoleOutcome& outcome) {
  FABRIC_CO_TRY(const crypto::PskSet psks, crypto::make_psk_set(bundle));
  Result<void> first;
  for (const api::ConfigMap& each : config_maps) {
    if (broker::cluster_of_join_request(each.metadata.name).empty()) continue;
    auto event = co_await answer_request(env, psks, each);
    if (event) {
      outcome.events.push_back(*std::move(event));
    } else if (event.error().code == Errc::unavailable) {
      outcome.requeue = kSoon;  // the member waits for its token, which says nothing about the broker
    } else if (first) {
      first = std::unexpected(std::move(event).error());  // one bad request does not hold up the others
    }
  }
  co_return first;
}

/// Those whose answers the joining account may read.
std::vector<std::string> asking(const std::vector<api::ConfigMap>& config_maps) {
  std::set<std::string, std::less<>> out;
  for (const api::ConfigMap& each : config_maps) {
    for (const std::string_view id :
         {broker::cluster_of_join_request(each.metadata.name), broker::cluster_of_member_answer(each.metadata.name)}) {
      if (!id.empty()) out.emplace(id);
    }
  }
  return {out.begin(), out.end()};
}

/// The PSKs that are valid now, after drawing one if that was asked for.
Task<Result<BrokerPsk>> settle_psk(Environment& env, const RotationDecision& decision, BrokerPsk psk,
                                   RoleOutcome& outcome) {
  if (!decision.start) co_return psk;
  FABRIC_CO_TRY(BrokerPsk next, co_await draw_next_psk(env, std::move(psk)));
  const std::uint32_t number = next.bundle.number;
  log::info("a PSK was drawn", {{"number", number}});
  outcome.events.push_back(fmt::format("PSK {} was drawn and goes to every member; PSK {} stays valid until all use it",
                                       number, number - 1));
  co_return next;
}

Task<Result<void>> follow_rotation(Environment& env, BrokerPsk psk, RotationDecision decision,
                                   std::vector<api::Cluster> clusters, api::FabricStatus& status,
                                   RoleOutcome& outcome) {
  FABRIC_CO_TRY(const auto members, co_await deliver_to_members(env, psk.bundle.duplicate(), std::move(clusters)));
  const PskFacts facts = psk.facts();
  status.psk_rotation = rotation_status(facts, members);
  outcome.steps.push_back(rotation_step(facts, decision, members));
  if (facts.rotating && outcome.requeue == Duration::zero()) outcome.requeue = kRotationPoll;
  if (!may_finish(facts, members)) co_return Result<void>();
  FABRIC_CO_CHECK(co_await drop_previous_psk(env, std::move(psk)));
  log::info("a PSK was dropped", {{"number", facts.number - 1}});
  outcome.events.push_back(
      fmt::format("PSK {} is not valid any more: every live gateway uses PSK {}", facts.number - 1, facts.number));
  outcome.requeue = kSoon;  // broker-info and the members hear of it then
  co_return Result<void>();
}

Task<Result<void>> work(Environment& env, api::Fabric fabric, api::FabricStatus& status, RoleOutcome& outcome) {
  FABRIC_CO_TRY(const api::BrokerSettings settings,
                api::effective(fabric.spec.broker_config.value_or(api::BrokerConfig{})).with(api::describe(fabric)));
  const std::string ns(names::kBrokerNamespace);
  FABRIC_CO_CHECK(co_await apply_objects(env.client, broker::submariner_crds()));
  FABRIC_CO_TRY(auto config_maps, co_await env.client.list<api::ConfigMap>(select(ns)));
  FABRIC_CO_CHECK(
      co_await apply_objects(env.client, broker::broker_manifests(ref_of(fabric), asking(config_maps.items))));
  FABRIC_CO_TRY(BrokerPsk known, co_await read_or_create_psk(env, settings.psk_number));
  const RotationDecision decision = decide_rotation(known.facts(), settings.psk_number);
  FABRIC_CO_TRY(BrokerPsk psk, co_await settle_psk(env, decision, std::move(known), outcome));
  // Whoever copies broker-info from now on has the newest PSK, before anybody needs it.
  FABRIC_CO_CHECK(co_await publish_broker_info(env, fabric, settings, psk.bundle.duplicate(), status));
  FABRIC_CO_CHECK(co_await answer_requests(env, psk.bundle, std::move(config_maps.items), outcome));
  FABRIC_CO_TRY(auto clusters, co_await env.client.list<api::Cluster>(select(ns)));
  status.joined_clusters.clear();
  for (const api::Cluster& cluster : clusters.items)
    status.joined_clusters.push_back(cluster.spec.cluster_id);
  FABRIC_CO_TRY(const crypto::PskSet psks, crypto::make_psk_set(psk.bundle));
  status.psk_ids.clear();
  for (const crypto::PskId& id : psks.ids())
    status.psk_ids.push_back(id.to_string());
  co_return co_await follow_rotation(env, std::move(psk), decision, std::move(clusters.items), status, outcome);
}

}  // namespace

Task<Result<std::string>> public_api_server_url(kube::Client& client, std::string configured) {
  if (!configured.empty()) co_return configured;
  FABRIC_CO_TRY(const auto info, optional_source(co_await client.get<api::ConfigMap>({"kube-public", "cluster-info"})));
  if (info) {
    if (auto url = url_of_cluster_info(*info)) co_return *std::move(url);
  }
  FABRIC_CO_TRY(const auto slices, co_await client.list(kube::resource_of(kEndpointSlice),
                                                        select("default", "kubernetes.io/service-name=kubernetes")));
  if (auto url = url_of_slices(slices.items)) co_return *std::move(url);
  co_return fail(
      Errc::invalid,
      "no address of the API server was found in ConfigMap kube-public/cluster-info or the EndpointSlices of Service "
      "default/kubernetes: set spec.brokerConfig.publicAPIServerURL");
}

Task<RoleOutcome> reconcile_broker(Environment& env, api::Fabric fabric, api::FabricStatus& status) {
  RoleOutcome outcome;
  const Result<void> done = co_await work(env, std::move(fabric), status, outcome);
  if (done) {
    outcome.steps.push_back({std::string(kBrokerReady), StepState::done, "Ready",
                             fmt::format("ConfigMap {}/{} can be copied to clusters that join", names::kBrokerNamespace,
                                         names::kBrokerInfo)});
    co_return outcome;
  }
  outcome.steps.push_back(step_of(kBrokerReady, done.error()));
  outcome.requeue = kSoon;
  co_return outcome;
}

Task<RoleOutcome> uninstall_broker(Environment& env, api::Fabric fabric) {
  RoleOutcome outcome;
  const std::string_view ns = names::kBrokerNamespace;
  const auto clusters = co_await env.client.list<api::Cluster>(select(std::string(ns)));
  if (clusters && !clusters->items.empty()) {
    std::vector<std::string> ids;
    for (const api::Cluster& cluster : clusters->items)
      ids.push_back(cluster.spec.cluster_id);
    outcome.steps.push_back(
        {std::string(kUninstalled), StepState::working, "MembersLeft",
         fmt::format("{} cannot go while clusters {} are joined: delete their Fabrics first, or delete their "
                     "Cluster objects in namespace {} if they are gone for good",
                     api::describe(fabric), fmt::join(ids, ", "), ns)});
    outcome.requeue = Duration{5'000};
    co_return outcome;
  }
  std::vector<json::Value> gone = broker::broker_manifests({});
  std::erase_if(gone, [](const json::Value& object) { return object.string_at({"kind"}) == "Namespace"; });
  std::ranges::reverse(gone);
  for (const std::string_view name : {names::kBrokerInfo, broker::kGlobalnetInfo}) {
    gone.push_back(object_to_delete(api::ConfigMap::kGvk, ns, name));
  }
  gone.push_back(object_to_delete(api::SecretObject::kGvk, ns, names::kPskSecret));
  if (const auto config_maps = co_await env.client.list<api::ConfigMap>(select(std::string(ns)))) {
    for (const api::ConfigMap& each : config_maps->items) {
      const std::string_view name = each.metadata.name;
      if (name.starts_with(names::kJoinRequestPrefix) || name.starts_with(names::kMemberAnswerPrefix)) {
        gone.push_back(object_to_delete(api::ConfigMap::kGvk, ns, name));
      }
    }
  }
  const Result<void> done = co_await delete_objects(env.client, std::move(gone));
  if (done) {
    outcome.steps.push_back({std::string(kUninstalled), StepState::done, "Uninstalled", "the broker is gone"});
  } else {
    outcome.steps.push_back(step_of(kUninstalled, done.error()));
    outcome.requeue = Duration{1'000};
  }
  co_return outcome;
}

}  // namespace fabric::operators
