#include <fabric/crypto/pair.hpp>
#include <fabric/gateway/key_ring.hpp>

#include <algorithm>
#include <bit>

namespace fabric::gateway {

namespace {

/// Part of the rotation age by which gateways differ, so that a set that started together does not rekey together.
constexpr double kJitter = 0.15;

PairSas pair_sas(const crypto::Pair& pair) {
  auto in = pair.inbound();
  auto out = pair.outbound();
  return {.inbound_spi = netstate::Spi(in.spi),
          .outbound_spi = netstate::Spi(out.spi),
          .aead = aead_of(pair.suite()),
          .inbound = std::make_shared<const Secret>(std::move(in.material)),
          .outbound = std::make_shared<const Secret>(std::move(out.material))};
}

}  // namespace

netstate::Aead aead_of(crypto::Suite suite) {
  switch (suite) {
    case crypto::Suite::aes_gcm_256:
      return netstate::Aead::aes_gcm_256;
    case crypto::Suite::chacha20_poly1305:
      return netstate::Aead::chacha20_poly1305;
  }
  return netstate::Aead::aes_gcm_256;
}

Result<KeyRing> KeyRing::open(crypto::GatewayId self, crypto::Entropy& entropy, const crypto::PskSet& psks,
                              const crypto::Ed25519KeyPair& identity, TimePoint now, crypto::Generation floor,
                              std::vector<crypto::Suite> suites) {
  FABRIC_TRY(const auto instance, crypto::draw_instance(entropy));
  // Milliseconds of the start in the upper 48 bits, a sequence below: monotonic across restarts, also when the clock
  // was set back in between.
  const auto start = static_cast<std::uint64_t>(std::max<std::int64_t>(now.time_since_epoch().count(), 0)) << 16U;
  const std::uint64_t above_floor = ((floor.value() >> 16U) + 1) << 16U;
  return KeyRing(std::move(self), entropy, psks, identity, instance, std::max(start, above_floor) + 1,
                 std::move(suites));
}

Result<void> KeyRing::draw(TimePoint now, Duration lifetime, const DrawGeneration& why) {
  FABRIC_TRY(auto key, crypto::X25519KeyPair::draw(*entropy_));
  crypto::KeyRecord record{.cluster_set = std::string(crypto::kDefaultClusterSet),
                           .owner = self_,
                           .instance = instance_,
                           .generation = crypto::Generation(next_generation_),
                           .public_key = key.public_key,
                           .not_after = now + lifetime};
  for (const auto suite : suites_)
    record.suites.push_back(std::to_underlying(suite));
  FABRIC_CHECK(entropy_->fill(record.nonce));
  std::array<std::uint8_t, 4> random{};
  FABRIC_CHECK(entropy_->fill(random));
  const double unit = std::bit_cast<std::uint32_t>(random) / 4294967296.0;
  FABRIC_TRY(auto announced, crypto::sign(std::move(record), *psks_, *identity_));
  MyGeneration meta{.generation = announced.record.generation,
                    .drawn = now,
                    .jitter = kJitter * (2 * unit - 1),
                    .psks = announced.record.psks,
                    .reason = why.reason,
                    .losses = why.losses};
  held_.emplace(meta.generation, Held{meta, std::move(key), std::move(announced)});
  ++next_generation_;
  return {};
}

void KeyRing::drop(crypto::Generation generation) {
  held_.erase(generation);
  std::erase_if(derived_, [&](const auto& entry) { return entry.first.mine == generation; });
}

void KeyRing::psks_changed() {
  std::erase_if(derived_, [](const auto& entry) { return !entry.second; });
}

std::vector<MyGeneration> KeyRing::mine() const {
  std::vector<MyGeneration> result;
  result.reserve(held_.size());
  for (const auto& [generation, held] : held_)
    result.push_back(held.meta);
  return result;
}

std::vector<crypto::AnnouncedKey> KeyRing::records(const std::vector<crypto::Generation>& generations) const {
  std::vector<crypto::AnnouncedKey> result;
  for (const auto generation : generations) {
    if (const auto held = held_.find(generation); held != held_.end()) result.push_back(held->second.record);
  }
  return result;
}

Result<crypto::AnnouncedState> KeyRing::sign_state(crypto::StateRecord record) {
  record.cluster_set = crypto::kDefaultClusterSet;
  record.owner = self_;
  record.instance = instance_;
  record.counter = next_counter_++;
  return crypto::sign(std::move(record), *psks_, *identity_);
}

DerivePair KeyRing::derive_with(const Peers& peers) {
  return [this, &peers](const PairId& id) { return derive(id, peers); };
}

Result<PairSas> KeyRing::derive(const PairId& id, const Peers& peers) {
  if (const auto known = derived_.find(id); known != derived_.end()) return known->second;
  const auto held = held_.find(id.mine);
  if (held == held_.end()) return fail(Errc::not_found, "generation {} is not mine", id.mine);
  const auto peer = peers.find(id.peer);
  if (peer == peers.end()) return fail(Errc::not_found, "no records of {}/{}", id.peer.cluster, id.peer.gateway);
  const auto theirs = std::ranges::find_if(peer->second.keys, [&](const crypto::AnnouncedKey& key) {
    return key.record.generation == id.theirs && key.record.instance == id.instance;
  });
  if (theirs == peer->second.keys.end())
    return fail(Errc::not_found, "no generation {} of {}/{}", id.theirs, id.peer.cluster, id.peer.gateway);
  const auto pair = crypto::Pair::derive(held->second.key, held->second.record, *theirs, *psks_);
  Result<PairSas> outcome = pair ? Result<PairSas>(pair_sas(*pair)) : std::unexpected(pair.error());
  return derived_.emplace(id, std::move(outcome)).first->second;
}

crypto::Generation last_published(const std::map<std::string, std::string>& backend_config) {
  crypto::Generation last;
  const auto raw = read_backend_config(backend_config);
  if (!raw) return last;
  for (const auto& bytes : raw->keys) {
    if (const auto record = crypto::decode_key_record(bytes)) last = std::max(last, record->generation);
  }
  return last;
}

}  // namespace fabric::gateway
