#include <fabric/api/names.hpp>
#include <fabric/broker/federation.hpp>
#include <fabric/broker/psk_readiness.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fabric::broker {
namespace {

namespace names = api::names;

std::string_view value_of(const api::StringMap& map, std::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string_view() : std::string_view(found->second);
}

crypto::Checked<std::vector<crypto::Bytes>> key_bytes(const api::Endpoint& endpoint) {
  return crypto::read_key_list(value_of(endpoint.spec.backend_config, names::kKeysConfig));
}

/// Only an Endpoint whose records can be read and are all past their end is taken for dead.
bool is_live(const api::Endpoint& endpoint, TimePoint now) {
  const auto keys = key_bytes(endpoint);
  if (!keys) return true;
  return std::ranges::any_of(*keys, [&](const crypto::Bytes& bytes) {
    const auto record = crypto::decode_key_record(bytes);
    return !record || record->not_after + crypto::Expected{}.clock_tolerance >= now;
  });
}

template <class Record>
std::string refusal(const crypto::Checked<Record>& decoded, const crypto::PskId& newest, crypto::Reject reason) {
  if (decoded && std::ranges::find(decoded->psks, newest) == decoded->psks.end()) {
    return fmt::format("does not list PSK {} yet", newest.number);
  }
  return fmt::format("cannot be verified ({})", crypto::to_string(reason));
}

/// Empty when all of it verifies.
std::string missing_of(const api::Endpoint& endpoint, const crypto::PskSet& newest,
                       const crypto::Ed25519Public& identity, TimePoint now) {
  const crypto::PskId& id = newest.newest()->id();
  const crypto::GatewayId owner{endpoint.spec.cluster_id, endpoint.spec.hostname};
  const crypto::Expected expected{
      .cluster_set = crypto::kDefaultClusterSet, .owner = &owner, .identity = &identity, .now = now};
  const auto keys = key_bytes(endpoint);
  if (!keys) return "has no key records that can be read";
  for (const crypto::Bytes& bytes : *keys) {
    const auto verified = crypto::verify_key_record(bytes, newest, expected);
    if (!verified)
      return fmt::format("a key record {}", refusal(crypto::decode_key_record(bytes), id, verified.error()));
  }
  const auto state = crypto::read_state_text(value_of(endpoint.spec.backend_config, names::kStateConfig));
  if (!state) return "has no state record that can be read";
  const auto verified = crypto::verify_state_record(*state, newest, expected);
  if (!verified) {
    return fmt::format("the state record {}", refusal(crypto::decode_state_record(*state), id, verified.error()));
  }
  return {};
}

MemberPskUse use_of(const api::Cluster& cluster, const std::vector<const api::Endpoint*>& live,
                    const crypto::PskSet& newest, const std::map<std::string, crypto::Ed25519Public>& identities,
                    TimePoint now) {
  MemberPskUse out{cluster.spec.cluster_id, PskUse::waiting, {}};
  if (live.empty()) {
    out.use = PskUse::away;
    out.why = "has no live gateway";
    return out;
  }
  const auto pinned = identities.find(out.cluster_id);
  if (pinned == identities.end()) {
    out.why = fmt::format("joined without ConfigMap {}{}", names::kMemberAnswerPrefix, out.cluster_id);
    return out;
  }
  const std::string* identity = cluster.metadata.annotation(names::kIdentityAnnotation);
  const std::string* mac = cluster.metadata.annotation(names::kIdentityMacAnnotation);
  const auto proved =
      verify_identity(newest, out.cluster_id, {identity == nullptr ? "" : *identity, mac == nullptr ? "" : *mac});
  if (!proved || *proved != pinned->second) {
    out.why = fmt::format("Cluster {} does not prove its identity with PSK {} yet", out.cluster_id,
                          newest.newest()->id().number);
    return out;
  }
  for (const api::Endpoint* endpoint : live) {
    const std::string missing = missing_of(*endpoint, newest, pinned->second, now);
    if (missing.empty()) continue;
    out.why = fmt::format("Endpoint {}: {}", endpoint->metadata.name, missing);
    return out;
  }
  out.use = PskUse::ready;
  return out;
}

}  // namespace

std::vector<MemberPskUse> psk_use(const crypto::PskSet& newest, const std::vector<api::Cluster>& clusters,
                                  const std::vector<api::Endpoint>& endpoints,
                                  const std::map<std::string, crypto::Ed25519Public>& identities, TimePoint now) {
  std::vector<MemberPskUse> out;
  for (const api::Cluster& cluster : clusters) {
    std::vector<const api::Endpoint*> live;
    for (const api::Endpoint& endpoint : endpoints) {
      if (endpoint.spec.cluster_id == cluster.spec.cluster_id && is_live(endpoint, now)) live.push_back(&endpoint);
    }
    out.push_back(use_of(cluster, live, newest, identities, now));
  }
  std::ranges::sort(out, {}, &MemberPskUse::cluster_id);
  return out;
}

}  // namespace fabric::broker
