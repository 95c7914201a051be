#include <fabric/api/identity.hpp>
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
  if (!identity || !crypto::check_identity_macs(psks, cluster.spec.cluster_id, *identity, *mac_text))
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

/// The name that its owner gives to it. An announcement under the name of another gateway would take the place of that
/// gateway's object, here and in the local copies.
bool has_own_name(const api::Endpoint& endpoint, const crypto::StateRecord& state) {
  return !state.private_addresses.empty() &&
         endpoint.metadata.name ==
             api::endpoint_name(api::ClusterId(state.owner.cluster), state.private_addresses.front());
}

}  // namespace

telemetry::Counter rejected_records(telemetry::Registry& metrics, std::string_view reason) {
  return metrics.counter("fabric_records_rejected_total", "Announcements of other gateways that were refused.",
                         {{"reason", std::string(reason)}});
}

Membership::Membership(std::string own_cluster, const crypto::PskSet& psks, telemetry::Registry& metrics)
    : own_cluster_(std::move(own_cluster)), psks_(psks), metrics_(metrics) {
  // All reasons exist from the start, so that a rate over them is defined before the first refusal.
  for (const auto reason : crypto::kAllRejects)
    rejected_records(metrics_, to_string(reason));
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
    } else if (pinned->second != *identity) {
      refuse_identity(id, *identity);
    }
  }
}

void Membership::refuse_identity(const std::string& cluster, const crypto::Ed25519Public& identity) {
  const auto [known, fresh] = refused_identities_.try_emplace(cluster, identity);
  if (!fresh && known->second == identity) return;
  known->second = identity;
  metrics_.counter("fabric_identities_refused_total", "Other identities of clusters that are known by one.").add();
  log::warn("another identity of a known cluster is refused", {{"cluster", cluster}});
}

bool Membership::shows_pin(const api::Cluster& cluster) const {
  const auto pinned = identities_.find(cluster.spec.cluster_id);
  return pinned != identities_.end() && identity_of(cluster, psks_) == pinned->second;
}

void Membership::read_endpoints(const controller::Store<api::Endpoint>& endpoints, TimePoint now, Standing standing) {
  const auto present = endpoints.snapshot();
  // What comes back is looked at again.
  std::erase_if(read_, [&](const auto& entry) {
    return entry.first.first == &endpoints && !present->contains(entry.first.second);
  });
  std::erase_if(foreign_, [&](const auto& key) { return key.first == &endpoints && !present->contains(key.second); });
  for (const auto& [key, endpoint] : *present) {
    if (endpoint->spec.cluster_id == own_cluster_) continue;
    const ReadKey read_key{&endpoints, key};
    if (!note_read(read_key, *endpoint)) continue;
    const auto accepted = read_endpoint(read_key, *endpoint, now);
    if (!accepted) reject(read_key, *endpoint, accepted.error(), standing);
  }
}

/// Whether it says something else than when it was last looked at.
bool Membership::note_read(const ReadKey& key, const api::Endpoint& endpoint) {
  const std::string& state = value_of(endpoint.spec.backend_config, names::kStateConfig);
  const std::string& keys = value_of(endpoint.spec.backend_config, names::kKeysConfig);
  std::string fingerprint = fmt::format("{}|{}|{}|{}", endpoint.spec.cluster_id, endpoint.spec.hostname, keys, state);
  Read& last = read_[key];
  if (last.fingerprint == fingerprint) return false;
  last = {.fingerprint = std::move(fingerprint), .refused = std::nullopt};
  return true;
}

crypto::Expected Membership::expected_of(const crypto::GatewayId& owner, TimePoint now) const {
  const auto pinned = identities_.find(owner.cluster);
  return {.cluster_set = crypto::kDefaultClusterSet,
          .owner = &owner,
          .identity = pinned == identities_.end() ? nullptr : &pinned->second,
          .now = now};
}

crypto::Checked<void> Membership::read_endpoint(const ReadKey& key, const api::Endpoint& endpoint, TimePoint now) {
  const crypto::GatewayId owner{endpoint.spec.cluster_id, endpoint.spec.hostname};
  const auto raw = read_backend_config(plain(endpoint.spec.backend_config));
  if (!raw) return std::unexpected(raw.error());
  const auto known = peers_.find(owner);
  Peers trial;
  if (known != peers_.end()) trial.insert(*known);
  if (const auto accepted = accept(trial, *raw, psks_, expected_of(owner, now)); !accepted) return accepted;
  Peer& peer = trial.at(owner);
  if (!has_own_name(endpoint, peer.state.record)) return std::unexpected(crypto::Reject::foreign_gateway);
  // A copy that still stands does not bring back a peer whose original is gone: note_absent() decides.
  if (known != peers_.end()) peer.deleted = known->second.deleted;
  peers_.insert_or_assign(owner, std::move(peer));
  refused_.erase(endpoint.metadata.name);
  foreign_.erase(key);
  specs_[owner] = {.name = endpoint.metadata.name, .spec = endpoint.spec};
  return {};
}

void Membership::psks_changed() {
  std::erase_if(read_, [](const auto& entry) {
    const auto& refused = entry.second.refused;
    return refused == crypto::Reject::unknown_psk || refused == crypto::Reject::unknown_identity;
  });
}

void Membership::count(const std::string& endpoint, crypto::Reject reason) {
  Count& count = counts_[{endpoint, reason}];
  ++count.times;
  count.last = ++rejections_;
  if (counts_.size() <= kMaxRejected) return;
  counts_.erase(std::ranges::min_element(counts_, {}, [](const auto& entry) { return entry.second.last; }));
}

std::vector<Rejected> Membership::rejected() const {
  std::vector<Rejected> result;
  for (const auto& [key, count] : counts_)
    result.push_back({.endpoint = key.first, .reason = key.second, .count = count.times});
  return result;
}

void Membership::reject(const ReadKey& key, const api::Endpoint& endpoint, crypto::Reject reason, Standing standing) {
  read_[key].refused = reason;
  const auto text = to_string(reason);
  rejected_records(metrics_, text).add();
  // A stale copy beside a newer original is how two stores normally look for a moment. A stale original is no stranger:
  // its gateway is still there, and the broker went back.
  if (reason == crypto::Reject::stale_generation && standing == Standing::copies) return;
  count(endpoint.metadata.name, reason);
  if (reason == crypto::Reject::stale_generation) return;
  foreign_.insert(key);
  const auto [it, fresh] = refused_.insert_or_assign(endpoint.metadata.name, std::string(text));
  if (fresh) log::warn("announcement refused", {{"endpoint", endpoint.metadata.name}, {"reason", text}});
}

void Membership::note_absent(const std::vector<const controller::Store<api::Endpoint>*>& stores, TimePoint now,
                             Duration keep) {
  std::set<crypto::GatewayId> present;
  std::set<std::string> names_present;
  for (const auto* store : stores) {
    for (const auto& [key, endpoint] : *store->snapshot()) {
      names_present.insert(key.name);
      // Something else under the name of a peer is not that peer.
      if (!foreign_.contains({store, key})) present.insert({endpoint->spec.cluster_id, endpoint->spec.hostname});
    }
  }
  std::erase_if(refused_, [&](const auto& entry) { return !names_present.contains(entry.first); });
  for (auto& [id, peer] : peers_) {
    if (present.contains(id)) {
      peer.deleted.reset();
    } else {
      mark_deleted(peers_, id, now);
    }
  }
  forget_gone(peers_, now, keep);
  std::erase_if(specs_, [&](const auto& entry) { return !peers_.contains(entry.first); });
}

void Membership::renew_pins(const controller::Store<api::Cluster>& clusters) {
  const auto known = this->clusters();
  for (const auto& [key, cluster] : *clusters.snapshot()) {
    const std::string& id = cluster->spec.cluster_id;
    const auto pinned = identities_.find(id);
    if (pinned == identities_.end() || known.contains(id) || id != cluster->metadata.name) continue;
    const auto identity = identity_of(*cluster, psks_);
    if (!identity || *identity == pinned->second) continue;
    log::info("a cluster came back with another identity", {{"cluster", id}});
    pinned->second = *identity;
    refused_identities_.erase(id);
    read_.clear();
  }
}

std::set<std::string> Membership::clusters() const {
  std::set<std::string> result;
  for (const auto& [id, peer] : peers_)
    result.insert(id.cluster);
  return result;
}

const api::EndpointSpec* Membership::endpoint_of(const crypto::GatewayId& id) const {
  const auto it = specs_.find(id);
  return it == specs_.end() ? nullptr : &it->second.spec;
}

const std::string* Membership::endpoint_name_of(const crypto::GatewayId& id) const {
  const auto it = specs_.find(id);
  return it == specs_.end() ? nullptr : &it->second.name;
}

}  // namespace fabric::gateway
