#pragma once

#include <fabric/crypto/bytes.hpp>

namespace fabric::crypto {

/// The only source of randomness: whoever draws a key receives one of these.
class Entropy {
 public:
  virtual ~Entropy() = default;
  /// Fills all of the span, or fails with Errc::unavailable and leaves it cleansed.
  virtual Result<void> fill(std::span<std::uint8_t> bytes) = 0;
};

/// The operating system's generator through OpenSSL. May be used by one thread at a time.
class SystemEntropy final : public Entropy {
 public:
  Result<void> fill(std::span<std::uint8_t> bytes) override;
};

/// A reproducible sequence for tests: block i is SHA-256(seed || i), both as big-endian u64.
class DeterministicEntropy final : public Entropy {
 public:
  explicit DeterministicEntropy(std::uint64_t seed) : seed_(seed) {}

  Result<void> fill(std::span<std::uint8_t> bytes) override;

 private:
  std::uint64_t seed_;
  std::uint64_t block_ = 0;
};

/// `size` random bytes.
Result<Secret> draw_secret(Entropy& entropy, std::size_t size);

}  // namespace fabric::crypto
