#include <fabric/base/assert.hpp>
#include <fabric/crypto/hash.hpp>
#include <fabric/crypto/seal.hpp>

#include <algorithm>
#include <climits>

#include "evp.hpp"

namespace fabric::crypto {

namespace {

constexpr std::size_t kPublicSize = 32;
constexpr std::string_view kSealLabel = "fabric/v1 seal";

std::unexpected<Error> cannot_open() {
  return fail(Errc::invalid, "sealed data was changed or is not for this key and context");
}

struct SealingKey {
  Secret key;
  Secret nonce;
};

/// PRK = Extract(ephemeral public ‖ recipient public, shared); key and nonce = Expand(PRK, label ‖ context, 44). The
/// ephemeral key is used once, hence so are both.
SealingKey sealing_key(const Secret& shared, const X25519Public& ephemeral, const X25519Public& recipient,
                       std::string_view context) {
  Bytes salt(ephemeral.value().begin(), ephemeral.value().end());
  salt.insert(salt.end(), recipient.value().begin(), recipient.value().end());
  const std::string label = std::string(kSealLabel) + std::string(context);
  const auto both = hkdf_expand(hkdf_extract(salt, shared.reveal()), view_of(label), kAeadKeySize + kAeadNonceSize);
  return {Secret(both.reveal().first(kAeadKeySize)), Secret(both.reveal().last(kAeadNonceSize))};
}

}  // namespace

Bytes aead_seal(const Secret& key, ByteView nonce, ByteView associated, ByteView plaintext) {
  FABRIC_ASSERT(key.size() == kAeadKeySize && nonce.size() == kAeadNonceSize);
  FABRIC_ASSERT(plaintext.size() <= INT_MAX && associated.size() <= INT_MAX);
  const EvpCipherContext context(EVP_CIPHER_CTX_new());
  Bytes sealed(plaintext.size() + kAeadTagSize);
  int size = 0;
  FABRIC_ASSERT(context != nullptr &&
                EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.reveal().data(), nonce.data()) == 1);
  FABRIC_ASSERT(associated.empty() || EVP_EncryptUpdate(context.get(), nullptr, &size, associated.data(),
                                                        static_cast<int>(associated.size())) == 1);
  FABRIC_ASSERT(plaintext.empty() || EVP_EncryptUpdate(context.get(), sealed.data(), &size, plaintext.data(),
                                                       static_cast<int>(plaintext.size())) == 1);
  auto* const tag = sealed.data() + plaintext.size();
  FABRIC_ASSERT(EVP_EncryptFinal_ex(context.get(), tag, &size) == 1 && size == 0);
  FABRIC_ASSERT(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kAeadTagSize, tag) == 1);
  return sealed;
}

Result<Secret> aead_open(const Secret& key, ByteView nonce, ByteView associated, ByteView sealed) {
  FABRIC_ASSERT(key.size() == kAeadKeySize && nonce.size() == kAeadNonceSize && associated.size() <= INT_MAX);
  if (sealed.size() < kAeadTagSize || sealed.size() > INT_MAX) return cannot_open();
  const auto body = sealed.first(sealed.size() - kAeadTagSize);
  Bytes tag(sealed.end() - kAeadTagSize, sealed.end());
  const EvpCipherContext context(EVP_CIPHER_CTX_new());
  Secret plaintext(body.size());
  int size = 0;
  FABRIC_ASSERT(context != nullptr &&
                EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.reveal().data(), nonce.data()) == 1);
  FABRIC_ASSERT(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kAeadTagSize, tag.data()) == 1);
  FABRIC_ASSERT(associated.empty() || EVP_DecryptUpdate(context.get(), nullptr, &size, associated.data(),
                                                        static_cast<int>(associated.size())) == 1);
  FABRIC_ASSERT(body.empty() || EVP_DecryptUpdate(context.get(), plaintext.writable().data(), &size, body.data(),
                                                  static_cast<int>(body.size())) == 1);
  std::array<std::uint8_t, kAeadTagSize> nothing{};
  if (EVP_DecryptFinal_ex(context.get(), nothing.data(), &size) != 1) return cannot_open();
  return plaintext;
}

Result<Bytes> seal_to(Entropy& entropy, const X25519Public& recipient, std::string_view context, ByteView plaintext) {
  FABRIC_TRY(const auto ephemeral, X25519KeyPair::draw(entropy));
  FABRIC_TRY(const auto shared, x25519(ephemeral.private_key, recipient));
  const auto made = sealing_key(shared, ephemeral.public_key, recipient, context);
  const auto sealed = aead_seal(made.key, made.nonce.reveal(), view_of(context), plaintext);
  Bytes out(ephemeral.public_key.value().begin(), ephemeral.public_key.value().end());
  out.insert(out.end(), sealed.begin(), sealed.end());
  return out;
}

Result<Secret> open_sealed(const X25519KeyPair& recipient, std::string_view context, ByteView sealed) {
  if (sealed.size() < kPublicSize + kAeadTagSize) return cannot_open();
  std::array<std::uint8_t, kPublicSize> raw{};
  std::ranges::copy(sealed.first(kPublicSize), raw.begin());
  const X25519Public ephemeral(raw);
  FABRIC_TRY(const auto shared, x25519(recipient.private_key, ephemeral));
  const auto made = sealing_key(shared, ephemeral, recipient.public_key, context);
  return aead_open(made.key, made.nonce.reveal(), view_of(context), sealed.subspan(kPublicSize));
}

}  // namespace fabric::crypto
