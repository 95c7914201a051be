#include <fabric/ctl/psk_rotation.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"

namespace fabric::ctl {
namespace {

using test::broker;
using test::rotating_broker;
using testing::AllOf;
using testing::HasSubstr;

constexpr auto kEverywhere = "in any namespace";

TEST(PskRotation, FindsTheBrokersFabricAmongOthers) {
  const auto found = broker_fabric({test::member(), broker()}, kEverywhere);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->metadata.name, "hub");
}

TEST(PskRotation, SaysWhereToGoWithoutABroker) {
  const auto found = broker_fabric({test::member()}, kEverywhere);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::not_found);
  EXPECT_THAT(found.error().message(), AllOf(HasSubstr("in any namespace"), HasSubstr("--context")));
}

TEST(PskRotation, NamesBothWhenTwoFabricsWantToBeTheBroker) {
  api::Fabric other = broker();
  other.metadata.ns = "elsewhere";
  const auto found = broker_fabric({broker(), other}, kEverywhere);
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message(),
              AllOf(HasSubstr("default/hub"), HasSubstr("elsewhere/hub"), HasSubstr("--namespace")));
}

TEST(PskRotation, AsksForOneMoreThanTheCurrentNumberAndOnlyOfTheSpecThatWasSeen) {
  struct Row {
    const char* name;
    api::Fabric fabric;
    std::int64_t to;
  };

  api::Fabric without_status = broker();
  without_status.status.psk_rotation.reset();
  api::Fabric explicit_number = broker(4);
  explicit_number.spec.broker_config->psk_number = 4;
  for (const Row& row :
       {Row{"never rotated", broker(1), 2}, Row{"an operator that reports nothing yet", without_status, 2},
        Row{"rotated before", explicit_number, 5}, Row{"no number in the spec", broker(7), 8}}) {
    SCOPED_TRACE(row.name);
    api::Fabric seen = row.fabric;
    seen.metadata.resource_version = "77";
    const auto rotation = plan_rotation(seen);
    ASSERT_TRUE(rotation) << rotation.error().message();
    EXPECT_EQ(rotation->from, row.to - 1);
    EXPECT_EQ(rotation->to, row.to);
    EXPECT_EQ(rotation->patch,
              json::Value(json::Object{{"metadata", json::Object{{"resourceVersion", "77"}}},
                                       {"spec", json::Object{{"brokerConfig", json::Object{{"pskNumber", row.to}}}}}}));
  }
}

TEST(PskRotation, IsRefusedWithNamesWhileOneRuns) {
  const auto rotation = plan_rotation(rotating_broker(2, {"east", "west"}));
  ASSERT_FALSE(rotation);
  EXPECT_EQ(rotation.error().code, Errc::conflict);
  EXPECT_THAT(rotation.error().message(), AllOf(HasSubstr("Fabric default/hub"), HasSubstr("waiting for east, west")));
}

TEST(PskRotation, IsRefusedWhileTheOperatorHasNotBegunOrRefusedANumber) {
  api::Fabric asked = broker(1);
  asked.spec.broker_config->psk_number = 2;
  EXPECT_TRUE(is_rotating(asked));
  EXPECT_THAT(plan_rotation(asked).error().message(), HasSubstr("the operator has not begun"));
  asked.spec.broker_config->psk_number = 9;
  asked.status.conditions.push_back(test::condition("PSKRotated", api::ConditionStatus::no, "InvalidNumber", "use 2"));
  EXPECT_THAT(plan_rotation(asked).error().message(), AllOf(HasSubstr("PSK 9 was asked for"), HasSubstr("use 2")));
}

TEST(PskRotation, DescribesEveryStateInOneLine) {
  EXPECT_EQ(describe_rotation(test::member()), "");
  EXPECT_EQ(describe_rotation(broker(3)), "PSK 3 is current");
  EXPECT_EQ(describe_rotation(rotating_broker(2, {"west"})),
            "PSK 2 replaces PSK 1: 2 of 3 clusters are ready, waiting for west");
  EXPECT_EQ(describe_rotation(rotating_broker(2, {})), "PSK 2 replaces PSK 1: 3 of 3 clusters are ready");
}

TEST(PskRotation, IsOverWhenTheNumberIsCurrentAndAlone) {
  EXPECT_FALSE(is_rotated_to(broker(1), 2));
  EXPECT_FALSE(is_rotated_to(rotating_broker(2, {}), 2));
  EXPECT_TRUE(is_rotated_to(broker(2), 2));
}

}  // namespace
}  // namespace fabric::ctl
