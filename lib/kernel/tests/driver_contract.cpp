#include "driver_contract.hpp"

#include <fabric/kernel/composition.hpp>
#include <fabric/netstate/diff.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

#include "build.hpp"

namespace fabric::kernel::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PolicyContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SaContract);

namespace {

using namespace netstate;
using namespace netstate::test;
using testing::IsEmpty;

constexpr std::string_view kHere = "192.0.2.1";
constexpr std::string_view kThere = "198.51.100.1";

Step policy_step(Verb verb, PolicyKey key, XfrmPolicy policy) {
  return {verb == Verb::remove ? Phase::remove_esp_policies : Phase::esp_policies, verb,
          PolicyObject{std::move(key), std::move(policy)}};
}

Step sa_step(Verb verb, SaKey key, Sa value) {
  return {verb == Verb::remove ? Phase::remove_inbound_sas : Phase::inbound_sas, verb,
          SaObject{std::move(key), std::move(value)}};
}

Result<void> apply_one(Driver& driver, const Step& step) {
  auto results = driver.apply(std::span(&step, 1));
  EXPECT_EQ(results.size(), 1U);
  return std::move(results.front());
}

State observed(Driver& driver, Slices slices = Slices::all()) {
  State state;
  const auto done = driver.observe(slices, state);
  EXPECT_TRUE(done.has_value()) << done.error().message();
  return state;
}

void expect_done(const std::vector<Result<void>>& results) {
  for (const auto& result : results)
    EXPECT_TRUE(result.has_value()) << result.error().message();
}

/// The driver's state becomes the desired one, as a program does it.
void converge(Driver& driver, const State& desired) {
  const auto script = diff(observed(driver), desired, driver.slices());
  std::vector<Result<void>> results;
  for (const auto& step : script.steps)
    results.push_back(apply_one(driver, step));
  expect_done(results);
}

const PolicyKey kOut = policy_key(Direction::out, "10.1.0.0/16", "10.2.0.0/16");

/// One of each kind that a gateway has; the IPv6 ones ride on an IPv4 outer header.
State policies_of_each_kind() {
  State state;
  state.policies[kOut] = esp(kHere, kThere, 7);
  state.policies[policy_key(Direction::in, "10.2.0.0/16", "10.1.0.0/16")] = esp("0.0.0.0", "0.0.0.0", 7);
  state.policies[policy_key(Direction::fwd, "10.2.0.0/16", "10.1.0.0/16")] = esp("0.0.0.0", "0.0.0.0", 7);
  state.policies[policy_key(Direction::out, "0.0.0.0/0", "10.2.0.0/16")] = block();
  state.policies[policy_key(Direction::out, "fd01::/48", "fd02::/48")] = esp(kHere, kThere, 7);
  state.policies[policy_key(Direction::in, "fd02::/48", "fd01::/48")] = esp("0.0.0.0", "0.0.0.0", 7);
  state.policies[policy_key(Direction::fwd, "fd02::/48", "::/0")] = block();
  state.policies[policy_key(Direction::out, "10.1.0.0/16", "10.3.0.0/16")] = esp("2001:db8::1", "2001:db8::2", 8);
  return state;
}

TEST_P(PolicyContract, GivesBackEveryKindOfPolicyAsItWasAdded) {
  const auto desired = policies_of_each_kind();
  converge(kernel->driver(), desired);
  EXPECT_EQ(observed(kernel->driver()), desired);
  EXPECT_TRUE(diff(observed(kernel->driver()), desired, Slices::all()).empty());
}

TEST_P(PolicyContract, RemovesEverythingThatIsNotDesired) {
  converge(kernel->driver(), policies_of_each_kind());
  converge(kernel->driver(), {});
  EXPECT_EQ(observed(kernel->driver()), State{});
}

TEST_P(PolicyContract, ReplacesAPolicyOfOursThatItWasToAdd) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, policy_step(Verb::add, kOut, esp(kHere, kThere, 7)))});
  expect_done({apply_one(driver, policy_step(Verb::add, kOut, esp(kHere, "203.0.113.1", 7)))});
  EXPECT_EQ(observed(driver).policies.at(kOut), esp(kHere, "203.0.113.1", 7));
  EXPECT_EQ(observed(driver).policies.size(), 1U);
}

TEST_P(PolicyContract, ReplacesInPlace) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, policy_step(Verb::add, kOut, esp(kHere, kThere, 7)))});
  expect_done({apply_one(driver, policy_step(Verb::replace, kOut, block()))});
  EXPECT_EQ(observed(driver).policies.at(kOut), block());
}

TEST_P(PolicyContract, CreatesAPolicyThatItWasToReplace) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, policy_step(Verb::replace, kOut, esp(kHere, kThere, 7)))});
  EXPECT_EQ(observed(driver).policies.at(kOut), esp(kHere, kThere, 7));
}

TEST_P(PolicyContract, FindsItDoneToRemoveAnAbsentPolicy) {
  expect_done({apply_one(kernel->driver(), policy_step(Verb::remove, kOut, esp(kHere, kThere, 7)))});
}

TEST_P(PolicyContract, NeitherShowsNorReplacesAPolicyOfAnother) {
  auto& driver = kernel->driver();
  kernel->add_foreign_policy(kOut);
  EXPECT_THAT(observed(driver).policies, IsEmpty());
  const auto result = apply_one(driver, policy_step(Verb::add, kOut, esp(kHere, kThere, 7)));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Errc::already_exists);
  EXPECT_TRUE(kernel->has_foreign_policy(kOut));
}

TEST_P(PolicyContract, ObservesOnlyWhatIsWanted) {
  converge(kernel->driver(), policies_of_each_kind());
  EXPECT_EQ(observed(kernel->driver(), {Slice::sas}), State{});
}

TEST_P(PolicyContract, TellsWhichOfManyStepsFailed) {
  constexpr std::size_t kCount = 300;
  constexpr std::size_t kBad = 200;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < kCount; ++i) {
    auto key = policy_key(Direction::out, "10.1.0.0/16", fmt::format("10.{}.{}.0/24", 100 + i / 250, i % 250));
    if (i == kBad) key.dst = cidr("fd02::/48");
    steps.push_back(policy_step(Verb::add, key, esp(kHere, kThere, 7)));
  }
  const auto results = kernel->driver().apply(steps);
  ASSERT_EQ(results.size(), kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(results[i].has_value(), i != kBad) << i;
  EXPECT_EQ(results[kBad].error().code, Errc::invalid);
  EXPECT_EQ(observed(kernel->driver()).policies.size(), kCount - 1);
}

Sa complete_sa() {
  auto result = sa(kThere, 7);
  result.aead = Aead::chacha20_poly1305;
  result.encap = UdpEncap{4500, 4501};
  result.replay_window = 2048;
  result.soft_packets = std::uint64_t{1} << 32U;
  result.hard_packets = std::uint64_t{1} << 36U;
  result.hard_seconds = 86'400;
  return result;
}

const SaKey kSa = sa_key(kHere, 0x1000);

TEST_P(SaContract, GivesBackAnSaAsItWasAddedButNotItsKey) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, sa_step(Verb::add, kSa, complete_sa()))});
  const auto state = observed(driver);
  ASSERT_EQ(state.sas.size(), 1U);
  const auto& [key, seen] = *state.sas.begin();
  const auto wanted = complete_sa();
  EXPECT_EQ(key, kSa);
  EXPECT_EQ(seen, wanted);
  EXPECT_EQ(seen.replay_window, wanted.replay_window);
  EXPECT_EQ(seen.soft_packets, wanted.soft_packets);
  EXPECT_EQ(seen.hard_packets, wanted.hard_packets);
  EXPECT_EQ(seen.hard_seconds, wanted.hard_seconds);
  EXPECT_EQ(seen.key, nullptr);
  ASSERT_TRUE(seen.counters.has_value());
  EXPECT_EQ(seen.counters->packets, 0U);
  EXPECT_EQ(seen.counters->received_sequence, 0U);
}

TEST_P(SaContract, GivesBackAnSaWithoutLimitsOverIpv6) {
  auto& driver = kernel->driver();
  const auto key = sa_key("2001:db8::1", 0xfffffffe);
  expect_done({apply_one(driver, sa_step(Verb::add, key, sa("2001:db8::2", 7)))});
  const auto state = observed(driver);
  ASSERT_TRUE(state.sas.contains(key));
  const auto& seen = state.sas.at(key);
  EXPECT_EQ(seen, sa("2001:db8::2", 7));
  EXPECT_EQ(seen.replay_window, 1024U);
  EXPECT_EQ(seen.soft_packets, 0U);
  EXPECT_EQ(seen.hard_packets, 0U);
  EXPECT_EQ(seen.hard_seconds, 0U);
  EXPECT_EQ(seen.encap, std::nullopt);
}

TEST_P(SaContract, RefusesASecondSaWithTheSameDestinationAndSpi) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, sa_step(Verb::add, kSa, sa(kThere, 7)))});
  for (const auto source : {kThere, std::string_view("203.0.113.1")}) {
    const auto result = apply_one(driver, sa_step(Verb::add, kSa, sa(source, 7, key_material(2))));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Errc::already_exists);
  }
  EXPECT_EQ(observed(driver).sas.at(kSa), sa(kThere, 7));
}

TEST_P(SaContract, RefusesToReplaceAnSa) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, sa_step(Verb::add, kSa, sa(kThere, 7)))});
  const auto result = apply_one(driver, sa_step(Verb::replace, kSa, sa("203.0.113.1", 7)));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Errc::invalid);
  EXPECT_EQ(observed(driver).sas.at(kSa), sa(kThere, 7));
}

TEST_P(SaContract, RefusesAnSaWithoutKeyMaterialOfTheRightSize) {
  for (const auto& key : {KeyMaterial(), std::make_shared<const Secret>(std::size_t{32})}) {
    const auto result = apply_one(kernel->driver(), sa_step(Verb::add, kSa, sa(kThere, 7, key)));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Errc::invalid);
  }
  EXPECT_THAT(observed(kernel->driver()).sas, IsEmpty());
}

TEST_P(SaContract, RemovesAnSaAndFindsItDoneToRemoveItAgain) {
  auto& driver = kernel->driver();
  expect_done({apply_one(driver, sa_step(Verb::add, kSa, sa(kThere, 7)))});
  expect_done({apply_one(driver, sa_step(Verb::remove, kSa, sa(kThere, 7)))});
  EXPECT_THAT(observed(driver).sas, IsEmpty());
  expect_done({apply_one(driver, sa_step(Verb::remove, kSa, sa(kThere, 7)))});
}

TEST_P(SaContract, AddsManySas) {
  constexpr std::uint32_t kCount = 150;
  std::vector<Step> steps;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    steps.push_back(sa_step(Verb::add, sa_key(kHere, 0x1000 + i / 2 * 2), sa(kThere, 7)));
  }
  const auto results = kernel->driver().apply(steps);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_EQ(results[i].has_value(), i % 2 == 0) << i;
  EXPECT_EQ(observed(kernel->driver()).sas.size(), kCount / 2);
}

}  // namespace
}  // namespace fabric::kernel::contract
