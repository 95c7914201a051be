#pragma once

#include <fabric/crypto/hash.hpp>
#include <fabric/crypto/keys.hpp>

#include <compare>
#include <map>
#include <optional>

/// The pre-shared key of a cluster set and what is derived from it. The PSK itself is forgotten after derivation.
namespace fabric::crypto {

/// A cluster set that was not given a name of its own.
inline constexpr std::string_view kDefaultClusterSet = "fabric";
/// 256 bits, so that a recording stays closed to a quantum computer (RFC 8784).
inline constexpr std::size_t kMinPskSize = 32;

/// Names a PSK without telling anything about it. Ordered by number.
struct PskId {
  std::uint32_t number = 0;
  std::array<std::uint8_t, 8> fingerprint{};
  auto operator<=>(const PskId&) const = default;
  /// "2:0123456789abcdef".
  std::string to_string() const;
};

/// P = HKDF-Extract("fabric/v1", PSK); auth, mix and id are expanded from P.
class Psk {
 public:
  /// Errc::invalid when the PSK is shorter than 32 bytes. `number` counts rotations from 1.
  static Result<Psk> make(std::uint32_t number, const Secret& psk, std::string_view cluster_set = kDefaultClusterSet);

  const PskId& id() const { return id_; }

  /// HMAC-SHA256 with the authentication key.
  Digest mac(ByteView message) const;
  /// Constant time.
  bool check(ByteView message, ByteView mac) const;

  /// 32 bytes for the key schedule.
  const Secret& mix() const { return mix_; }

 private:
  Psk(PskId id, Secret auth, Secret mix) : id_(id), auth_(std::move(auth)), mix_(std::move(mix)) {}

  PskId id_;
  Secret auth_;
  Secret mix_;
};

/// The PSKs that are valid now: one, or two during a rotation.
class PskSet {
 public:
  /// Errc::already_exists for a number that is there already.
  Result<void> add(Psk psk);
  const Psk* find(const PskId& id) const;
  /// The one with the highest number; null when empty.
  const Psk* newest() const;
  std::vector<PskId> ids() const;

  bool empty() const { return psks_.empty(); }

 private:
  std::map<PskId, Psk> psks_;
};

/// The PSKs of a cluster set as every holder stores them: keys `psk`, `number` and `previous` of the PSK Secret, of its
/// mount in gateways, of broker-info and of the sealed bundle. Holds secrets, so it is move-only.
struct PskBundle {
  std::uint32_t number = 1;        ///< Of `psk`, counted from 1. Forms that do not name it mean 1.
  Secret psk;                      ///< The newest.
  std::optional<Secret> previous;  ///< The one with number-1, while both are valid.

  PskBundle duplicate() const;
  /// Constant time in the secrets.
  bool equals(const PskBundle& other) const;
};

/// The decimal text of `number` ("1" to "4294967295", no sign, no leading zero). Errc::invalid otherwise.
Result<std::uint32_t> parse_psk_number(std::string_view text);

/// The one or two PSKs of the bundle, the newest with the highest number. Errc::invalid when a PSK is too short, the
/// number is 0, there is a previous one to number 1, or both are the same bytes, which would rotate nothing.
Result<PskSet> make_psk_set(const PskBundle& bundle, std::string_view cluster_set = kDefaultClusterSet);

/// MAC that binds a cluster's Ed25519 identity to its id (Cluster annotation fabric.tkestack.io/identity-mac).
Digest identity_mac(const Psk& psk, std::string_view cluster_id, const Ed25519Public& identity);
/// True when any PSK of the set made it.
bool check_identity_mac(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity, ByteView mac);

/// What the annotation holds: base64 of one MAC for each PSK of the set, oldest first, joined by ','. With all of them,
/// a peer that holds only the older or only the newer PSK of a rotation goes on knowing the identity.
std::string identity_macs(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity);
/// True when at least one of at most two MACs in the text was made by a PSK of the set.
bool check_identity_macs(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity,
                         std::string_view macs);

/// MAC of a join request (ConfigMap fabric-join-<cluster id>): id, X25519 key for the answer, identity.
Digest join_request_mac(const Psk& psk, std::string_view cluster_id, const X25519Public& reply_key,
                        const Ed25519Public& identity);
bool check_join_request_mac(const PskSet& psks, std::string_view cluster_id, const X25519Public& reply_key,
                            const Ed25519Public& identity, ByteView mac);

}  // namespace fabric::crypto
