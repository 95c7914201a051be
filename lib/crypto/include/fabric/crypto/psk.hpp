#pragma once

#include <fabric/crypto/hash.hpp>
#include <fabric/crypto/keys.hpp>

#include <compare>
#include <map>

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

/// MAC that binds a cluster's Ed25519 identity to its id (Cluster annotation fabric.tkestack.io/identity-mac).
Digest identity_mac(const Psk& psk, std::string_view cluster_id, const Ed25519Public& identity);
/// True when any PSK of the set made it.
bool check_identity_mac(const PskSet& psks, std::string_view cluster_id, const Ed25519Public& identity, ByteView mac);

/// MAC of a join request (ConfigMap fabric-join-<cluster id>): id, X25519 key for the answer, identity.
Digest join_request_mac(const Psk& psk, std::string_view cluster_id, const X25519Public& reply_key,
                        const Ed25519Public& identity);
bool check_join_request_mac(const PskSet& psks, std::string_view cluster_id, const X25519Public& reply_key,
                            const Ed25519Public& identity, ByteView mac);

}  // namespace fabric::crypto
