#include <fabric/async/testing.hpp>
#include <fabric/controller/controller.hpp>
#include <fabric/kube/status.hpp>
#include <fabric/telemetry/log.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <string>
#include <utility>

namespace fabric::controller {
namespace {

const kube::ObjectKey kKey{"ns", "a"};

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    loop_.group().spawn("worker", controller_.run());
    loop_.settle();
  }

  ~ControllerTest() override {
    loop_.group().stop();
    loop_.settle();
  }

  ControllerTest(const ControllerTest&) = delete;
  ControllerTest& operator=(const ControllerTest&) = delete;

  async::Task<Result<RequeueAfter>> reconcile(kube::ObjectKey key) {
    EXPECT_EQ(key, kKey);
    ++calls_;
    if (outcomes_.empty()) co_return RequeueAfter{};
    auto outcome = std::move(outcomes_.front());
    outcomes_.pop_front();
    co_return outcome;
  }

  void fails(Errc code, int times = 1) {
    for (int i = 0; i < times; ++i)
      outcomes_.emplace_back(std::unexpected(Error{code, "asked to fail", {}}));
  }

  void add() {
    controller_.queue().add(kKey);
    loop_.settle();
  }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  int calls_ = 0;
  std::deque<Result<RequeueAfter>> outcomes_;
  Controller controller_{{.name = "test", .limits = {}},
                         [this](kube::ObjectKey key) { return reconcile(std::move(key)); },
                         Runtime{loop_.executor(), loop_.clock(), [] { return 0.0; }, metrics_}};
};

TEST_F(ControllerTest, SuccessIsDoneOnce) {
  add();
  loop_.advance(std::chrono::hours(1));
  EXPECT_EQ(calls_, 1);
}

TEST_F(ControllerTest, ComesBackWhenAsked) {
  outcomes_.emplace_back(RequeueAfter{std::chrono::seconds(30)});
  add();
  loop_.advance(std::chrono::seconds(29));
  EXPECT_EQ(calls_, 1);
  loop_.advance(std::chrono::seconds(1));
  EXPECT_EQ(calls_, 2);
  loop_.advance(std::chrono::hours(1));
  EXPECT_EQ(calls_, 2);
}

TEST_F(ControllerTest, RetriesWithGrowingDelaysAndForgetsThemAfterSuccess) {
  fails(Errc::unavailable, 3);
  add();
  EXPECT_EQ(calls_, 1);
  loop_.advance(Duration(5));
  EXPECT_EQ(calls_, 2);
  loop_.advance(Duration(9));
  EXPECT_EQ(calls_, 2);
  loop_.advance(Duration(1));
  EXPECT_EQ(calls_, 3);
  loop_.advance(Duration(20));
  EXPECT_EQ(calls_, 4);
  EXPECT_EQ(controller_.queue().failures(kKey), 0);
}

TEST_F(ControllerTest, WhatCannotSucceedIsNotRetried) {
  for (const Errc code : {Errc::invalid, Errc::unsupported}) {
    calls_ = 0;
    fails(code);
    add();
    loop_.advance(std::chrono::hours(1));
    EXPECT_EQ(calls_, 1) << to_string(code);
  }
  add();
  EXPECT_EQ(calls_, 2) << "a change of the object is a new try";
}

TEST_F(ControllerTest, AReconcileThatGaveUpByItselfIsRetried) {
  fails(Errc::cancelled);
  add();
  loop_.advance(Duration(5));
  EXPECT_EQ(calls_, 2);
}

TEST_F(ControllerTest, WaitsAsLongAsTheServerAsks) {
  outcomes_.emplace_back(std::unexpected(kube::error_of_response(429, "apply", "", "10")));
  add();
  loop_.advance(Duration(9'999));
  EXPECT_EQ(calls_, 1);
  loop_.advance(Duration(1));
  EXPECT_EQ(calls_, 2);
}

TEST_F(ControllerTest, LogsAnErrorOncePerChangeAndItsEnd) {
  const log::Capture capture;
  fails(Errc::unavailable, 5);
  add();
  loop_.advance(std::chrono::seconds(10));
  const std::string text = capture.text();
  EXPECT_EQ(text.find("reconcile failed"), text.rfind("reconcile failed")) << text;
  EXPECT_NE(text.find("reconcile failed"), std::string::npos);
  EXPECT_NE(text.find("reconciled again"), std::string::npos) << text;
}

TEST_F(ControllerTest, CountsResults) {
  fails(Errc::unavailable);
  outcomes_.emplace_back(RequeueAfter{std::chrono::hours(1)});
  add();
  loop_.advance(std::chrono::seconds(1));
  const std::string text = metrics_.render();
  EXPECT_NE(text.find(R"(controller_runtime_reconcile_total{controller="test",result="error"} 1)"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(controller_runtime_reconcile_total{controller="test",result="requeue_after"} 1)"),
            std::string::npos);
}

TEST_F(ControllerTest, EndsWhenTheQueueIsShutDown) {
  controller_.queue().shut_down();
  loop_.settle();
  EXPECT_TRUE(loop_.group().running().empty());
  EXPECT_TRUE(loop_.group().outcome());
}

}  // namespace
}  // namespace fabric::controller
