#include <fabric/api/names.hpp>
#include <fabric/broker/federation.hpp>
#include <fabric/broker/psk_readiness.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::broker {
namespace {

namespace names = api::names;
using testing::HasSubstr;

constexpr TimePoint kNow{std::chrono::seconds(1'700'000'000)};

crypto::PskSet psks(std::initializer_list<std::uint32_t> numbers) {
  crypto::PskSet set;
  for (const std::uint32_t number : numbers) {
    const Secret psk = Secret::from_text(std::string(48, static_cast<char>('A' + number)));
    EXPECT_TRUE(set.add(*crypto::Psk::make(number, psk)));
  }
  return set;
}

/// A cluster "a" with one gateway "n1".
class PskReadiness : public testing::Test {
 protected:
  crypto::DeterministicEntropy entropy{5};
  crypto::Ed25519KeyPair identity = *crypto::Ed25519KeyPair::draw(entropy);
  crypto::InstanceId instance = *crypto::draw_instance(entropy);

  api::Cluster cluster(const crypto::PskSet& by) const {
    const IdentityProof proof = prove_identity(by, "a", identity.public_key);
    api::Cluster out;
    out.metadata.name = out.spec.cluster_id = "a";
    out.metadata.annotations = {{std::string(names::kIdentityAnnotation), proof.identity},
                                {std::string(names::kIdentityMacAnnotation), proof.mac}};
    return out;
  }

  std::string key(const crypto::PskSet& by, std::uint64_t generation, TimePoint end = kNow + std::chrono::hours(1)) {
    crypto::KeyRecord record;
    record.cluster_set = "fabric";
    record.owner = {"a", "n1"};
    record.instance = instance;
    record.generation = crypto::Generation(generation);
    record.public_key = crypto::X25519KeyPair::draw(entropy)->public_key;
    record.suites = {1};
    record.not_after = end;
    return crypto::to_base64(crypto::sign(std::move(record), by, identity)->bytes);
  }

  std::string state(const crypto::PskSet& by) const {
    crypto::StateRecord record;
    record.cluster_set = "fabric";
    record.owner = {"a", "n1"};
    record.instance = instance;
    record.counter = 1;
    return crypto::to_base64(crypto::sign(std::move(record), by, identity)->bytes);
  }

  static api::Endpoint endpoint(std::string keys, std::string state, std::string name = "a-n1") {
    api::Endpoint out;
    out.metadata.name = std::move(name);
    out.spec.cluster_id = "a";
    out.spec.hostname = "n1";
    out.spec.backend_config = {{std::string(names::kKeysConfig), std::move(keys)},
                               {std::string(names::kStateConfig), std::move(state)}};
    return out;
  }

  MemberPskUse use(const api::Cluster& of, const std::vector<api::Endpoint>& endpoints, bool pinned = true) const {
    std::map<std::string, crypto::Ed25519Public> identities;
    if (pinned) identities.emplace("a", identity.public_key);
    const auto all = psk_use(psks({2}), {of}, endpoints, identities, kNow);
    EXPECT_EQ(all.size(), 1U);
    return all.front();
  }

  void expect_waiting(const MemberPskUse& found, std::string_view why) const {
    EXPECT_EQ(found.use, PskUse::waiting);
    EXPECT_THAT(found.why, HasSubstr(std::string(why)));
  }
};

TEST_F(PskReadiness, IsReachedWhenEverythingListsTheNewestPsk) {
  const auto both = psks({1, 2});
  EXPECT_EQ(use(cluster(both), {endpoint(key(both, 1) + "," + key(both, 2), state(both))}).use, PskUse::ready);
}

TEST_F(PskReadiness, WaitsForEachRecordAndForTheIdentity) {
  const auto both = psks({1, 2});
  const auto old = psks({1});
  expect_waiting(use(cluster(both), {endpoint(key(old, 1), state(old))}), "does not list PSK 2 yet");
  expect_waiting(use(cluster(both), {endpoint(key(old, 1) + "," + key(both, 2), state(both))}),
                 "Endpoint a-n1: a key record does not list PSK 2 yet");
  expect_waiting(use(cluster(both), {endpoint(key(both, 1), state(old))}), "the state record does not list PSK 2 yet");
  expect_waiting(use(cluster(old), {endpoint(key(both, 1), state(both))}), "Cluster a does not prove its identity");
}

TEST_F(PskReadiness, OfOneGatewayDoesNotStandForAnother) {
  const auto both = psks({1, 2});
  const auto old = psks({1});
  expect_waiting(use(cluster(both), {endpoint(key(both, 1), state(both)), endpoint(key(old, 1), state(old), "other")}),
                 "Endpoint other");
}

TEST_F(PskReadiness, IsNotReachedByWhatCannotBeVerified) {
  const auto both = psks({1, 2});
  const api::Cluster of = cluster(both);
  expect_waiting(use(of, {endpoint("", "")}), "no key records that can be read");
  expect_waiting(use(of, {endpoint("AAAA", state(both))}), "cannot be verified (malformed)");
  expect_waiting(use(of, {endpoint(key(both, 1), "")}), "no state record that can be read");
  expect_waiting(use(of, {endpoint(key(both, 1), "AAAA")}), "the state record cannot be verified (malformed)");
  api::Endpoint stolen = endpoint(key(both, 1), state(both));
  stolen.spec.hostname = "n2";
  expect_waiting(use(of, {stolen}), "cannot be verified (foreign_gateway)");
  const crypto::Ed25519KeyPair own = std::move(identity);
  identity = *crypto::Ed25519KeyPair::draw(entropy);
  const api::Endpoint forged = endpoint(key(both, 1), state(both));
  identity = *crypto::Ed25519KeyPair::from_seed(own.seed.duplicate());
  expect_waiting(use(of, {forged}), "cannot be verified (bad_signature)");
  expect_waiting(use(of, {endpoint(key(both, 1), state(both))}, false), "without ConfigMap fabric-member-a");
}

TEST_F(PskReadiness, DoesNotWaitForClustersWithoutALiveGateway) {
  const auto old = psks({1});
  EXPECT_EQ(use(cluster(old), {}).use, PskUse::away);
  const TimePoint past = kNow - std::chrono::minutes(11);
  EXPECT_EQ(use(cluster(old), {endpoint(key(old, 1, past), state(old))}).use, PskUse::away);
  // Within the tolerance of clocks it may be alive.
  expect_waiting(use(cluster(psks({1, 2})), {endpoint(key(old, 1, kNow - std::chrono::minutes(9)), state(old))}),
                 "does not list PSK 2 yet");
}

TEST_F(PskReadiness, IgnoresEndpointsOfNobodyWhoJoined) {
  api::Endpoint orphan = endpoint("", "");
  orphan.spec.cluster_id = "b";
  const auto both = psks({1, 2});
  EXPECT_EQ(use(cluster(both), {orphan, endpoint(key(both, 1), state(both))}).use, PskUse::ready);
}

}  // namespace
}  // namespace fabric::broker
