#include <fabric/api/condition.hpp>

#include <gtest/gtest.h>

namespace fabric::api {
namespace {

TimePoint at(int seconds) {
  return TimePoint(std::chrono::seconds(seconds));
}

Condition condition(ConditionStatus status, std::string message) {
  return {.type = "X",
          .status = status,
          .observed_generation = 1,
          .last_transition_time = {},
          .reason = "R",
          .message = std::move(message)};
}

TEST(SetCondition, MovesTheTransitionTimeOnlyWhenTheStatusChanges) {
  std::vector<Condition> conditions;
  EXPECT_TRUE(set_condition(conditions, condition(ConditionStatus::no, "a"), at(1)));
  EXPECT_FALSE(set_condition(conditions, condition(ConditionStatus::no, "a"), at(2)));
  EXPECT_TRUE(set_condition(conditions, condition(ConditionStatus::no, "b"), at(3)));
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_EQ(conditions[0].message, "b");
  EXPECT_EQ(conditions[0].last_transition_time, at(1));
  EXPECT_TRUE(set_condition(conditions, condition(ConditionStatus::yes, "b"), at(4)));
  EXPECT_EQ(conditions[0].last_transition_time, at(4));
  EXPECT_TRUE(is_true(conditions, "X"));
  EXPECT_FALSE(is_true(conditions, "Y"));
}

TEST(SetProgress, KeepsReconcilingAndStalledOnlyWhileTheyHold) {
  std::vector<Condition> conditions;
  EXPECT_TRUE(set_progress(conditions, Progress::reconciling, "Joining", "waiting", 1, at(1)));
  EXPECT_FALSE(is_true(conditions, kReady));
  EXPECT_TRUE(is_true(conditions, kReconciling));
  EXPECT_FALSE(set_progress(conditions, Progress::reconciling, "Joining", "waiting", 1, at(2)));
  EXPECT_TRUE(set_progress(conditions, Progress::stalled, "Refused", "why", 2, at(3)));
  EXPECT_EQ(find_condition(conditions, kReconciling), nullptr);
  EXPECT_TRUE(is_true(conditions, kStalled));
  EXPECT_TRUE(set_progress(conditions, Progress::ready, "Joined", "", 2, at(4)));
  ASSERT_EQ(conditions.size(), 1U);
  EXPECT_TRUE(is_true(conditions, kReady));
  EXPECT_EQ(conditions[0].last_transition_time, at(4));
}

TEST(Condition, IsWrittenWithEveryFieldThatTheApiServerRequires) {
  std::vector<Condition> conditions;
  set_condition(conditions, condition(ConditionStatus::unknown, ""), at(0));
  EXPECT_EQ(json::encode(conditions[0]),
            R"({"lastTransitionTime":"1970-01-01T00:00:00Z","message":"","observedGeneration":1,"reason":"R",)"
            R"("status":"Unknown","type":"X"})");
}

TEST(Condition, IsReadFromANodeWithoutTheOptionalFields) {
  const auto read = json::decode<Condition>(R"({"type":"Ready","status":"Later"})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, ConditionStatus::unknown);
}

}  // namespace
}  // namespace fabric::api
