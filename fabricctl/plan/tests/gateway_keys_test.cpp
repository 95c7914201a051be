#include <fabric/ctl/gateway_keys.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using test::gateway;
using test::generation;
using test::kNow;
using testing::AllOf;
using testing::HasSubstr;

TEST(GatewayKeys, TableShowsTheNewestGenerationOfEachGatewayThatSays) {
  api::Gateway first = gateway("n1", {generation("g1", 70min), generation("g2", 3min, "requested")});
  first.status.keys->rekeys = 4;
  api::GatewayKeys& keys = *first.status.keys;
  keys.rejected.emplace_back();
  keys.rejected.back().endpoint = "west-cable";
  keys.rejected.back().reason = "bad_mac";
  keys.rejected.back().count = 12;
  EXPECT_EQ(keys_table({first, gateway("n2"), gateway("n3", {generation("g9", 1min, "first")})}, kNow),
            "GATEWAY   GENERATION   AGE   REASON      HELD   PSK IDS              REKEYS   REJECTED RECORDS\n"
            "n1        g2           3m    requested   2      1:0123456789abcdef   4        12 of west-cable (bad_mac)\n"
            "n3        g9           1m    first       1      1:0123456789abcdef   0        -\n");
  EXPECT_EQ(keys_table({gateway("n2")}, kNow), "");
}

TEST(GatewayKeys, RekeyingGoesFromAskedOverDrainingToDone) {
  struct Row {
    const char* name;
    std::set<std::string> before;
    std::vector<api::KeyGeneration> now;
    RekeyPhase phase;
  };

  for (const Row& row :
       {Row{"nothing happened", {"g1"}, {generation("g1", 5min)}, RekeyPhase::asked},
        Row{"the older of two drained", {"g1", "g2"}, {generation("g2", 5min)}, RekeyPhase::asked},
        Row{"a newer one is there", {"g1"}, {generation("g1", 5min), generation("g2", 0min)}, RekeyPhase::draining},
        Row{"only the newer one", {"g1"}, {generation("g2", 1min)}, RekeyPhase::done},
        Row{"the agent restarted", {"g1"}, {}, RekeyPhase::asked}}) {
    EXPECT_EQ(rekey_phase(row.before, gateway("n1", row.now)), row.phase) << row.name;
  }
}

TEST(GatewayKeys, NamesTheNewestWhateverTheOrder) {
  EXPECT_EQ(describe_newest(gateway("n1", {generation("g2", 1min, "requested"), generation("g1", 9min)}), kNow),
            "generation g2, drawn 1m ago (requested)");
  EXPECT_EQ(describe_newest(gateway("n1"), kNow), "no keys");
}

TEST(GatewayKeys, ChoosesByNameOrAll) {
  const std::vector<api::Gateway> two{gateway("n1"), gateway("n2")};
  const auto all = choose_gateways(two, {}, true);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2U);
  const auto one = choose_gateways(two, {"n2"}, false);
  ASSERT_TRUE(one);
  ASSERT_EQ(one->size(), 1U);
  EXPECT_EQ(one->front().metadata.name, "n2");
}

TEST(GatewayKeys, AChoiceThatFitsNothingNamesWhatThereIs) {
  const std::vector<api::Gateway> two{gateway("n1"), gateway("n2")};
  EXPECT_THAT(choose_gateways(two, {}, false).error().message(), AllOf(HasSubstr("--all"), HasSubstr("n1, n2")));
  const auto typo = choose_gateways(two, {"n1", "n3"}, false);
  EXPECT_EQ(typo.error().code, Errc::not_found);
  EXPECT_THAT(typo.error().message(), AllOf(HasSubstr("--gateway n3"), HasSubstr("n1, n2")));
  EXPECT_EQ(choose_gateways({}, {}, true).error().code, Errc::not_found);
}

}  // namespace
}  // namespace fabric::ctl
