#include "rekey_model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace fabric::gateway::model {
namespace {

/// A sanitized build visits fewer states in the same time.
#if defined(__has_feature) && __has_feature(address_sanitizer)
constexpr std::size_t kUsualStates = 20'000;
#else
constexpr std::size_t kUsualStates = 70'000;
#endif

/// FABRIC_MODEL_STATES raises the bound for a long run.
std::size_t max_states(std::size_t usual) {
  const char* given = std::getenv("FABRIC_MODEL_STATES");
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

bool is_long_run() {
  return std::getenv("FABRIC_MODEL_STATES") != nullptr;
}

Outcome explore_and_print(const char* name, const Bounds& bounds) {
  const auto start = std::chrono::steady_clock::now();
  auto outcome = explore(bounds);
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  fmt::print("{}: {} states{}, {} ms\n", name, outcome.states, outcome.exhausted ? ", all" : "", spent.count());
  for (const auto& step : outcome.trace)
    fmt::print("  {}\n", step);
  return outcome;
}

TEST(RekeyModel, NoPacketIsLostAndNoSaIsInstalledTwiceAtFirstContact) {
  const auto outcome = explore_and_print("first contact", {.rotations = 0});
  EXPECT_EQ(outcome.violation, "");
  EXPECT_TRUE(outcome.exhausted);
}

TEST(RekeyModel, NoPacketIsLostWhenBothRotate) {
  const auto outcome = explore_and_print(
      "one rotation each", {.rotations = 1, .plan_at_once = !is_long_run(), .max_states = max_states(kUsualStates)});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, NoPacketIsLostWhenBothRestartWithTheirKernelsIntact) {
  const auto outcome = explore_and_print(
      "one restart each",
      {.rotations = 0, .restarts = 1, .plan_at_once = !is_long_run(), .max_states = max_states(kUsualStates)});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, NoPacketIsLostWhenRotationsAndRestartsMix) {
  const auto outcome = explore_and_print(
      "one rotation and one restart each",
      {.rotations = 1, .restarts = 1, .plan_at_once = !is_long_run(), .max_states = max_states(kUsualStates)});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, NoPacketIsLostWhenANewPskArrivesAtEachOfTheTwo) {
  const auto outcome = explore_and_print("a new PSK at each", {.rotations = 0,
                                                               .psk_arrives = true,
                                                               .plan_at_once = !is_long_run(),
                                                               .max_states = max_states(kUsualStates / 2)});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, NoPacketIsLostWhenTheOldPskLeavesEachOfTheTwo) {
  const auto outcome = explore_and_print(
      "the old PSK leaves each",
      {.rotations = 0, .psk_leaves = true, .plan_at_once = !is_long_run(), .max_states = max_states(kUsualStates / 2)});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, NoPacketIsLostWhenThePskIsRotatedFromBeginningToEnd) {
  const auto outcome = explore_and_print("a whole rotation of PSKs", {.rotations = 0,
                                                                      .psk_arrives = true,
                                                                      .psk_leaves = true,
                                                                      .plan_at_once = !is_long_run(),
                                                                      .max_states = max_states(kUsualStates / 2)});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, AfterALossOfAllSasTheTunnelComesBackWithoutAnyKeyUsedTwice) {
  const auto outcome = explore_and_print("one flush each", {.rotations = 0,
                                                            .flushes = 1,
                                                            .plan_at_once = !is_long_run(),
                                                            .max_states = max_states(kUsualStates / 2),
                                                            .converge_every = 16});
  EXPECT_EQ(outcome.violation, "");
}

TEST(RekeyModel, AfterALossOfAllSasDuringARotationTheTunnelComesBack) {
  const auto outcome = explore_and_print("one flush and one rotation each", {.rotations = 1,
                                                                             .flushes = 1,
                                                                             .plan_at_once = !is_long_run(),
                                                                             .max_states = max_states(kUsualStates / 2),
                                                                             .converge_every = 16});
  EXPECT_EQ(outcome.violation, "");
}

void expect_clean_walks(const Bounds& bounds) {
  constexpr std::size_t kSteps = 160;
  const auto walks = static_cast<std::uint32_t>(max_states(4'000) / 200);
  for (std::uint32_t seed = 1; seed <= walks; ++seed) {
    const auto outcome = wander(bounds, seed, kSteps);
    ASSERT_EQ(outcome.violation, "") << "seed " << seed << "\n" << fmt::format("{}", fmt::join(outcome.trace, "\n"));
  }
}

TEST(RekeyModel, NoPacketIsLostOnLongRandomWalks) {
  expect_clean_walks({.rotations = 3, .restarts = 2});
}

TEST(RekeyModel, NoPacketIsLostOnLongRandomWalksThroughARotationOfPsks) {
  expect_clean_walks({.rotations = 1, .restarts = 1, .psk_arrives = true, .psk_leaves = true});
}

TEST(RekeyModel, TheTunnelComesBackAfterLongRandomWalksWithFlushes) {
  expect_clean_walks({.rotations = 2, .restarts = 1, .flushes = 2, .psk_arrives = true, .psk_leaves = true});
}

TEST(RekeyModel, FindsPublishingBeforeInstalling) {
  const auto outcome = explore_and_print("publishing before installing", {.mistake = Mistake::publish_before_install});
  EXPECT_NE(outcome.violation, "");
}

TEST(RekeyModel, FindsSwitchingWithoutProof) {
  const auto outcome = explore_and_print("switching without proof", {.mistake = Mistake::switch_without_proof});
  EXPECT_NE(outcome.violation, "");
}

TEST(RekeyModel, FindsDrainingWhatThePeerStillUses) {
  const auto outcome = explore_and_print("draining what is in use",
                                         {.rotations = 0, .restarts = 1, .mistake = Mistake::drain_while_in_use});
  EXPECT_NE(outcome.violation, "");
}

}  // namespace
}  // namespace fabric::gateway::model
