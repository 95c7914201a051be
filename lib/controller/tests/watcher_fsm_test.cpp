#include <fabric/controller/watcher_fsm.hpp>
#include <fabric/kube/status.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fabric::controller {
namespace {

using std::chrono::seconds;
using Fsm = WatcherFsm;

json::Value object(const char* version) {
  return json::Object{{"metadata", json::Object{{"name", "a"}, {"resourceVersion", version}}}};
}

kube::Page page(std::size_t items, std::string version, std::string token = "") {
  kube::Page out{{}, std::move(version), std::move(token)};
  for (std::size_t i = 0; i < items; ++i)
    out.items.push_back(object("1"));
  return out;
}

class WatcherFsmTest : public testing::Test {
 protected:
  static Error error(Errc code) { return Error{code, "asked to fail", {}}; }

  /// Goes to the state "watching" from version 10.
  void watch() {
    fsm_.next();
    fsm_.on_page(page(1, "10"));
    fsm_.next();
    fsm_.on_watch_started(now_);
  }

  Duration waited() {
    const Fsm::Action action = fsm_.next();
    const auto* wait = std::get_if<Fsm::Wait>(&action);
    if (wait == nullptr) {
      ADD_FAILURE() << "expected a wait";
      return {};
    }
    fsm_.on_waited();
    return wait->delay;
  }

  bool lists() { return std::holds_alternative<Fsm::ListPage>(fsm_.next()); }

  std::string watches_from() {
    const Fsm::Action action = fsm_.next();
    const auto* start = std::get_if<Fsm::StartWatch>(&action);
    return start == nullptr ? "no watch" : start->resource_version;
  }

  double random_ = 1.0;
  async::SteadyTime now_{};
  Fsm fsm_{[this] { return random_; }, seconds(30)};
};

TEST_F(WatcherFsmTest, ListsAllPagesThenWatchesFromTheirVersion) {
  EXPECT_EQ(fsm_.next(), Fsm::Action(Fsm::ListPage{500, ""}));
  EXPECT_EQ(fsm_.on_page(page(2, "10", "t")), std::nullopt);
  EXPECT_EQ(fsm_.next(), Fsm::Action(Fsm::ListPage{500, "t"}));
  const auto all = fsm_.on_page(page(1, "10"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 3U);
  EXPECT_EQ(watches_from(), "10");
  fsm_.on_watch_started(now_);
  EXPECT_EQ(fsm_.next(), Fsm::Action(Fsm::ReadEvents{}));
}

TEST_F(WatcherFsmTest, WatchesForFiveToTenMinutes) {
  fsm_.next();
  fsm_.on_page(page(0, "10"));
  random_ = 0.0;
  EXPECT_EQ(std::get<Fsm::StartWatch>(fsm_.next()).timeout, seconds(300));
  random_ = 0.5;
  EXPECT_EQ(std::get<Fsm::StartWatch>(fsm_.next()).timeout, seconds(450));
}

TEST_F(WatcherFsmTest, GoesOnFromTheLastEventOrBookmark) {
  watch();
  fsm_.on_event({kube::WatchType::modified, object("11")});
  fsm_.on_event({kube::WatchType::bookmark, object("15")});
  now_ += seconds(400);
  fsm_.on_watch_ended(now_);
  EXPECT_EQ(watches_from(), "15");
}

TEST_F(WatcherFsmTest, AForgottenVersionListsAgainAtOnce) {
  watch();
  fsm_.on_watch_error(error(Errc::gone), now_);
  EXPECT_TRUE(lists());
}

TEST_F(WatcherFsmTest, AServerThatForgetsEverythingIsNotAskedInAHotLoop) {
  Duration total{};
  for (int i = 0; i < 5; ++i) {
    fsm_.next();
    fsm_.on_page(page(1, "10"));
    fsm_.next();
    fsm_.on_watch_error(error(Errc::gone), now_);
    const Fsm::Action action = fsm_.next();
    if (const auto* wait = std::get_if<Fsm::Wait>(&action)) total += wait->delay;
    fsm_.on_waited();
  }
  EXPECT_GE(total, seconds(10));
}

TEST_F(WatcherFsmTest, ACutWatchIsOpenedAgainFromTheSameVersion) {
  watch();
  fsm_.on_watch_error(error(Errc::unavailable), now_);
  EXPECT_EQ(waited(), Duration(800));
  EXPECT_EQ(watches_from(), "10");
}

TEST_F(WatcherFsmTest, OtherErrorsOfAWatchListAgainLater) {
  for (const Errc code : {Errc::forbidden, Errc::not_found, Errc::invalid, Errc::unauthorized}) {
    Fsm fsm([] { return 1.0; }, seconds(30));
    fsm.next();
    fsm.on_page(page(1, "10"));
    fsm.next();
    fsm.on_watch_error(error(code), now_);
    EXPECT_TRUE(std::holds_alternative<Fsm::Wait>(fsm.next())) << to_string(code);
    fsm.on_waited();
    EXPECT_TRUE(std::holds_alternative<Fsm::ListPage>(fsm.next())) << to_string(code);
  }
}

TEST_F(WatcherFsmTest, BacksOffExponentiallyUpToTheLongestWaitWithJitter) {
  std::vector<Duration> waits;
  for (int i = 0; i < 8; ++i) {
    fsm_.next();
    fsm_.on_list_error(error(Errc::unavailable));
    waits.push_back(waited());
  }
  using D = Duration;
  EXPECT_EQ(waits, (std::vector<D>{D(800), D(1600), D(3200), D(6400), D(12800), D(25600), D(30000), D(30000)}));
  random_ = 0.0;
  fsm_.next();
  fsm_.on_list_error(error(Errc::unavailable));
  EXPECT_EQ(waited(), D(15000)) << "half of the delay is random";
}

TEST_F(WatcherFsmTest, WaitsAtLeastAsLongAsTheServerAsks) {
  fsm_.next();
  fsm_.on_list_error(kube::error_of_response(429, "list", "", "20"));
  EXPECT_EQ(waited(), seconds(20));
  fsm_.next();
  fsm_.on_list_error(kube::error_of_response(429, "list", "", "1"));
  EXPECT_EQ(waited(), Duration(1600));
}

TEST_F(WatcherFsmTest, AnExpiredPageStartsOverWithoutPages) {
  fsm_.next();
  fsm_.on_page(page(2, "10", "t"));
  fsm_.next();
  fsm_.on_list_error(error(Errc::gone));
  EXPECT_EQ(fsm_.next(), Fsm::Action(Fsm::ListPage{0, ""}));
  const auto all = fsm_.on_page(page(4, "12"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 4U) << "items of the first try are forgotten";
  EXPECT_EQ(watches_from(), "12");
}

TEST_F(WatcherFsmTest, AVeryShortWatchWithoutEventsBacksOff) {
  watch();
  fsm_.on_watch_ended(now_ + Duration(999));
  EXPECT_EQ(waited(), Duration(800));
  EXPECT_EQ(watches_from(), "10");
  fsm_.on_watch_started(now_);
  fsm_.on_event({kube::WatchType::added, object("11")});
  fsm_.on_watch_ended(now_ + Duration(999));
  EXPECT_EQ(watches_from(), "11") << "an event proves that watching works";
}

TEST_F(WatcherFsmTest, ALongWatchOrAnEventForgivesEarlierFailures) {
  watch();
  for (int i = 0; i < 4; ++i) {
    fsm_.on_watch_error(error(Errc::unavailable), now_);
    waited();
    fsm_.next();
  }
  fsm_.on_watch_started(now_);
  fsm_.on_watch_error(error(Errc::unavailable), now_ + seconds(30));
  EXPECT_EQ(waited(), Duration(800));
}

}  // namespace
}  // namespace fabric::controller
