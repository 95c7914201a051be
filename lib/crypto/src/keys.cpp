#include <fabric/base/assert.hpp>
#include <fabric/crypto/keys.hpp>

#include <algorithm>

#include "evp.hpp"

namespace fabric::crypto {

namespace {

constexpr std::size_t kKeySize = 32;

template <class Public>
Result<Public> public_from_base64(std::string_view text) {
  FABRIC_TRY(const auto bytes, from_base64(text, kKeySize));
  if (bytes.size() != kKeySize)
    return fail(Errc::invalid, "a public key has {} bytes, this one {}", kKeySize, bytes.size());
  std::array<std::uint8_t, kKeySize> raw{};
  std::ranges::copy(bytes, raw.begin());
  return Public(raw);
}

EvpKey private_key(int type, const Secret& bytes) {
  EvpKey key(EVP_PKEY_new_raw_private_key(type, nullptr, bytes.reveal().data(), bytes.size()));
  FABRIC_ASSERT(key != nullptr);
  return key;
}

std::array<std::uint8_t, kKeySize> public_half(int type, const Secret& bytes) {
  std::array<std::uint8_t, kKeySize> raw{};
  std::size_t size = raw.size();
  FABRIC_ASSERT(EVP_PKEY_get_raw_public_key(private_key(type, bytes).get(), raw.data(), &size) == 1 &&
                size == kKeySize);
  return raw;
}

}  // namespace

std::string to_base64(const X25519Public& key) {
  return to_base64(ByteView(key.value()));
}

std::string to_base64(const Ed25519Public& key) {
  return to_base64(ByteView(key.value()));
}

Result<X25519Public> x25519_public_from_base64(std::string_view text) {
  return public_from_base64<X25519Public>(text);
}

Result<Ed25519Public> ed25519_public_from_base64(std::string_view text) {
  return public_from_base64<Ed25519Public>(text);
}

Result<X25519KeyPair> X25519KeyPair::draw(Entropy& entropy) {
  FABRIC_TRY(auto bytes, draw_secret(entropy, kKeySize));
  return from_private(std::move(bytes));
}

Result<X25519KeyPair> X25519KeyPair::from_private(Secret private_key) {
  if (private_key.size() != kKeySize) {
    return fail(Errc::invalid, "an X25519 private key has {} bytes, this one {}", kKeySize, private_key.size());
  }
  const X25519Public half(public_half(EVP_PKEY_X25519, private_key));
  return X25519KeyPair{std::move(private_key), half};
}

Result<Secret> x25519(const Secret& own_private, const X25519Public& peer) {
  FABRIC_ASSERT(own_private.size() == kKeySize);
  const auto own = private_key(EVP_PKEY_X25519, own_private);
  const EvpKey other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer.value().data(), peer.value().size()));
  const EvpKeyContext context(EVP_PKEY_CTX_new(own.get(), nullptr));
  FABRIC_ASSERT(other != nullptr && context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
                EVP_PKEY_derive_set_peer(context.get(), other.get()) == 1);
  Secret shared(kKeySize);
  std::size_t size = shared.size();
  // OpenSSL itself fails on an all-zero result; the comparison keeps the refusal ours, whatever the version does.
  const bool derived = EVP_PKEY_derive(context.get(), shared.writable().data(), &size) == 1 && size == kKeySize;
  if (!derived || shared.equals(Secret(kKeySize))) {
    return fail(Errc::invalid, "X25519: the peer's public key is of low order");
  }
  return shared;
}

Result<Ed25519KeyPair> Ed25519KeyPair::draw(Entropy& entropy) {
  FABRIC_TRY(auto seed, draw_secret(entropy, kKeySize));
  return from_seed(std::move(seed));
}

Result<Ed25519KeyPair> Ed25519KeyPair::from_seed(Secret seed) {
  if (seed.size() != kKeySize)
    return fail(Errc::invalid, "an Ed25519 seed has {} bytes, this one {}", kKeySize, seed.size());
  const Ed25519Public half(public_half(EVP_PKEY_ED25519, seed));
  return Ed25519KeyPair{std::move(seed), half};
}

Signature ed25519_sign(const Ed25519KeyPair& key, ByteView message) {
  const auto own = private_key(EVP_PKEY_ED25519, key.seed);
  const EvpDigestContext context(EVP_MD_CTX_new());
  Signature signature{};
  std::size_t size = signature.size();
  FABRIC_ASSERT(context != nullptr && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, own.get()) == 1 &&
                EVP_DigestSign(context.get(), signature.data(), &size, message.data(), message.size()) == 1 &&
                size == signature.size());
  return signature;
}

bool ed25519_verify(const Ed25519Public& key, ByteView message, const Signature& signature) {
  const EvpKey other(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key.value().data(), key.value().size()));
  const EvpDigestContext context(EVP_MD_CTX_new());
  if (other == nullptr) return false;
  FABRIC_ASSERT(context != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, other.get()) == 1);
  return EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(), message.size()) == 1;
}

}  // namespace fabric::crypto
