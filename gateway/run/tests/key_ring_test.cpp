#include <fabric/gateway/key_ring.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remote.hpp"

namespace fabric::gateway {
namespace {

using ::testing::IsEmpty;
using testing::kNow;
using testing::Remote;
using ::testing::SizeIs;

/// What one side believes of the other.
Peers believed(Remote& remote) {
  Peers peers;
  const auto endpoint = remote.endpoint();
  const auto raw = read_backend_config({endpoint.spec.backend_config.begin(), endpoint.spec.backend_config.end()});
  EXPECT_TRUE(raw);
  EXPECT_TRUE(accept(peers, *raw, remote.psks,
                     {.cluster_set = crypto::kDefaultClusterSet,
                      .owner = &remote.id,
                      .identity = &remote.identity.public_key,
                      .now = kNow}));
  return peers;
}

PairId pair_of(const Remote& mine, const Remote& other) {
  return {.peer = other.id,
          .instance = other.ring.instance(),
          .theirs = other.ring.mine().back().generation,
          .mine = mine.ring.mine().back().generation};
}

TEST(KeyRing, BothEndsDeriveTheSameSas) {
  Remote a("a", 1);
  Remote b("b", 2);
  const auto peers_of_a = believed(b);
  const auto peers_of_b = believed(a);
  const auto here = a.ring.derive_with(peers_of_a)(pair_of(a, b));
  const auto there = b.ring.derive_with(peers_of_b)(pair_of(b, a));
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->inbound_spi, there->outbound_spi);
  EXPECT_EQ(here->outbound_spi, there->inbound_spi);
  EXPECT_TRUE(here->inbound->equals(*there->outbound));
  EXPECT_TRUE(here->outbound->equals(*there->inbound));
  EXPECT_FALSE(here->inbound->equals(*here->outbound));
}

TEST(KeyRing, GivesTheSameSasEachTime) {
  Remote a("a", 1);
  Remote b("b", 2);
  const auto peers = believed(b);
  const auto derive = a.ring.derive_with(peers);
  EXPECT_EQ(derive(pair_of(a, b))->inbound, derive(pair_of(a, b))->inbound) << "the very object";
}

TEST(KeyRing, GenerationsGrowAlsoWhenTheClockWasSetBack) {
  Remote before("a", 1);
  ASSERT_TRUE(before.ring.draw(kNow, std::chrono::hours(24)));
  const auto endpoint = before.endpoint();
  const auto floor = last_published({endpoint.spec.backend_config.begin(), endpoint.spec.backend_config.end()});
  EXPECT_EQ(floor, before.ring.mine().back().generation);
  crypto::DeterministicEntropy entropy(3);
  auto after = *KeyRing::open(before.id, entropy, before.psks, before.identity, kNow - std::chrono::hours(9), floor);
  ASSERT_TRUE(after.draw(kNow, std::chrono::hours(24)));
  EXPECT_LT(floor, after.mine().back().generation);
  const auto old_state = before.ring.sign_state({});
  const auto new_state = after.sign_state({});
  ASSERT_TRUE(old_state && new_state);
  EXPECT_LT(old_state->record.counter, new_state->record.counter);
  EXPECT_NE(before.ring.instance(), after.instance());
}

TEST(KeyRing, NothingWasPublishedWithoutReadableRecords) {
  EXPECT_EQ(last_published({}), crypto::Generation());
  EXPECT_EQ(last_published({{std::string(api::names::kKeysConfig), "%"}, {std::string(api::names::kStateConfig), ""}}),
            crypto::Generation());
}

TEST(KeyRing, ADroppedGenerationIsGone) {
  Remote a("a", 1);
  Remote b("b", 2);
  const auto peers = believed(b);
  const auto pair = pair_of(a, b);
  const auto derive = a.ring.derive_with(peers);
  ASSERT_TRUE(derive(pair));
  a.ring.drop(pair.mine);
  EXPECT_THAT(a.ring.mine(), IsEmpty());
  EXPECT_THAT(a.ring.records({pair.mine}), IsEmpty());
  EXPECT_FALSE(derive(pair)) << "also what was derived before";
}

TEST(KeyRing, JitterStaysWithinItsBoundsAndDiffers) {
  Remote a("a", 1);
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(a.ring.draw(kNow, std::chrono::hours(24)));
  std::set<double> seen;
  for (const auto& mine : a.ring.mine()) {
    EXPECT_GE(mine.jitter, -0.15);
    EXPECT_LE(mine.jitter, 0.15);
    seen.insert(mine.jitter);
  }
  EXPECT_THAT(seen, SizeIs(51));
}

/// PSK 1 with the first bit, PSK 2 with the second.
crypto::PskSet psks_of(unsigned bits) {
  crypto::PskSet psks = bits % 2 == 1 ? testing::one_psk() : crypto::PskSet();
  Secret second(48);
  second.writable()[0] = 2;
  if (bits >= 2) EXPECT_TRUE(psks.add(*crypto::Psk::make(2, second)));
  return psks;
}

TEST(KeyRing, APairTakesTheFirstSuiteOfTheLowerIdThatTheOtherLists) {
  using crypto::Suite;
  constexpr auto kGcm = Suite::aes_gcm_256;
  constexpr auto kChacha = Suite::chacha20_poly1305;

  struct Row {
    std::vector<Suite> low, high;
    std::optional<netstate::Aead> taken;
  };

  for (const auto& row :
       {Row{{kGcm, kChacha}, {kChacha, kGcm}, netstate::Aead::aes_gcm_256},
        Row{{kChacha, kGcm}, {kGcm, kChacha}, netstate::Aead::chacha20_poly1305},
        Row{{kGcm, kChacha}, {kChacha}, netstate::Aead::chacha20_poly1305}, Row{{kGcm}, {kChacha}, std::nullopt}}) {
    Remote low("a", 1);
    Remote high("b", 2);
    low.ring = *KeyRing::open(low.id, low.entropy, low.psks, low.identity, kNow, {}, row.low);
    high.ring = *KeyRing::open(high.id, high.entropy, high.psks, high.identity, kNow, {}, row.high);
    ASSERT_TRUE(low.ring.draw(kNow, std::chrono::hours(24)));
    ASSERT_TRUE(high.ring.draw(kNow, std::chrono::hours(24)));
    const auto peers_of_low = believed(high);
    const auto peers_of_high = believed(low);
    const auto at_low = low.ring.derive_with(peers_of_low)(pair_of(low, high));
    const auto at_high = high.ring.derive_with(peers_of_high)(pair_of(high, low));
    ASSERT_EQ(at_low.has_value(), row.taken.has_value());
    ASSERT_EQ(at_high.has_value(), row.taken.has_value());
    if (!row.taken) continue;
    EXPECT_EQ(at_low->aead, *row.taken);
    EXPECT_EQ(at_high->aead, *row.taken);
  }
}

TEST(KeyRing, WhatCouldNotBeDerivedIsTriedAgainWithOtherPsksAndWhatWasStays) {
  Remote a("a", 1);
  Remote b("b", 2);
  b.psks = psks_of(2);
  a.psks = psks_of(3);
  ASSERT_TRUE(a.ring.draw(kNow, std::chrono::hours(24)));
  ASSERT_TRUE(b.ring.draw(kNow, std::chrono::hours(24)));
  b.ring.drop(b.ring.mine().front().generation);
  const auto peers = believed(b);
  const auto pair = pair_of(a, b);
  a.psks = psks_of(1);
  EXPECT_FALSE(a.ring.derive_with(peers)(pair));
  a.psks = psks_of(3);
  a.ring.psks_changed();
  const auto derived = a.ring.derive_with(peers)(pair);
  ASSERT_TRUE(derived);
  a.psks = psks_of(1);
  a.ring.psks_changed();
  ASSERT_TRUE(a.ring.derive_with(peers)(pair));
  EXPECT_EQ(a.ring.derive_with(peers)(pair)->inbound, derived->inbound);
}

TEST(KeyRing, AnOlderRecordByADroppedPskHoldsUpNeitherTheNewOneNorWhatIsKnown) {
  Remote b("b", 2);
  b.psks = psks_of(3);
  ASSERT_TRUE(b.ring.draw(kNow, std::chrono::hours(24)));
  const crypto::Expected expected{
      .cluster_set = crypto::kDefaultClusterSet, .owner = &b.id, .identity = &b.identity.public_key, .now = kNow};
  const auto raw_of = [](const api::Endpoint& endpoint) {
    return *read_backend_config({endpoint.spec.backend_config.begin(), endpoint.spec.backend_config.end()});
  };
  const auto newer_only = psks_of(2);
  Peers fresh;
  ASSERT_TRUE(accept(fresh, raw_of(b.endpoint()), newer_only, expected));
  ASSERT_THAT(fresh.at(b.id).keys, SizeIs(1));
  EXPECT_EQ(fresh.at(b.id).keys[0].record.generation, b.ring.mine().back().generation);
  Peers known;
  ASSERT_TRUE(accept(known, raw_of(b.endpoint()), psks_of(3), expected));
  ASSERT_TRUE(accept(known, raw_of(b.endpoint()), newer_only, expected)) << "with a newer state record";
  EXPECT_THAT(known.at(b.id).keys, SizeIs(2));
  EXPECT_FALSE(accept(fresh, raw_of(b.endpoint()), testing::one_psk(9), expected));
}

TEST(KeyRing, APeerThatIsNotKnownIsAnError) {
  Remote a("a", 1);
  Remote b("b", 2);
  const Peers nobody;
  EXPECT_FALSE(a.ring.derive_with(nobody)(pair_of(a, b)));
  const auto peers = believed(b);
  auto other_instance = pair_of(a, b);
  other_instance.instance = crypto::InstanceId({9});
  EXPECT_FALSE(a.ring.derive_with(peers)(other_instance));
}

}  // namespace
}  // namespace fabric::gateway
