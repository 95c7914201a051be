#include <fabric/broker/psk_delivery.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::broker {
namespace {

using testing::HasSubstr;
using testing::Not;

/// PSK n is 48 times its digit.
Secret psk(std::uint32_t number) {
  return Secret::from_text(std::string(48, static_cast<char>('A' + number)));
}

crypto::PskBundle bundle(std::uint32_t number, bool two = false) {
  crypto::PskBundle out{.number = number, .psk = psk(number), .previous = std::nullopt};
  if (two) out.previous = psk(number - 1);
  return out;
}

class PskDelivery : public testing::Test {
 protected:
  crypto::DeterministicEntropy entropy{11};
  crypto::X25519KeyPair key = *crypto::X25519KeyPair::draw(entropy);
  crypto::Ed25519KeyPair identity = *crypto::Ed25519KeyPair::draw(entropy);

  ConfigData admitted(std::uint32_t number = 1, std::string id = "a") {
    const JoinRequest request{JoinKind::join, std::move(id), key.public_key, identity.public_key};
    const auto psks = *crypto::make_psk_set(bundle(number));
    return *make_member_answer(entropy, *psks.newest(), request, Secret::from_text("token"));
  }

  ConfigData delivered(const crypto::PskBundle& to, ConfigData answer, std::string_view id = "a") {
    auto out = deliver_psks(entropy, to, id, answer);
    EXPECT_TRUE(out) << out.error().message();
    return out && *out ? **std::move(out) : std::move(answer);
  }

  std::string refused(const crypto::PskBundle& held, const ConfigData& answer) {
    const auto out = follow_psks(held, "a", key, answer);
    return out ? std::string("followed") : out.error().message();
  }

  void expect_leads(const crypto::PskBundle& held, const ConfigData& answer, const crypto::PskBundle& to) {
    const auto out = follow_psks(held, "a", key, answer);
    ASSERT_TRUE(out) << out.error().message();
    EXPECT_TRUE(out->equals(to)) << out->number;
  }
};

TEST_F(PskDelivery, LeadsAMemberThroughARotation) {
  const ConfigData before = delivered(bundle(1), admitted());
  expect_leads(bundle(1), before, bundle(1));
  const ConfigData during = delivered(bundle(2, true), before);
  expect_leads(bundle(1), during, bundle(2, true));
  expect_leads(bundle(2, true), during, bundle(2, true));
  const ConfigData after = delivered(bundle(2), during);
  expect_leads(bundle(2, true), after, bundle(2));
  expect_leads(bundle(2), after, bundle(2));
}

TEST_F(PskDelivery, LeadsAMemberThatWasAwayForSeveralRotations) {
  ConfigData answer = delivered(bundle(1), admitted());
  for (std::uint32_t number = 2; number <= 5; ++number) {
    answer = delivered(bundle(number, true), answer);
    answer = delivered(bundle(number), answer);
  }
  expect_leads(bundle(1), answer, bundle(5));
  expect_leads(bundle(3, true), answer, bundle(5));
}

TEST_F(PskDelivery, WritesOnlyWhatIsNew) {
  const ConfigData answer = delivered(bundle(2, true), delivered(bundle(1), admitted()));
  EXPECT_FALSE(deliver_psks(entropy, bundle(2, true), "a", answer)->has_value());
}

TEST_F(PskDelivery, HoldsNoPskInClear) {
  const ConfigData answer = delivered(bundle(2, true), delivered(bundle(1), admitted()));
  for (const auto& [name, value] : answer) {
    EXPECT_THAT(value, Not(HasSubstr(std::string(psk(2).reveal_text())))) << name;
    EXPECT_THAT(value, Not(HasSubstr(crypto::to_base64(psk(2).reveal())))) << name;
  }
}

TEST_F(PskDelivery, KeepsTheTokenReadableWithTheNewestPskAlone) {
  const ConfigData answer = delivered(bundle(2), delivered(bundle(2, true), delivered(bundle(1), admitted())));
  const auto read = read_member_answer(*crypto::make_psk_set(bundle(2)), "a", key, answer);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->token.reveal_text(), "token");
}

TEST_F(PskDelivery, NeverLeadsBack) {
  const ConfigData old = delivered(bundle(1), admitted());
  EXPECT_THAT(refused(bundle(2), old), HasSubstr("pskNumber 1 is older than PSK 2"));
  const ConfigData during = delivered(bundle(2, true), old);
  // Replayed after the member has dropped PSK 1: the number is the same, and the previous PSK does not come back.
  expect_leads(bundle(2), during, bundle(2));
}

TEST_F(PskDelivery, DropsOldStepsAndSaysWhatToDoThen) {
  ConfigData answer = delivered(bundle(1), admitted());
  for (std::uint32_t number = 2; number <= kKeptPskSteps + 2; ++number)
    answer = delivered(bundle(number, true), answer);
  EXPECT_FALSE(answer.contains("psk-2"));
  EXPECT_TRUE(answer.contains("psk-3"));
  EXPECT_THAT(refused(bundle(1), answer), HasSubstr("copy ConfigMap submariner-broker-info"));
  expect_leads(bundle(2), answer, bundle(kKeptPskSteps + 2, true));
}

TEST_F(PskDelivery, IsNotMadeForAJoinKeyThatNobodyVouchesFor) {
  const auto thief = *crypto::X25519KeyPair::draw(entropy);
  ConfigData answer = delivered(bundle(1), admitted());
  answer["publicKey"] = crypto::to_base64(thief.public_key);
  const auto out = deliver_psks(entropy, bundle(2, true), "a", answer);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message(), HasSubstr("its join key may be anybody's"));
}

TEST_F(PskDelivery, OfAnOlderBrokerLeadsNowhere) {
  expect_leads(bundle(1), admitted(), bundle(1));
}

struct Forgery {
  std::string name;
  void (*change)(ConfigData&);
  std::string says;
};

class ForgedDelivery : public PskDelivery, public testing::WithParamInterface<Forgery> {};

TEST_P(ForgedDelivery, IsRefused) {
  ConfigData answer = delivered(bundle(2, true), delivered(bundle(1), admitted()));
  GetParam().change(answer);
  EXPECT_THAT(refused(bundle(1), answer), HasSubstr(GetParam().says));
}

/// Somebody who holds none of the PSKs but knows every public value.
ConfigData foreign() {
  crypto::DeterministicEntropy entropy{11};
  const auto key = *crypto::X25519KeyPair::draw(entropy);
  const auto identity = *crypto::Ed25519KeyPair::draw(entropy);
  crypto::PskBundle evil{.number = 2, .psk = psk(20), .previous = psk(21)};
  const JoinRequest request{JoinKind::join, "a", key.public_key, identity.public_key};
  const auto answer = *make_member_answer(entropy, *crypto::make_psk_set(evil)->newest(), request, Secret(8));
  return **deliver_psks(entropy, evil, "a", answer);
}

INSTANTIATE_TEST_SUITE_P(
    PskDelivery, ForgedDelivery,
    testing::Values(
        Forgery{"MadeWithoutThePsk", [](ConfigData& d) { d = foreign(); }, "psk-2 was not made by a holder of PSK 1"},
        Forgery{"StateMadeWithoutThePsk", [](ConfigData& d) { d["pskMac"] = foreign().at("pskMac"); },
                "pskMac was not made by a holder of PSK 2"},
        Forgery{"SecondPskWithdrawn", [](ConfigData& d) { d["pskValid"] = "1"; }, "pskMac was not made"},
        Forgery{"HigherNumber", [](ConfigData& d) { d["pskNumber"] = "3"; }, "psk-3 is missing"},
        Forgery{"NoNumber", [](ConfigData& d) { d["pskNumber"] = "x"; }, "pskNumber"},
        Forgery{"StepWithoutMac", [](ConfigData& d) { d["psk-2"].resize(d["psk-2"].find('.')); }, "psk-2 is missing"},
        Forgery{"ChangedStep", [](ConfigData& d) { d["psk-2"][0] = d["psk-2"][0] == 'A' ? 'B' : 'A'; },
                "psk-2 was not made by"},
        Forgery{"AnotherJoinKey", [](ConfigData& d) { d["publicKey"] = d["identity"]; },
                "publicKey is for another join key"}),
    [](const auto& test) { return test.param.name; });

TEST_F(PskDelivery, ForOneClusterDoesNotServeAnother) {
  const ConfigData answer = delivered(bundle(2, true), delivered(bundle(1), admitted()));
  const auto out = follow_psks(bundle(1), "b", key, answer);
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message(), HasSubstr("was not made by"));
}

}  // namespace
}  // namespace fabric::broker
