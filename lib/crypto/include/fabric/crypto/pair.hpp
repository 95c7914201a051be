#pragma once

#include <fabric/crypto/record.hpp>

/// The key schedule of a pair of generations. Both ends compute the same without exchanging anything else.
namespace fabric::crypto {

/// Lane 0 is the default; lanes 1..n are for parallel SAs, one per CPU.
using Lane = StrongType<struct LaneTag, std::uint16_t>;

/// What an SA of one direction is made of: 32 bytes of key and 4 of salt, and its SPI (at least 0x1000).
struct EspKey {
  std::uint32_t spi = 0;
  Secret material;
};

/// The secrets of one (my generation, peer's generation).
class Pair {
 public:
  /// Errc::invalid for a low-order public key, records of the same gateway, or lists without a common suite or PSK.
  static Result<Pair> derive(const X25519KeyPair& my_key, const AnnouncedKey& mine, const AnnouncedKey& peers,
                             const PskSet& psks);

  Suite suite() const { return suite_; }

  const PskId& psk() const { return psk_; }

  EspKey inbound(Lane lane = Lane(0)) const { return key(!i_am_low_, lane); }

  EspKey outbound(Lane lane = Lane(0)) const { return key(i_am_low_, lane); }

  /// SPIs alone, without making key material.
  std::uint32_t inbound_spi(Lane lane = Lane(0)) const { return spi(!i_am_low_, lane); }

  std::uint32_t outbound_spi(Lane lane = Lane(0)) const { return spi(i_am_low_, lane); }

 private:
  Pair() = default;
  EspKey key(bool low_to_high, Lane lane) const;
  std::uint32_t spi(bool low_to_high, Lane lane) const;

  Secret prk_;
  Suite suite_ = Suite::aes_gcm_256;
  PskId psk_;
  bool i_am_low_ = false;
  std::uint64_t low_sequence_ = 0;
  std::uint64_t high_sequence_ = 0;
};

}  // namespace fabric::crypto
