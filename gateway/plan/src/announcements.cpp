#include <fabric/api/names.hpp>
#include <fabric/base/assert.hpp>
#include <fabric/gateway/announcements.hpp>

#include <algorithm>

namespace fabric::gateway {

namespace {

namespace names = api::names;
using crypto::Checked;
using crypto::Reject;

const std::string* field(const std::map<std::string, std::string>& config, std::string_view name) {
  const auto found = config.find(std::string(name));
  return found == config.end() ? nullptr : &found->second;
}

Checked<void> belongs_together(const Peer& peer) {
  const auto& instance = peer.state.record.instance;
  for (std::size_t i = 0; i < peer.keys.size(); ++i) {
    const auto& record = peer.keys[i].record;
    const bool ascending = i == 0 || peer.keys[i - 1].record.generation < record.generation;
    if (record.instance != instance || !ascending) return std::unexpected(Reject::mixed_instances);
  }
  return {};
}

const crypto::AnnouncedKey* find_known(const Peer* known, const crypto::Bytes& bytes) {
  if (known == nullptr) return nullptr;
  const auto found = std::ranges::find(known->keys, bytes, &crypto::AnnouncedKey::bytes);
  return found == known->keys.end() ? nullptr : &*found;
}

Checked<crypto::AnnouncedKey> verify_key(const crypto::Bytes& bytes, const Peer* known, const crypto::PskSet& psks,
                                         const crypto::Expected& expected) {
  const auto* before = find_known(known, bytes);
  if (before == nullptr) return crypto::verify_key_record(bytes, psks, expected);
  if (before->record.not_after + expected.clock_tolerance < expected.now) return std::unexpected(Reject::expired);
  return *before;
}

bool is_older(const Peer& given, const Peer& known) {
  return given.keys.back().record.generation < known.keys.back().record.generation ||
         given.state.record.counter < known.state.record.counter;
}

}  // namespace

Checked<RawAnnouncement> read_backend_config(const std::map<std::string, std::string>& config) {
  const auto* keys = field(config, names::kKeysConfig);
  const auto* state = field(config, names::kStateConfig);
  if (keys == nullptr || state == nullptr) return std::unexpected(Reject::malformed);
  RawAnnouncement raw;
  auto records = crypto::read_key_list(*keys);
  if (!records) return std::unexpected(records.error());
  raw.keys = *std::move(records);
  auto bytes = crypto::read_state_text(*state);
  if (!bytes) return std::unexpected(bytes.error());
  raw.state = *std::move(bytes);
  return raw;
}

std::map<std::string, std::string> write_backend_config(std::span<const crypto::AnnouncedKey> keys,
                                                        const crypto::AnnouncedState& state) {
  return {{std::string(names::kKeysConfig), crypto::write_key_list(keys)},
          {std::string(names::kStateConfig), crypto::to_base64(state.bytes)}};
}

Checked<void> accept(Peers& peers, const RawAnnouncement& raw, const crypto::PskSet& psks,
                     const crypto::Expected& expected) {
  FABRIC_ASSERT(expected.owner != nullptr);
  if (raw.keys.empty() || raw.keys.size() > crypto::kMaxKeyRecords) return std::unexpected(Reject::malformed);
  const auto known = peers.find(*expected.owner);
  Peer peer;
  auto state = crypto::verify_state_record(raw.state, psks, expected);
  if (!state) return std::unexpected(state.error());
  peer.state = *std::move(state);
  for (const auto& bytes : raw.keys) {
    auto key = verify_key(bytes, known == peers.end() ? nullptr : &known->second, psks, expected);
    const bool newest = &bytes == &raw.keys.back();
    if (!key && key.error() == Reject::unknown_psk && !newest) continue;
    if (!key) return std::unexpected(key.error());
    peer.keys.push_back(*std::move(key));
  }
  if (auto together = belongs_together(peer); !together) return together;
  if (known != peers.end() && is_older(peer, known->second)) return std::unexpected(Reject::stale_generation);
  peers.insert_or_assign(*expected.owner, std::move(peer));
  return {};
}

void mark_deleted(Peers& peers, const crypto::GatewayId& id, TimePoint now) {
  const auto found = peers.find(id);
  if (found != peers.end() && !found->second.deleted) found->second.deleted = now;
}

void forget_gone(Peers& peers, TimePoint now, Duration keep) {
  std::erase_if(peers, [&](const auto& entry) {
    const auto& peer = entry.second;
    return peer.deleted && (peer.state.record.leaving || *peer.deleted + keep <= now);
  });
}

}  // namespace fabric::gateway
