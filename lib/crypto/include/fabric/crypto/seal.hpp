#pragma once

#include <fabric/crypto/keys.hpp>

namespace fabric::crypto {

inline constexpr std::size_t kAeadKeySize = 32;
inline constexpr std::size_t kAeadNonceSize = 12;
inline constexpr std::size_t kAeadTagSize = 16;

/// AES-256-GCM (NIST SP 800-38D). The key has 32 bytes and the nonce 12; a (key, nonce) pair may be used once. The
/// result is the ciphertext followed by the tag of 16 bytes.
Bytes aead_seal(const Secret& key, ByteView nonce, ByteView associated, ByteView plaintext);
/// Errc::invalid when anything differs from what was sealed; nothing of the plaintext is given then.
Result<Secret> aead_open(const Secret& key, ByteView nonce, ByteView associated, ByteView sealed);

/// Seals to the holder of an X25519 private key (ephemeral-static X25519, HKDF-SHA256, AES-256-GCM). `context` says
/// what is sealed and for whom, for example "fabric/v1 member-token" and the cluster id; opening needs the same one.
/// The sealed form does not say who sealed. Layout: ephemeral public key 32, ciphertext, tag 16.
Result<Bytes> seal_to(Entropy& entropy, const X25519Public& recipient, std::string_view context, ByteView plaintext);
/// Errc::invalid when it was sealed to another key or context, or was changed.
Result<Secret> open_sealed(const X25519KeyPair& recipient, std::string_view context, ByteView sealed);

}  // namespace fabric::crypto
