#pragma once

#include <fabric/base/strong_type.hpp>
#include <fabric/crypto/entropy.hpp>

namespace fabric::crypto {

using X25519Public = StrongType<struct X25519PublicTag, std::array<std::uint8_t, 32>>;
using Ed25519Public = StrongType<struct Ed25519PublicTag, std::array<std::uint8_t, 32>>;
using Signature = std::array<std::uint8_t, 64>;

/// Base64 of a public key, as annotations and ConfigMaps carry it, and back (exactly 32 bytes).
std::string to_base64(const X25519Public& key);
std::string to_base64(const Ed25519Public& key);
Result<X25519Public> x25519_public_from_base64(std::string_view text);
Result<Ed25519Public> ed25519_public_from_base64(std::string_view text);

/// An X25519 key pair (RFC 7748). The private half is 32 bytes.
struct X25519KeyPair {
  Secret private_key;
  X25519Public public_key;

  static Result<X25519KeyPair> draw(Entropy& entropy);
  /// From a stored private half of exactly 32 bytes, else Errc::invalid.
  static Result<X25519KeyPair> from_private(Secret private_key);
};

/// The shared secret of 32 bytes. A peer value that leads to the all-zero secret is refused with Errc::invalid, since
/// it would be known to everybody (RFC 7748, section 6.1).
Result<Secret> x25519(const Secret& private_key, const X25519Public& peer);

/// An Ed25519 signing key (RFC 8032); the stored form is the seed of 32 bytes.
struct Ed25519KeyPair {
  Secret seed;
  Ed25519Public public_key;

  static Result<Ed25519KeyPair> draw(Entropy& entropy);
  /// From a stored seed of exactly 32 bytes, else Errc::invalid.
  static Result<Ed25519KeyPair> from_seed(Secret seed);
};

Signature ed25519_sign(const Ed25519KeyPair& key, ByteView message);
bool ed25519_verify(const Ed25519Public& key, ByteView message, const Signature& signature);

}  // namespace fabric::crypto
