#include <fabric/broker/join.hpp>
#include <fabric/broker/names.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::broker {
namespace {

using testing::HasSubstr;
using testing::Not;

crypto::PskSet psk_set(char fill) {
  crypto::PskSet set;
  auto psk = crypto::Psk::make(1, Secret::from_text(std::string(48, fill)));
  EXPECT_TRUE(psk.has_value());
  EXPECT_TRUE(set.add(*std::move(psk)).has_value());
  return set;
}

class Join : public testing::Test {
 protected:
  crypto::DeterministicEntropy entropy{7};
  crypto::PskSet psks = psk_set('k');
  crypto::X25519KeyPair reply = *crypto::X25519KeyPair::draw(entropy);
  crypto::Ed25519KeyPair identity = *crypto::Ed25519KeyPair::draw(entropy);
  crypto::Ed25519KeyPair other = *crypto::Ed25519KeyPair::draw(entropy);

  const crypto::Psk& psk() const { return *psks.newest(); }

  ConfigData request() const { return make_join_request(psk(), "a", reply.public_key, identity.public_key); }

  ConfigData answer(std::string_view token = "the-token") {
    const JoinDecision decision = verify_join_request(psks, "fabric-join-a", request(), std::nullopt);
    return *make_member_answer(entropy, psk(), *decision.granted, Secret::from_text(token));
  }
};

TEST_F(Join, HandsTheTokenToTheClusterThatAsked) {
  const ConfigData data = answer();
  for (const auto& [key, value] : data)
    EXPECT_THAT(value, Not(HasSubstr("the-token"))) << key;
  const auto read = read_member_answer(psks, "a", reply, data);
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(read->state, MemberAnswer::State::accepted);
  EXPECT_EQ(read->token.reveal_text(), "the-token");
  EXPECT_EQ(pinned_identity(data), identity.public_key);
  EXPECT_TRUE(answers(data, reply.public_key));
}

TEST_F(Join, RefusesAnotherIdentityForATakenIdAndSaysWhatToDo) {
  const JoinDecision decision = verify_join_request(psks, "fabric-join-a", request(), other.public_key);
  ASSERT_FALSE(decision.granted);
  ASSERT_TRUE(decision.refused);
  EXPECT_THAT(decision.refused->text, HasSubstr("cluster id 'a' is taken"));
  EXPECT_THAT(decision.refused->text, HasSubstr("choose another joinConfig.clusterID"));
}

TEST_F(Join, ARefusalStandsBesideTheAnswerOfTheMember) {
  const ConfigData existing = answer();
  const auto intruder = *crypto::X25519KeyPair::draw(entropy);
  const ConfigData asked = make_join_request(psk(), "a", intruder.public_key, other.public_key);
  const JoinDecision decision = verify_join_request(psks, "fabric-join-a", asked, pinned_identity(existing));
  ASSERT_TRUE(decision.refused);
  const ConfigData data = with_refusal(existing, *decision.refused);
  EXPECT_EQ(read_member_answer(psks, "a", reply, data)->state, MemberAnswer::State::accepted);
  const auto seen = read_member_answer(psks, "a", intruder, data);
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->state, MemberAnswer::State::refused);
  EXPECT_THAT(seen->reason, HasSubstr("is taken"));
}

TEST_F(Join, AMemberThatLostItsKeyMayAskAgainWithItsIdentity) {
  const auto fresh = *crypto::X25519KeyPair::draw(entropy);
  const ConfigData asked = make_join_request(psk(), "a", fresh.public_key, identity.public_key);
  EXPECT_TRUE(verify_join_request(psks, "fabric-join-a", asked, pinned_identity(answer())).granted);
}

TEST_F(Join, WaitsWhileTheAnswerIsForAnotherKey) {
  const auto fresh = *crypto::X25519KeyPair::draw(entropy);
  EXPECT_EQ(read_member_answer(psks, "a", fresh, answer())->state, MemberAnswer::State::waiting);
  EXPECT_EQ(read_member_answer(psks, "a", fresh, {})->state, MemberAnswer::State::waiting);
}

struct Damage {
  std::string name;
  void (*change)(ConfigData&);
  std::string says;
};

class DamagedRequest : public Join, public testing::WithParamInterface<Damage> {};

TEST_P(DamagedRequest, IsRefused) {
  ConfigData data = request();
  GetParam().change(data);
  const JoinDecision decision = verify_join_request(psks, "fabric-join-a", data, std::nullopt);
  ASSERT_TRUE(decision.refused);
  EXPECT_THAT(decision.refused->text, HasSubstr(GetParam().says));
  EXPECT_THAT(decision.refused->text, HasSubstr("ConfigMap submariner-k8s-broker/fabric-join-a"));
}

INSTANTIATE_TEST_SUITE_P(
    Join, DamagedRequest,
    testing::Values(Damage{"NoId", [](ConfigData& d) { d.erase("clusterID"); }, "clusterID"},
                    Damage{"BadId", [](ConfigData& d) { d["clusterID"] = "A_b"; }, "clusterID"},
                    Damage{"OtherId", [](ConfigData& d) { d["clusterID"] = "b"; },
                           "belongs into ConfigMap fabric-join-b"},
                    Damage{"NoKey", [](ConfigData& d) { d.erase("publicKey"); }, "publicKey"},
                    Damage{"BadIdentity", [](ConfigData& d) { d["identity"] = "AAAA"; }, "identity"},
                    Damage{"NoMac", [](ConfigData& d) { d.erase("mac"); }, "mac is not of this federation's PSK"},
                    Damage{"SwappedKey", [](ConfigData& d) { d["publicKey"] = d["identity"]; }, "mac is not of"}),
    [](const auto& test) { return test.param.name; });

TEST_F(Join, RefusesARequestMadeWithAnotherPsk) {
  const JoinDecision decision = verify_join_request(psk_set('x'), "fabric-join-a", request(), std::nullopt);
  ASSERT_TRUE(decision.refused);
  EXPECT_THAT(decision.refused->text, HasSubstr("mac is not of this federation's PSK"));
}

TEST_F(Join, LetsNobodyInWithAPskThatIsBeingReplacedButLetsItLeave) {
  crypto::PskBundle bundle;
  bundle.number = 2;
  bundle.psk = Secret::from_text(std::string(48, 'n'));
  bundle.previous = Secret::from_text(std::string(48, 'k'));
  const auto rotating = *crypto::make_psk_set(bundle);
  const JoinDecision decision = verify_join_request(rotating, "fabric-join-a", request(), std::nullopt);
  ASSERT_TRUE(decision.refused);
  EXPECT_THAT(decision.refused->text, HasSubstr("is being replaced by PSK 2"));
  EXPECT_THAT(decision.refused->text, HasSubstr("copy ConfigMap submariner-broker-info"));
  const ConfigData with_newest = make_join_request(*rotating.newest(), "a", reply.public_key, identity.public_key);
  EXPECT_TRUE(verify_join_request(rotating, "fabric-join-a", with_newest, std::nullopt).granted);
  EXPECT_TRUE(
      verify_join_request(rotating, "fabric-join-a", make_leave_request(psk(), "a", identity), identity.public_key)
          .granted);
}

TEST_F(Join, RefusesAnAnswerThatSomebodyWithoutThePskMade) {
  ConfigData data = answer();
  const JoinDecision decision = verify_join_request(psks, "fabric-join-a", request(), std::nullopt);
  const crypto::PskSet foreign = psk_set('x');
  const ConfigData forged =
      *make_member_answer(entropy, *foreign.newest(), *decision.granted, Secret::from_text("evil"));
  const auto read = read_member_answer(psks, "a", reply, forged);
  ASSERT_FALSE(read.has_value());
  EXPECT_THAT(read.error().message(), HasSubstr("mac is not of this federation's PSK"));
}

TEST_F(Join, AnAnswerForOneClusterDoesNotServeAnother) {
  EXPECT_FALSE(read_member_answer(psks, "b", reply, answer()).has_value());
}

TEST_F(Join, LetsOnlyTheMemberItselfLeave) {
  const ConfigData leave = make_leave_request(psk(), "a", identity);
  const JoinDecision granted = verify_join_request(psks, "fabric-join-a", leave, identity.public_key);
  ASSERT_TRUE(granted.granted);
  EXPECT_EQ(granted.granted->kind, JoinKind::leave);
  EXPECT_TRUE(verify_join_request(psks, "fabric-join-a", leave, other.public_key).refused);
  EXPECT_TRUE(verify_join_request(psks, "fabric-join-a", leave, std::nullopt).refused);
  ConfigData forged = make_leave_request(psk(), "a", other);
  forged["identity"] = leave.at("identity");
  forged["mac"] = leave.at("mac");
  const JoinDecision refused = verify_join_request(psks, "fabric-join-a", forged, identity.public_key);
  ASSERT_TRUE(refused.refused);
  EXPECT_THAT(refused.refused->text, HasSubstr("signature is wrong"));
}

}  // namespace
}  // namespace fabric::broker
