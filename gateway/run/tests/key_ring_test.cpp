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
  EXPECT_EQ(last_published({{std::string(api::names::kKeysConfig), "%"}, {std::string(api::names::kStateConfig), ""}}), crypto::Generation());
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
