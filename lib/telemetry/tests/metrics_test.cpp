#include <fabric/telemetry/metrics.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::telemetry {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Metrics, RendersHelpTypeAndSortedSeries) {
  Registry registry;
  registry.gauge("fabric_tunnels", "Tunnels by state.", {{"state", "up"}}).set(2);
  registry.gauge("fabric_tunnels", "Tunnels by state.", {{"state", "down"}}).set(1);
  registry.counter("fabric_applies_total", "Scripts applied.").add();
  EXPECT_EQ(registry.render(),
            "# HELP fabric_applies_total Scripts applied.\n"
            "# TYPE fabric_applies_total counter\n"
            "fabric_applies_total 1\n"
            "# HELP fabric_tunnels Tunnels by state.\n"
            "# TYPE fabric_tunnels gauge\n"
            "fabric_tunnels{state=\"down\"} 1\n"
            "fabric_tunnels{state=\"up\"} 2\n");
}

TEST(Metrics, EscapesLabelValues) {
  Registry registry;
  registry.gauge("g", "Help.", {{"name", "a\"b\\c\nd"}}).set(1);
  EXPECT_THAT(registry.render(), HasSubstr(R"(g{name="a\"b\\c\nd"} 1)"));
}

TEST(Metrics, GivesTheSameSeriesForTheSameNameAndLabels) {
  Registry registry;
  registry.counter("c_total", "Help.", {{"a", "1"}}).add(2);
  registry.counter("c_total", "Help.", {{"a", "1"}}).add(3);
  EXPECT_EQ(registry.counter("c_total", "Help.", {{"a", "1"}}).value(), 5);
}

TEST(Metrics, CountersDoNotGoDown) {
  Registry registry;
  auto counter = registry.counter("c_total", "Help.");
  counter.add(2);
  counter.add(-1);
  EXPECT_EQ(counter.value(), 2);
}

TEST(Metrics, HistogramsCountIntoCumulativeBuckets) {
  Registry registry;
  auto histogram = registry.histogram("h_seconds", "Help.", {0.1, 1});
  histogram.observe(0.05);
  histogram.observe(0.5);
  histogram.observe(5);
  const auto text = registry.render();
  EXPECT_THAT(text, HasSubstr("# TYPE h_seconds histogram\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_count 3\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_sum 5.55\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{le=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("h_seconds_bucket{le=\"+Inf\"} 3\n"));
}

TEST(Metrics, ARemovedSeriesIsGoneAndItsHandleWritesToNothing) {
  Registry registry;
  auto gone = registry.gauge("g", "Help.", {{"cluster", "a"}});
  registry.gauge("g", "Help.", {{"cluster", "b"}}).set(2);
  registry.remove("g", {{"cluster", "a"}});
  gone.set(9);
  EXPECT_EQ(gone.value(), 0);
  EXPECT_THAT(registry.render(), Not(HasSubstr("cluster=\"a\"")));
  EXPECT_THAT(registry.render(), HasSubstr("cluster=\"b\""));
}

TEST(Metrics, ARemovedSeriesStartsAnewWhenAskedForAgain) {
  Registry registry;
  registry.counter("c_total", "Help.", {{"a", "1"}}).add(4);
  registry.remove("c_total", {{"a", "1"}});
  EXPECT_EQ(registry.counter("c_total", "Help.", {{"a", "1"}}).value(), 0);
}

TEST(Metrics, RemovesAllSeriesWithALabel) {
  Registry registry;
  registry.gauge("g", "Help.", {{"cluster", "a"}, {"family", "ipv4"}}).set(1);
  registry.counter("c_total", "Help.", {{"cluster", "a"}}).add();
  registry.counter("c_total", "Help.", {{"cluster", "b"}}).add();
  registry.remove_where("cluster", "a");
  EXPECT_THAT(registry.render(), Not(HasSubstr("cluster=\"a\"")));
  EXPECT_THAT(registry.render(), HasSubstr("cluster=\"b\""));
}

TEST(Metrics, RemovingWhatIsNotThereHasNoEffect) {
  Registry registry;
  registry.remove("none", {});
  registry.gauge("g", "Help.").set(1);
  registry.remove("g", {{"a", "b"}});
  EXPECT_THAT(registry.render(), HasSubstr("g 1\n"));
}

TEST(Metrics, HandlesOutliveTheRegistry) {
  Counter counter;
  {
    Registry registry;
    counter = registry.counter("c_total", "Help.");
  }
  counter.add();
  EXPECT_EQ(counter.value(), 0);
}

TEST(MetricsDeathTest, OneNameHasOneKind) {
  Registry registry;
  registry.counter("x", "Help.").add();
  EXPECT_DEATH(registry.gauge("x", "Help.").set(1), "assertion failed");
}

}  // namespace
}  // namespace fabric::telemetry
