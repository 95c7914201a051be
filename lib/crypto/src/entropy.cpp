#include <fabric/crypto/entropy.hpp>
#include <fabric/crypto/hash.hpp>

#include <openssl/rand.h>

#include <algorithm>
#include <climits>

namespace fabric::crypto {

Result<void> SystemEntropy::fill(std::span<std::uint8_t> bytes) {
  if (bytes.size() > INT_MAX || RAND_priv_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    cleanse_memory(bytes);
    return fail(Errc::unavailable, "drawing {} random bytes: the system's generator failed", bytes.size());
  }
  return {};
}

Result<void> DeterministicEntropy::fill(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    std::array<std::uint8_t, 16> input{};
    for (std::size_t i = 0; i < 8; ++i) {
      input[i] = static_cast<std::uint8_t>(seed_ >> (56 - 8 * i));
      input[8 + i] = static_cast<std::uint8_t>(block_ >> (56 - 8 * i));
    }
    ++block_;
    const Digest digest = sha256(input);
    const auto size = std::min(bytes.size(), digest.size());
    std::copy_n(digest.begin(), size, bytes.begin());
    bytes = bytes.subspan(size);
  }
  return {};
}

Result<Secret> draw_secret(Entropy& entropy, std::size_t size) {
  Secret secret(size);
  FABRIC_CHECK(entropy.fill(secret.writable()));
  return secret;
}

}  // namespace fabric::crypto
