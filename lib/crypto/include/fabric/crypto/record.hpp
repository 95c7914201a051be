#pragma once

#include <fabric/base/time.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/net/cidr.hpp>

#include <compare>
#include <expected>
#include <memory>

/// Announcements of a gateway: public values, readable by the broker, which cannot change or make one. The encoding is
/// canonical: a value has one encoding, and the decoder refuses every other.
namespace fabric::crypto {

/// ESP transforms on the wire. Numbers that we do not know may stand in a peer's list.
enum class Suite : std::uint8_t { aes_gcm_256 = 1, chacha20_poly1305 = 2 };

/// One start of a gateway process.
using InstanceId = StrongType<struct InstanceTag, std::array<std::uint8_t, 16>>;
Result<InstanceId> draw_instance(Entropy& entropy);
std::string to_hex(const InstanceId& instance);

/// (instance start in ms << 16) | sequence: monotonic across restarts without a disk.
using Generation = StrongType<struct GenerationTag, std::uint64_t>;

constexpr std::uint64_t generation_sequence(std::uint64_t generation) {
  return generation & 0xffff;
}

/// A gateway is identified by its cluster and its node. Ordered by cluster, then by name; this order fixes who is L and
/// H.
struct GatewayId {
  std::string cluster;
  std::string gateway;
  auto operator<=>(const GatewayId&) const = default;
};

/// One generation of a gateway's keys. Immutable.
struct KeyRecord {
  std::string cluster_set;
  GatewayId owner;
  InstanceId instance;
  Generation generation;
  X25519Public public_key;
  std::array<std::uint8_t, 32> nonce{};
  std::vector<std::uint8_t> suites;  ///< Suite numbers, most wanted first.
  std::vector<PskId> psks;           ///< Ascending; one MAC follows for each.
  TimePoint not_after;
  bool operator==(const KeyRecord&) const = default;
};

/// "Inbound SAs made with this generation of that peer are in my kernel."
struct Seen {
  GatewayId peer;
  InstanceId instance;
  Generation generation;
  auto operator<=>(const Seen&) const = default;
};

/// What may change without touching keys.
struct StateRecord {
  std::string cluster_set;
  GatewayId owner;
  InstanceId instance;
  std::uint64_t counter = 0;  ///< Grows with every publication, across restarts (as generations do).
  std::vector<net::IpAddress> private_addresses;
  std::vector<net::IpAddress> public_addresses;
  bool nat = false;      ///< Behind NAT or asked to encapsulate: peers use ESP in UDP.
  bool leaving = false;  ///< The owner is being removed: peers may drop their SAs with it.
  std::uint16_t natt_port = 0;
  std::vector<net::Cidr> prefixes;
  std::vector<net::IpAddress> health_check;
  std::vector<Seen> seen;
  std::vector<PskId> psks;
  bool operator==(const StateRecord&) const = default;
};

/// Why an announcement was not accepted; also the label of the metric fabric_records_rejected_total.
enum class Reject : std::uint8_t {
  malformed,  ///< Not an encoding that we would have made.
  oversized,
  unsupported_version,
  foreign_cluster_set,
  foreign_gateway,   ///< Names another cluster or gateway than the object that carried it.
  unknown_identity,  ///< No pinned identity for that cluster.
  unknown_psk,       ///< We hold none of its PSKs.
  bad_mac,
  bad_signature,
  stale_generation,  ///< Older than what was seen before.
  expired,
  mixed_instances,  ///< Records of one announcement that do not belong together.
};
std::string_view to_string(Reject reject);
inline constexpr std::array kAllRejects = {
    Reject::malformed,           Reject::oversized,       Reject::unsupported_version,
    Reject::foreign_cluster_set, Reject::foreign_gateway, Reject::unknown_identity,
    Reject::unknown_psk,         Reject::bad_mac,         Reject::bad_signature,
    Reject::stale_generation,    Reject::expired,         Reject::mixed_instances};

template <class T>
using Checked = std::expected<T, Reject>;

/// Limits of the decoders, in bytes of the whole record.
inline constexpr std::size_t kMaxKeyRecord = 2048;
inline constexpr std::size_t kMaxStateRecord = 512 * 1024;

/// What a gateway announces at once: the generation in use, and the one that takes over.
inline constexpr std::size_t kMaxKeyRecords = 2;

/// A record with its exact bytes. Made only by sign() and verify().
template <class Record>
struct Announced {
  Record record;
  Bytes bytes;
  bool operator==(const Announced&) const = default;
};

using AnnouncedKey = Announced<KeyRecord>;
using AnnouncedState = Announced<StateRecord>;

/// What a reader demands of a record.
struct Expected {
  std::string_view cluster_set;
  const GatewayId* owner = nullptr;         ///< Named by the object that carried it.
  const Ed25519Public* identity = nullptr;  ///< Pinned for owner->cluster; null: unknown_identity.
  TimePoint now;
  Duration clock_tolerance = std::chrono::minutes(10);
};

/// Makes the MACs (one per PSK of the set; `record.psks` is filled in here) and the signature.
/// Errc::invalid when a field is outside the limits of the encoding.
Result<AnnouncedKey> sign(KeyRecord record, const PskSet& psks, const Ed25519KeyPair& identity);
Result<AnnouncedState> sign(StateRecord record, const PskSet& psks, const Ed25519KeyPair& identity);

/// Cheap checks first: size, MAC, signature, owner, expiry. At least one PSK must be ours, and every MAC of a PSK that
/// we hold must be right.
Checked<AnnouncedKey> verify_key_record(ByteView bytes, const PskSet& psks, const Expected& expected);
Checked<AnnouncedState> verify_state_record(ByteView bytes, const PskSet& psks, const Expected& expected);

/// Syntax only, without any proof of origin: for tools that display records.
Checked<KeyRecord> decode_key_record(ByteView bytes);
Checked<StateRecord> decode_state_record(ByteView bytes);

/// The records of an Endpoint: base64; key records are joined by ','. Reading looks into none of them; it refuses more
/// than kMaxKeyRecords, and records above their limits.
Checked<std::vector<Bytes>> read_key_list(std::string_view text);
Checked<Bytes> read_state_text(std::string_view text);
std::string write_key_list(std::span<const AnnouncedKey> keys);

}  // namespace fabric::crypto
