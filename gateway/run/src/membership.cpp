#include <fabric/api/names.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/telemetry/log.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace {

namespace names = api::names;

/// The identity that a Cluster object shows, if its MAC is right.
std::optional<crypto::Ed25519Public> identity_of(const api::Cluster& cluster, const crypto::PskSet& psks) {
  const auto* text = cluster.metadata.annotation(names::kIdentityAnnotation);
  const auto* mac_text = cluster.metadata.annotation(names::kIdentityMacAnnotation);
  if (text == nullptr || mac_text == nullptr) return std::nullopt;
  const auto identity = crypto::ed25519_public_from_base64(*text);
  const auto mac = crypto::from_base64(*mac_text);
  if (!identity || !mac || !crypto::check_identity_mac(psks, cluster.spec.cluster_id, *identity, *mac))
    return std::nullopt;
  return *identity;
}

std::map<std::string, std::string> plain(const api::StringMap& map) {
  return {map.begin(), map.end()};
}

const std::string& value_of(const api::StringMap& map, std::string_view key) {
  static const std::string kNone;
  const auto it = map.find(key);
  return it == map.end() ? kNone : it->second;
}

}  // namespace

Membership::Membership(std::string own_cluster, const crypto::PskSet& psks, telemetry::Registry& metrics)
    : own_cluster_(std::move(own_cluster)), psks_(psks), metrics_(metrics) {
  // All reasons exist from the start, so that a rate over them is defined before the first refusal.
  for (const auto reason : crypto::kAllRejects) {
    metrics_.counter("fabric_records_rejected_total", "Announcements of other gateways that were refused.",
                     {{"reason", std::string(to_string(reason))}});
  }
}

void Membership::read_clusters(const controller::Store<api::Cluster>& clusters) {
  for (const auto& [key, cluster] : *clusters.snapshot()) {
    const std::string& id = cluster->spec.cluster_id;
    if (id == own_cluster_ || id != cluster->metadata.name) continue;
    const auto identity = identity_of(*cluster, psks_);
    if (!identity) continue;
    const auto [pinned, fresh] = identities_.emplace(id, *identity);
    if (fresh) {
      log::info("identity of a cluster pinned", {{"cluster", id}});
      read_.clear();  // Announcements that came before their identity are looked at again.
    }
  }
}

void Membership::read_endpoints(const controller::Store<api::Endpoint>& endpoints, TimePoint now) {
  for (const auto& [key, endpoint] : *endpoints.snapshot()) {
    if (endpoint->spec.cluster_id != own_cluster_) read_endpoint(key.ns, *endpoint, now);
  }
}

void Membership::read_endpoint(const std::string& source, const api::Endpoint& endpoint, TimePoint now) {
  const std::string& state = value_of(endpoint.spec.backend_config, names::kStateConfig);
  const std::string& keys = value_of(endpoint.spec.backend_config, names::kKeysConfig);
  std::string& last = read_[source + "/" + endpoint.metadata.name];
  std::string fingerprint = keys + "|" + state;
  if (last == fingerprint) return;
  last = std::move(fingerprint);
  const crypto::GatewayId owner{endpoint.spec.cluster_id, endpoint.spec.hostname};
  const auto raw = read_backend_config(plain(endpoint.spec.backend_config));
  if (!raw) return reject(endpoint, raw.error());
  const auto pinned = identities_.find(owner.cluster);
  const crypto::Expected expected{.cluster_set = crypto::kDefaultClusterSet,
                                  .owner = &owner,
                                  .identity = pinned == identities_.end() ? nullptr : &pinned->second,
                                  .now = now};
  const auto accepted = accept(peers_, *raw, psks_, expected);
  if (!accepted) return reject(endpoint, accepted.error());
  refused_.erase(endpoint.metadata.name);
  specs_[owner] = endpoint.spec;
}

void Membership::reject(const api::Endpoint& endpoint, crypto::Reject reason) {
  const auto text = to_string(reason);
  metrics_
      .counter("fabric_records_rejected_total", "Announcements of other gateways that were refused.",
               {{"reason", std::string(text)}})
      .add();
  // A stale copy beside a newer original is how two stores normally look for a moment.
  if (reason == crypto::Reject::stale_generation) return;
  const auto [it, fresh] = refused_.insert_or_assign(endpoint.metadata.name, std::string(text));
  if (fresh) log::warn("announcement refused", {{"endpoint", endpoint.metadata.name}, {"reason", text}});
}

void Membership::note_absent(const std::vector<const controller::Store<api::Endpoint>*>& stores, TimePoint now,
                             Duration keep) {
  std::set<crypto::GatewayId> present;
  std::set<std::string> names_present;
  for (const auto* store : stores) {
    for (const auto& [key, endpoint] : *store->snapshot()) {
      present.insert({endpoint->spec.cluster_id, endpoint->spec.hostname});
      names_present.insert(key.ns + "/" + key.name);
    }
  }
  // What comes back is looked at again, which takes the mark off.
  std::erase_if(read_, [&](const auto& entry) { return !names_present.contains(entry.first); });
  for (const auto& [id, peer] : peers_) {
    if (!present.contains(id) && !peer.deleted) mark_deleted(peers_, id, now);
  }
  forget_gone(peers_, now, keep);
  std::erase_if(specs_, [&](const auto& entry) { return !peers_.contains(entry.first); });
}

std::set<std::string> Membership::clusters() const {
  std::set<std::string> result;
  for (const auto& [id, peer] : peers_)
    result.insert(id.cluster);
  return result;
}

const api::EndpointSpec* Membership::endpoint_of(const crypto::GatewayId& id) const {
  const auto it = specs_.find(id);
  return it == specs_.end() ? nullptr : &it->second;
}

}  // namespace fabric::gateway
