#include <fabric/api/names.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/broker/psk_delivery.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/json/time.hpp>
#include <fabric/operator/broker_psk.hpp>
#include <fabric/telemetry/log.hpp>

#include <map>

namespace fabric::operators {
namespace {

namespace names = api::names;

constexpr std::string_view kDrawnAt = "fabric.tkestack.io/psk-drawn-at";

kube::ObjectKey in_broker(std::string_view name) {
  return {std::string(names::kBrokerNamespace), std::string(name)};
}

/// What broker-info holds, if there is one that can be read.
Task<Result<std::optional<crypto::PskBundle>>> published_psk(Environment& env) {
  FABRIC_CO_TRY(const auto info, if_exists(co_await env.client.get<api::ConfigMap>(in_broker(names::kBrokerInfo))));
  std::optional<crypto::PskBundle> out;
  if (!info) co_return std::move(out);
  const auto text = info->data.find(names::kBrokerInfoKey);
  if (text == info->data.end()) co_return std::move(out);
  if (auto read = broker::read_broker_info(text->second)) out = std::move(read->info.psk);
  co_return std::move(out);
}

Task<Result<void>> create_psk(Environment& env, std::optional<std::uint32_t> wanted) {
  FABRIC_CO_TRY(auto bundle, co_await published_psk(env));
  if (!bundle) {
    FABRIC_CO_TRY(Secret psk, crypto::draw_secret(env.entropy, broker::kPskSize));
    bundle.emplace();
    bundle->number = wanted.value_or(1);
    bundle->psk = std::move(psk);
  }
  json::Value object = broker::psk_secret({}, names::kBrokerNamespace, *bundle);
  const auto created = co_await env.client.create(kube::resource_of<api::SecretObject>(), std::move(object));
  // Whoever created it first has decided.
  if (!created && created.error().code != Errc::already_exists && created.error().code != Errc::conflict) {
    co_return std::unexpected(created.error());
  }
  co_return Result<void>();
}

Result<BrokerPsk> read(const api::SecretObject& secret) {
  BrokerPsk out;
  FABRIC_TRY(out.bundle, broker::read_psk_secret(secret));
  out.resource_version = secret.metadata.resource_version;
  const std::string* drawn_at = secret.metadata.annotation(kDrawnAt);
  if (drawn_at != nullptr && out.bundle.previous) {
    if (const auto time = json::parse_time(*drawn_at)) out.drawn_at = std::chrono::time_point_cast<Duration>(*time);
  }
  return out;
}

/// A merge patch of the Secret that holds only while nobody has changed it.
Task<Result<BrokerPsk>> patch_psk(Environment& env, std::string resource_version, json::Object annotations,
                                  json::Object data) {
  json::Object metadata{{"resourceVersion", std::move(resource_version)}, {"annotations", std::move(annotations)}};
  json::Value patch = json::Object{{"metadata", std::move(metadata)}, {"data", std::move(data)}};
  FABRIC_CO_TRY(const json::Value written,
                co_await env.client.merge_patch(kube::resource_of<api::SecretObject>(), in_broker(names::kPskSecret),
                                                std::move(patch)));
  FABRIC_CO_TRY(const api::SecretObject secret, api::from_object<api::SecretObject>(written));
  co_return read(secret);
}

/// What the answers of members led to.
struct Deliveries {
  std::map<std::string, crypto::Ed25519Public> identities;
  std::map<std::string, std::string> failed;  ///< Cluster id -> why.
};

Task<Result<Deliveries>> deliver(Environment& env, const crypto::PskBundle& bundle) {
  FABRIC_CO_TRY(const auto config_maps,
                co_await env.client.list<api::ConfigMap>(select(std::string(names::kBrokerNamespace))));
  Deliveries out;
  for (const api::ConfigMap& each : config_maps.items) {
    const std::string id(broker::cluster_of_member_answer(each.metadata.name));
    const auto identity = broker::pinned_identity(each.data);
    if (id.empty() || !identity) continue;
    const auto answer = broker::deliver_psks(env.entropy, bundle, id, each.data);
    if (!answer) {
      out.failed.emplace(id, answer.error().message());
      continue;
    }
    out.identities.emplace(id, *identity);
    if (!*answer) continue;
    const auto written = co_await apply_object(env.client, broker::member_answer_config_map(id, **answer));
    if (!written) out.failed.emplace(id, written.error().message());
  }
  co_return out;
}

}  // namespace

Task<Result<BrokerPsk>> read_or_create_psk(Environment& env, std::optional<std::uint32_t> wanted) {
  auto secret = co_await env.client.get<api::SecretObject>(in_broker(names::kPskSecret));
  if (!secret && secret.error().code == Errc::not_found) {
    FABRIC_CO_CHECK(co_await create_psk(env, wanted));
    secret = co_await env.client.get<api::SecretObject>(in_broker(names::kPskSecret));
  }
  if (!secret) co_return std::unexpected(std::move(secret).error());
  co_return read(*secret);
}

Task<Result<BrokerPsk>> draw_next_psk(Environment& env, BrokerPsk current) {
  crypto::PskBundle next;
  next.number = current.bundle.number + 1;
  FABRIC_CO_TRY(next.psk, crypto::draw_secret(env.entropy, broker::kPskSize));
  next.previous = std::move(current.bundle.psk);
  json::Object drawn_at{{std::string(kDrawnAt), json::format_time(env.clock.now())}};
  co_return co_await patch_psk(env, std::move(current.resource_version), std::move(drawn_at), broker::psk_data(next));
}

Task<Result<void>> drop_previous_psk(Environment& env, BrokerPsk current) {
  json::Object data{{std::string(names::kPskPreviousKey), nullptr}};
  const auto written = co_await patch_psk(env, std::move(current.resource_version), {}, std::move(data));
  if (!written) co_return std::unexpected(written.error());
  co_return Result<void>();
}

Task<Result<std::vector<broker::MemberPskUse>>> deliver_to_members(Environment& env, crypto::PskBundle bundle,
                                                                   std::vector<api::Cluster> clusters) {
  FABRIC_CO_TRY(const Deliveries deliveries, co_await deliver(env, bundle));
  std::vector<api::Endpoint> endpoints;
  if (bundle.previous) {  // otherwise nobody is waited for
    FABRIC_CO_TRY(auto list, co_await env.client.list<api::Endpoint>(select(std::string(names::kBrokerNamespace))));
    endpoints = std::move(list.items);
  }
  crypto::PskSet newest;
  FABRIC_CO_TRY(crypto::Psk psk, crypto::Psk::make(bundle.number, bundle.psk));
  FABRIC_CO_CHECK(newest.add(std::move(psk)));
  auto members = broker::psk_use(newest, clusters, endpoints, deliveries.identities, env.clock.now());
  for (broker::MemberPskUse& member : members) {
    const auto failed = deliveries.failed.find(member.cluster_id);
    if (failed == deliveries.failed.end() || member.use == broker::PskUse::away) continue;
    member.use = broker::PskUse::waiting;
    member.why = failed->second;
  }
  co_return members;
}

}  // namespace fabric::operators
