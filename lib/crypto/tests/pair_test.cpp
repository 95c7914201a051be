#include <fabric/crypto/pair.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "gateways.hpp"

namespace fabric::crypto {
namespace {

using testing::both_psks;
using ::testing::ElementsAreArray;
using testing::Gateway;
using testing::secret_of;
using testing::vector_of;

AnnouncedKey announce(const Gateway& gateway, const PskSet& psks) {
  return *sign(gateway.key, psks, gateway.identity);
}

/// A gateway with everything drawn from a seed.
Gateway random_gateway(const std::string& name, std::uint64_t seed) {
  DeterministicEntropy entropy(seed);
  Gateway gateway(name);
  gateway.ephemeral = *X25519KeyPair::draw(entropy);
  gateway.key.public_key = gateway.ephemeral.public_key;
  gateway.key.generation = Generation(seed * 977);
  EXPECT_TRUE(entropy.fill(gateway.key.nonce));
  return gateway;
}

struct Ends {
  Pair low;
  Pair high;
};

Ends derive(const Gateway& low, const Gateway& high, const PskSet& psks) {
  const auto low_key = announce(low, psks);
  const auto high_key = announce(high, psks);
  return {*Pair::derive(low.ephemeral, low_key, high_key, psks),
          *Pair::derive(high.ephemeral, high_key, low_key, psks)};
}

/// Everything that a pair gives, as bytes.
std::vector<Bytes> outputs(const Pair& pair) {
  std::vector<Bytes> out;
  for (const auto lane : {Lane(0), Lane(1)}) {
    for (const auto& key : {pair.inbound(lane), pair.outbound(lane)}) {
      out.emplace_back(key.material.reveal().begin(), key.material.reveal().end());
    }
  }
  return out;
}

TEST(Pair, IsDerivedAsTheVectorsSay) {
  const auto ends = derive(Gateway("low"), Gateway("high"), both_psks());
  EXPECT_EQ(ends.low.psk().number, 2U);
  EXPECT_EQ(ends.low.suite(), Suite::aes_gcm_256);
  for (const std::uint16_t lane : std::array<std::uint16_t, 2>{0, 1}) {
    const auto out = ends.low.outbound(Lane(lane));
    const auto in = ends.low.inbound(Lane(lane));
    const auto name = [&](std::string_view direction, std::string_view what) {
      return "pair." + std::string(direction) + "." + std::to_string(lane) + "." + std::string(what);
    };
    const auto spi = [&](std::uint32_t value) {
      return Bytes{static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
                   static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)};
    };
    EXPECT_THAT(out.material.reveal(), ElementsAreArray(vector_of(name("L>H", "key"))));
    EXPECT_THAT(in.material.reveal(), ElementsAreArray(vector_of(name("H>L", "key"))));
    EXPECT_EQ(spi(out.spi), vector_of(name("L>H", "spi")));
    EXPECT_EQ(spi(in.spi), vector_of(name("H>L", "spi")));
  }
}

TEST(Pair, BothEndsAgreeAndDirectionsAndLanesDiffer) {
  const auto psks = both_psks();
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto ends = derive(random_gateway("low", seed), random_gateway("high", seed + 1000), psks);
    std::set<Bytes> all;
    for (const auto lane : {Lane(0), Lane(1), Lane(2)}) {
      EXPECT_TRUE(ends.low.outbound(lane).material.equals(ends.high.inbound(lane).material));
      EXPECT_TRUE(ends.low.inbound(lane).material.equals(ends.high.outbound(lane).material));
      EXPECT_EQ(ends.low.outbound(lane).spi, ends.high.inbound_spi(lane));
      EXPECT_EQ(ends.low.inbound_spi(lane), ends.high.outbound_spi(lane));
      EXPECT_GE(ends.low.inbound_spi(lane), 0x1000U);
      for (const auto& key : {ends.low.outbound(lane), ends.low.inbound(lane)}) {
        all.emplace(key.material.reveal().begin(), key.material.reveal().end());
      }
    }
    EXPECT_EQ(all.size(), 6U) << "seed " << seed;
  }
}

TEST(Pair, AnyChangedByteOfARecordChangesAllKeys) {
  const auto psks = both_psks();
  const Gateway low("low");
  const auto mine = announce(low, psks);
  const auto theirs = announce(Gateway("high"), psks);
  const auto before = outputs(*Pair::derive(low.ephemeral, mine, theirs, psks));
  for (std::size_t i = 0; i < theirs.bytes.size(); ++i) {
    auto changed = theirs;
    changed.bytes[i] ^= 1;
    const auto after = outputs(*Pair::derive(low.ephemeral, mine, changed, psks));
    for (std::size_t k = 0; k < before.size(); ++k)
      EXPECT_NE(before[k], after[k]) << "byte " << i;
  }
}

TEST(Pair, SpisOfConsecutiveGenerationsNeverClash) {
  const auto psks = both_psks();
  auto low = random_gateway("low", 5);
  auto high = random_gateway("high", 6);
  std::set<std::uint32_t> low_bits;
  for (const auto mine : {0UL, 1UL}) {
    for (const auto theirs : {0UL, 1UL}) {
      low.key.generation = Generation(0x10000 + mine);
      high.key.generation = Generation(0x20000 + theirs);
      low_bits.insert(derive(low, high, psks).low.inbound_spi() & 0xf);
    }
  }
  EXPECT_EQ(low_bits.size(), 4U);
}

TEST(Pair, UsesTheFirstSuiteOfTheLowOneThatTheHighOneListsToo) {
  auto low = random_gateway("low", 1);
  auto high = random_gateway("high", 2);
  low.key.suites = {9, 2, 1};
  high.key.suites = {1, 2};
  EXPECT_EQ(derive(low, high, both_psks()).low.suite(), Suite::chacha20_poly1305);
  EXPECT_EQ(derive(low, high, both_psks()).high.suite(), Suite::chacha20_poly1305);
}

TEST(Pair, UsesTheNewestPskThatBothList) {
  PskSet first;
  ASSERT_TRUE(first.add(*Psk::make(1, secret_of("psk1"))));
  const auto low = random_gateway("low", 1);
  const auto high = random_gateway("high", 2);
  const auto mine = announce(low, both_psks());
  const auto theirs = announce(high, first);
  const auto here = Pair::derive(low.ephemeral, mine, theirs, both_psks());
  const auto there = Pair::derive(high.ephemeral, theirs, mine, first);
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->psk().number, 1U);
  EXPECT_TRUE(here->inbound().material.equals(there->outbound().material));
}

TEST(Pair, RefusesWhatHasNothingInCommon) {
  const auto psks = both_psks();
  PskSet second;
  ASSERT_TRUE(second.add(*Psk::make(2, secret_of("psk2"))));
  PskSet first;
  ASSERT_TRUE(first.add(*Psk::make(1, secret_of("psk1"))));
  const auto low = random_gateway("low", 1);
  auto high = random_gateway("high", 2);
  EXPECT_FALSE(Pair::derive(low.ephemeral, announce(low, first), announce(high, second), first)) << "no common PSK";
  high.key.suites = {7};
  EXPECT_FALSE(Pair::derive(low.ephemeral, announce(low, psks), announce(high, psks), psks)) << "no common suite";
  EXPECT_FALSE(Pair::derive(low.ephemeral, announce(low, psks), announce(low, psks), psks)) << "itself";
  high.key.suites = {1};
  high.key.public_key = X25519Public{};
  EXPECT_FALSE(Pair::derive(low.ephemeral, announce(low, psks), announce(high, psks), psks)) << "low order";
}

}  // namespace
}  // namespace fabric::crypto
