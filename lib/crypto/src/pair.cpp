#include <fabric/base/assert.hpp>
#include <fabric/crypto/encoding.hpp>
#include <fabric/crypto/pair.hpp>

#include <algorithm>
#include <optional>
#include <ranges>

namespace fabric::crypto {

namespace {

constexpr std::size_t kKeyMaterial = 36;
/// 0 is never on the wire and 1..255 are reserved (RFC 4303, section 2.1); the rest stays free for SAs made by hand.
constexpr std::uint32_t kFirstSpi = 0x1000;

std::optional<Suite> common_suite(const KeyRecord& low, const KeyRecord& high) {
  const auto found = std::ranges::find_first_of(low.suites, high.suites);
  if (found == low.suites.end()) return std::nullopt;
  switch (static_cast<Suite>(*found)) {
    case Suite::aes_gcm_256:
    case Suite::chacha20_poly1305:
      return static_cast<Suite>(*found);
  }
  return std::nullopt;
}

std::optional<PskId> common_psk(const KeyRecord& low, const KeyRecord& high) {
  for (const PskId& id : low.psks | std::views::reverse) {
    if (std::ranges::find(high.psks, id) != high.psks.end()) return id;
  }
  return std::nullopt;
}

void put_psk(Writer& out, const PskId& id) {
  out.number(id.number);
  out.raw(id.fingerprint);
}

/// T binds both whole records, hence identities, generations and offers, so that a changed byte gives other keys.
Digest transcript(const AnnouncedKey& low, const AnnouncedKey& high, Suite suite, const PskId& psk) {
  Writer out;
  out.raw("fabric/v1 pair");
  for (const auto* record : {&low, &high}) {
    out.number(static_cast<std::uint32_t>(record->bytes.size()));
    out.raw(record->bytes);
  }
  out.number(static_cast<std::uint8_t>(suite));
  put_psk(out, psk);
  return sha256(out.bytes());
}

Bytes label_of(std::string_view what, bool low_to_high, Lane lane) {
  Writer out;
  out.raw(what);
  out.raw(low_to_high ? "L>H" : "H>L");
  out.number(lane.value());
  return std::move(out).take();
}

}  // namespace

Result<Pair> Pair::derive(const X25519KeyPair& my_key, const AnnouncedKey& mine, const AnnouncedKey& peers,
                          const PskSet& psks) {
  FABRIC_ASSERT(my_key.public_key == mine.record.public_key);
  if (mine.record.owner == peers.record.owner) return fail(Errc::invalid, "a gateway has no tunnel to itself");
  Pair pair;
  pair.i_am_low_ = mine.record.owner < peers.record.owner;
  const auto& low = pair.i_am_low_ ? mine : peers;
  const auto& high = pair.i_am_low_ ? peers : mine;
  const auto suite = common_suite(low.record, high.record);
  if (!suite)
    return fail(Errc::invalid, "no ESP suite in common with {}/{}", peers.record.owner.cluster,
                peers.record.owner.gateway);
  const auto id = common_psk(low.record, high.record);
  const auto* psk = id ? psks.find(*id) : nullptr;
  if (psk == nullptr)
    return fail(Errc::invalid, "no PSK in common with {}/{}", peers.record.owner.cluster, peers.record.owner.gateway);
  FABRIC_TRY(const auto shared, x25519(my_key.private_key, peers.record.public_key));
  Secret input(shared.size() + psk->mix().size());
  const auto after = std::ranges::copy(shared.reveal(), input.writable().begin()).out;
  std::ranges::copy(psk->mix().reveal(), after);
  pair.prk_ = hkdf_extract(transcript(low, high, *suite, *id), input.reveal());
  pair.suite_ = *suite;
  pair.psk_ = *id;
  pair.low_sequence_ = generation_sequence(low.record.generation.value());
  pair.high_sequence_ = generation_sequence(high.record.generation.value());
  return pair;
}

EspKey Pair::key(bool low_to_high, Lane lane) const {
  return {.spi = spi(low_to_high, lane),
          .material = hkdf_expand(prk_, label_of("fabric/v1 esp", low_to_high, lane), kKeyMaterial)};
}

std::uint32_t Pair::spi(bool low_to_high, Lane lane) const {
  const auto bytes = hkdf_expand(prk_, label_of("fabric/v1 spi", low_to_high, lane), 4);
  const auto drawn = Reader(bytes.reveal()).number<std::uint32_t>();
  const auto receiver = static_cast<std::uint32_t>(low_to_high ? high_sequence_ : low_sequence_) % 4;
  const auto sender = static_cast<std::uint32_t>(low_to_high ? low_sequence_ : high_sequence_) % 4;
  // Consecutive generations differ in these four bits, so the SAs of a rekey never clash with each other.
  const auto spi = (drawn & ~0xfU) | (sender << 2) | receiver;
  return spi < kFirstSpi ? spi | kFirstSpi : spi;
}

}  // namespace fabric::crypto
