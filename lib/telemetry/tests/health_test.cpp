#include <fabric/telemetry/health.hpp>

#include <gtest/gtest.h>

namespace fabric::telemetry {
namespace {

TEST(Health, IsNotReadyBeforeAnythingWasDeclared) {
  EXPECT_FALSE(Health().ready());
}

TEST(Health, IsReadyOnlyWhenEveryConditionIs) {
  Health health;
  health.set("kernel", true);
  health.set("stores", false, "endpoints not synced");
  EXPECT_FALSE(health.ready());
  EXPECT_EQ(health.report(), "kernel ok\nstores waiting: endpoints not synced\n");
  health.set("stores", true);
  EXPECT_TRUE(health.ready());
}

TEST(Health, ForgetsARemovedCondition) {
  Health health;
  health.set("kernel", true);
  health.set("broker", false, "not joined");
  health.remove("broker");
  EXPECT_TRUE(health.ready());
  EXPECT_EQ(health.report(), "kernel ok\n");
}

}  // namespace
}  // namespace fabric::telemetry
