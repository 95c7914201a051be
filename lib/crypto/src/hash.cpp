#include <fabric/base/assert.hpp>
#include <fabric/crypto/hash.hpp>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <climits>

namespace fabric::crypto {

namespace {

constexpr std::size_t kHashSize = 32;

void hmac_into(ByteView key, ByteView message, std::span<std::uint8_t, kHashSize> out) {
  // HMAC() refuses a null key even when it is empty.
  static constexpr std::uint8_t kNothing = 0;
  FABRIC_ASSERT(key.size() <= INT_MAX);
  unsigned int size = 0;
  const auto* made = HMAC(EVP_sha256(), key.empty() ? &kNothing : key.data(), static_cast<int>(key.size()),
                          message.data(), message.size(), out.data(), &size);
  FABRIC_ASSERT(made != nullptr && size == kHashSize);
}

}  // namespace

Digest sha256(ByteView message) {
  Digest digest{};
  unsigned int size = 0;
  FABRIC_ASSERT(EVP_Digest(message.data(), message.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1 &&
                size == digest.size());
  return digest;
}

Digest hmac_sha256(ByteView key, ByteView message) {
  Digest digest{};
  hmac_into(key, message, digest);
  return digest;
}

Secret hkdf_extract(ByteView salt, ByteView input_key) {
  Secret prk(kHashSize);
  hmac_into(salt, input_key, prk.writable().first<kHashSize>());
  return prk;
}

Secret hkdf_expand(const Secret& prk, ByteView label, std::size_t size) {
  FABRIC_ASSERT(size > 0 && size <= 255 * kHashSize);
  Secret out(size);
  Secret block(kHashSize);
  std::size_t done = 0;
  for (std::uint8_t counter = 1; done < size; ++counter) {
    // T(i) = HMAC(PRK, T(i-1) | info | i), with T(0) empty.
    Secret input((counter == 1 ? 0 : kHashSize) + label.size() + 1);
    auto rest = input.writable();
    if (counter > 1) {
      std::ranges::copy(block.reveal(), rest.begin());
      rest = rest.subspan(kHashSize);
    }
    std::ranges::copy(label, rest.begin());
    rest.back() = counter;
    hmac_into(prk.reveal(), input.reveal(), block.writable().first<kHashSize>());
    const auto take = std::min(kHashSize, size - done);
    std::copy_n(block.reveal().begin(), take, out.writable().begin() + static_cast<std::ptrdiff_t>(done));
    done += take;
  }
  return out;
}

}  // namespace fabric::crypto
