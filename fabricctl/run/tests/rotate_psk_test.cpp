#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"
#include "commands.hpp"

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using test::Commands;
using testing::AllOf;
using testing::HasSubstr;

class RotatePsk : public Commands {};

TEST_F(RotatePsk, RaisesTheNumberByOne) {
  server_.put(test::broker(3));
  EXPECT_EQ(run(RotatePskCommand{}).value(), Exit::done);
  EXPECT_EQ(server_.find<api::Fabric>({"default", "hub"})->spec.broker_config->psk_number, 4);
  EXPECT_THAT(out(), HasSubstr("Fabric default/hub: spec.brokerConfig.pskNumber is 4 now: PSK 4 replaces PSK 3"));
}

TEST_F(RotatePsk, IsRefusedWhileOneRuns) {
  server_.put(test::rotating_broker(2, {"west"}));
  EXPECT_EQ(run(RotatePskCommand{}).value(), Exit::not_done);
  EXPECT_THAT(err(), AllOf(HasSubstr("refused"), HasSubstr("waiting for west")));
  EXPECT_EQ(server_.writes(), 0U);
}

TEST_F(RotatePsk, IsRefusedWhenSomebodyElseWasFaster) {
  server_.put(test::broker(1));
  server_.intercept([&](const http::Request& request) -> std::optional<Result<http::Response>> {
    api::Fabric changed = test::broker(1);
    changed.metadata.annotations["somebody"] = "else";
    if (request.method == http::Method::patch) server_.put(changed);
    return std::nullopt;
  });
  EXPECT_EQ(run(RotatePskCommand{}).value(), Exit::not_done);
  EXPECT_THAT(err(), HasSubstr("run this again"));
  EXPECT_FALSE(server_.find<api::Fabric>({"default", "hub"})->spec.broker_config->psk_number);
}

TEST_F(RotatePsk, SaysForWhomItWaits) {
  server_.put(test::broker(1));
  start(RotatePskCommand{.wait = true, .timeout = 10min});
  EXPECT_THAT(out(), HasSubstr("the operator has not begun"));
  server_.put(test::rotating_broker(2, {"east", "west"}));
  loop_.advance(2s);
  EXPECT_EQ(out(), "PSK 2 replaces PSK 1: 1 of 3 clusters are ready, waiting for east, west\n");
  server_.put(test::rotating_broker(2, {"west"}));
  loop_.advance(2s);
  EXPECT_EQ(out(), "PSK 2 replaces PSK 1: 2 of 3 clusters are ready, waiting for west\n");
  api::Fabric over = test::broker(2);
  over.spec.broker_config->psk_number = 2;
  server_.put(over);
  loop_.advance(2s);
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->value(), Exit::done);
  EXPECT_EQ(out(), "PSK 2 is current\n");
}

TEST_F(RotatePsk, GivesUpWaitingButNotTheRotation) {
  server_.put(test::broker(1));
  start(RotatePskCommand{.wait = true, .timeout = 5s});
  server_.put(test::rotating_broker(2, {"west"}));
  loop_.advance(10s);
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->value(), Exit::not_done);
  EXPECT_THAT(err(), AllOf(HasSubstr("not finished after 5s"), HasSubstr("waiting for west"), HasSubstr("--status")));
}

TEST_F(RotatePsk, StatusChangesNothing) {
  server_.put(test::rotating_broker(2, {"west"}));
  EXPECT_EQ(run(RotatePskCommand{.status_only = true}).value(), Exit::not_done);
  EXPECT_THAT(out(), HasSubstr("waiting for west"));
  server_.put(test::broker(2));
  EXPECT_EQ(run(RotatePskCommand{.status_only = true}).value(), Exit::done);
  EXPECT_EQ(out(), "Fabric default/hub: PSK 2 is current\n");
  EXPECT_EQ(server_.writes(), 0U);
}

TEST_F(RotatePsk, AtAMemberNamesTheRightPlace) {
  server_.put(test::member());
  const auto done = run(RotatePskCommand{.ns = "default"});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), AllOf(HasSubstr("in namespace default"), HasSubstr("--context")));
}

}  // namespace
}  // namespace fabric::ctl
