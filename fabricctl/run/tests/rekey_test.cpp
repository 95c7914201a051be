#include <fabric/api/names.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build.hpp"
#include "commands.hpp"

namespace fabric::ctl {
namespace {

using namespace std::chrono_literals;
using test::Commands;
using test::gateway;
using test::generation;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace names = api::names;

class Rekey : public Commands {
 protected:
  api::Gateway stored(const std::string& node) {
    return *server_.find<api::Gateway>({std::string(names::kOperatorNamespace), node});
  }

  std::string annotation(const std::string& node) {
    const api::Gateway found = stored(node);
    const std::string* value = found.metadata.annotation("fabric.tkestack.io/rekey");
    return value == nullptr ? "" : *value;
  }

  /// What the gateway agent of a node shows from now on.
  void show(const std::string& node, std::vector<api::KeyGeneration> generations) {
    api::Gateway changed = stored(node);
    changed.status.keys.emplace().generations = std::move(generations);
    server_.put(changed);
  }
};

TEST_F(Rekey, AnnotatesTheChosenGatewaysOnly) {
  server_.put(gateway("n1"));
  server_.put(gateway("n2"));
  EXPECT_EQ(run(RekeyCommand{.gateways = {"n2"}}).value(), Exit::done);
  EXPECT_THAT(annotation("n1"), IsEmpty());
  const std::string first = annotation("n2");
  EXPECT_THAT(first, Not(IsEmpty()));
  EXPECT_EQ(out(), "Gateway n2: asked for new keys\n");
  loop_.advance(5ms);
  EXPECT_EQ(run(RekeyCommand{.all = true}).value(), Exit::done);
  EXPECT_NE(annotation("n2"), first) << "each command is a new value";
  EXPECT_THAT(annotation("n1"), Not(IsEmpty()));
}

TEST_F(Rekey, WithoutAChoiceWritesNothing) {
  server_.put(gateway("n1"));
  const auto done = run(RekeyCommand{});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("there are: n1"));
  EXPECT_EQ(server_.writes(), 0U);
}

TEST_F(Rekey, WaitsUntilTheOlderKeysAreGone) {
  server_.put(gateway("n1", {generation("g1", 60min)}));
  start(RekeyCommand{.all = true, .wait = true, .timeout = 5min});
  loop_.advance(3s);
  EXPECT_FALSE(outcome_);
  show("n1", {generation("g1", 60min), generation("g2", 0min, "requested")});
  loop_.advance(2s);
  EXPECT_FALSE(outcome_);
  EXPECT_THAT(out(), HasSubstr("Gateway n1: generation g2"));
  server_.set_unreachable(true);
  loop_.advance(5s);
  EXPECT_FALSE(outcome_) << "an API server that is away for a while ends nothing";
  server_.set_unreachable(false);
  show("n1", {generation("g2", 1min, "requested")});
  loop_.advance(2s);
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->value(), Exit::done);
  EXPECT_EQ(out(), "Gateway n1: done, the older keys are gone\n");
}

TEST_F(Rekey, NamesWhatIsOpenWhenTimeIsUp) {
  server_.put(gateway("n1", {generation("g1", 60min)}));
  server_.put(gateway("n2", {generation("h1", 60min)}));
  start(RekeyCommand{.all = true, .wait = true, .timeout = 10s});
  show("n1", {generation("g1", 60min), generation("g2", 0min)});
  loop_.advance(12s);
  ASSERT_TRUE(outcome_);
  EXPECT_EQ(outcome_->value(), Exit::not_done);
  EXPECT_THAT(err(),
              AllOf(HasSubstr("after 10s"), HasSubstr("n1 (a peer may still use"), HasSubstr("n2 (no newer keys")));
}

TEST_F(Rekey, DoesNotWaitForAGatewayThatShowsNoKeys) {
  server_.put(gateway("n1"));
  const auto done = run(RekeyCommand{.all = true, .wait = true, .timeout = 10s});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("Gateway submariner-operator/n1: status.keys"));
  EXPECT_EQ(server_.writes(), 0U);
}

}  // namespace
}  // namespace fabric::ctl
