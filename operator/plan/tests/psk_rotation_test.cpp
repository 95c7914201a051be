#include <fabric/operator/psk_rotation.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::operators {
namespace {

using broker::MemberPskUse;
using broker::PskUse;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const PskFacts kAlone{.number = 4, .rotating = false, .drawn_at = {}};
const PskFacts kRotating{.number = 4, .rotating = true, .drawn_at = TimePoint(std::chrono::seconds(1'700'000'000))};

struct Order {
  std::string name;
  PskFacts psk;
  std::optional<std::uint32_t> wanted;
  bool start;
  std::string refusal;
};

class Orders : public testing::TestWithParam<Order> {};

INSTANTIATE_TEST_SUITE_P(
    Rotation, Orders,
    testing::Values(Order{"Nothing", kAlone, {}, false, ""}, Order{"TheCurrentOne", kAlone, 4, false, ""},
                    Order{"TheNextOne", kAlone, 5, true, ""},
                    Order{"ALowerOne", kAlone, 3, false, "spec.brokerConfig.pskNumber 3: PSK 4 is current"},
                    Order{"OneTooMany", kAlone, 6, false, "set 5 to rotate, or 4 to leave it"},
                    Order{"TheOneThatIsRotatedTo", kRotating, 4, false, ""},
                    Order{"NothingWhileRotating", kRotating, {}, false, ""},
                    Order{"TheNextWhileRotating", kRotating, 5, false, "the rotation to PSK 4 still runs: wait until"},
                    Order{"BackWhileRotating", kRotating, 3, false, "spec.brokerConfig.pskNumber 3: the rotation to"},
                    Order{"PastTheLast", {.number = 4294967295, .rotating = false, .drawn_at = {}}, 1, false, "PSK 4"}),
    [](const auto& test) { return test.param.name; });

TEST_P(Orders, AreFollowedOneByOne) {
  const RotationDecision decision = decide_rotation(GetParam().psk, GetParam().wanted);
  EXPECT_EQ(decision.start, GetParam().start);
  EXPECT_THAT(decision.refusal, HasSubstr(GetParam().refusal));
  EXPECT_EQ(decision.refusal.empty(), GetParam().refusal.empty());
}

TEST(Rotation, EndsWhenNobodyAliveIsWaitedFor) {
  const MemberPskUse ready{"a", PskUse::ready, ""};
  const MemberPskUse waiting{"b", PskUse::waiting, "Endpoint b-n1: does not list PSK 4 yet"};
  const MemberPskUse away{"c", PskUse::away, "has no live gateway"};
  EXPECT_FALSE(may_finish(kRotating, {ready, waiting, away}));
  EXPECT_TRUE(may_finish(kRotating, {ready, away}));
  EXPECT_TRUE(may_finish(kRotating, {}));
  EXPECT_FALSE(may_finish(kAlone, {ready}));
}

TEST(Rotation, SaysForWhomItWaitsAndSinceWhen) {
  const std::vector<MemberPskUse> members{{"a", PskUse::ready, ""},
                                          {"b", PskUse::waiting, "Endpoint b-n1: does not list PSK 4 yet"},
                                          {"c", PskUse::away, "has no live gateway"}};
  const Step step = rotation_step(kRotating, {}, members);
  EXPECT_EQ(step.state, StepState::working);
  EXPECT_THAT(step.message, HasSubstr("drawn at 2023-11-14T22:13:20Z"));
  EXPECT_THAT(step.message, HasSubstr("1 of 3 clusters use it"));
  EXPECT_THAT(step.message, HasSubstr("waiting for 'b' (Endpoint b-n1: does not list PSK 4 yet)"));
  EXPECT_THAT(step.message, HasSubstr("not waiting for 'c'"));
  const api::PskRotationStatus status = rotation_status(kRotating, members);
  EXPECT_EQ(status.phase, api::PskPhase::rotating);
  EXPECT_EQ(status.members_ready, 1);
  EXPECT_EQ(status.members_total, 3);
  EXPECT_THAT(status.waiting_for, ElementsAre("b"));
}

TEST(Rotation, IsDoneWithOnePsk) {
  const std::vector<MemberPskUse> members{{"a", PskUse::away, ""}, {"b", PskUse::away, ""}};
  EXPECT_EQ(rotation_step(kAlone, {}, members).state, StepState::done);
  const api::PskRotationStatus status = rotation_status(kAlone, members);
  EXPECT_EQ(status.phase, api::PskPhase::done);
  EXPECT_EQ(status.members_ready, 2);
  EXPECT_THAT(status.waiting_for, IsEmpty());
}

TEST(Rotation, ShowsARefusedNumberAndStillHowFarItIs) {
  const Step step = rotation_step(kRotating, decide_rotation(kRotating, 9), {{"a", PskUse::ready, ""}});
  EXPECT_EQ(step.state, StepState::stalled);
  EXPECT_THAT(step.message, HasSubstr("spec.brokerConfig.pskNumber 9"));
  EXPECT_THAT(step.message, HasSubstr("1 of 1 clusters use it"));
}

crypto::PskBundle bundle(std::uint32_t number, char fill, bool two = false) {
  crypto::PskBundle out{.number = number, .psk = Secret::from_text(std::string(48, fill)), .previous = std::nullopt};
  if (two) out.previous = Secret::from_text(std::string(48, 'p'));
  return out;
}

TEST(BrokerInfoOfUnknownAge, IsAdoptedOnlyWhenItIsNewerOrOfAnotherBroker) {
  EXPECT_FALSE(adopts(bundle(2, 'x'), bundle(1, 'p'), true)) << "an old copy";
  EXPECT_TRUE(adopts(bundle(2, 'x'), bundle(1, 'q'), false)) << "another broker";
  EXPECT_TRUE(adopts(bundle(2, 'x'), bundle(3, 'y', true), true)) << "a new copy during a rotation";
  EXPECT_TRUE(adopts(bundle(2, 'x'), bundle(2, 'y'), true)) << "a broker that was made anew";
  EXPECT_TRUE(adopts(bundle(2, 'x', true), bundle(2, 'x'), true)) << "a new copy after a rotation";
  EXPECT_FALSE(adopts(bundle(2, 'x'), bundle(2, 'x', true), true)) << "a dropped PSK stays dropped";
  EXPECT_FALSE(adopts(bundle(2, 'x'), bundle(2, 'x'), true));
}

}  // namespace
}  // namespace fabric::operators
