#include <fabric/api/lease.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/controller/lease_elector.hpp>
#include <fabric/controller/lease_fsm.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/telemetry/log.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace fabric::controller {
namespace {

using std::chrono::seconds;
using Verdict = LeaseFsm::Verdict;

const TimePoint kWall{std::chrono::seconds(1'700'000'000)};

LeaseRecord held_by(const std::string& holder, const std::string& renewed, int duration = 15) {
  return LeaseRecord{holder, duration, "2020-01-01T00:00:00.000000Z", renewed, 3};
}

class LeaseFsmTest : public testing::Test {
 protected:
  static LeaseOptions options() {
    LeaseOptions out;
    out.identity = "me";
    return out;
  }

  void acquire() {
    ASSERT_EQ(fsm_.on_observed(std::nullopt, at(0)), Verdict::acquire);
    fsm_.on_written(fsm_.record_to_write(kWall), at(0));
  }

  static async::SteadyTime at(double value) {
    return async::SteadyTime{} +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(value));
  }

  LeaseFsm fsm_{options()};
};

TEST_F(LeaseFsmTest, TakesALeaseThatDoesNotExistOrWasReleased) {
  EXPECT_EQ(fsm_.on_observed(std::nullopt, at(0)), Verdict::acquire);
  const LeaseRecord fresh = fsm_.record_to_write(kWall);
  EXPECT_EQ(fresh, (LeaseRecord{"me", 15, "2023-11-14T22:13:20.000000Z", "2023-11-14T22:13:20.000000Z", 0}));
  EXPECT_EQ(fsm_.on_observed(held_by("", "x"), at(1)), Verdict::acquire);
  EXPECT_EQ(fsm_.record_to_write(kWall).transitions, 4);
}

TEST_F(LeaseFsmTest, CountsTheAgeOfAForeignRecordFromWhenItsChangeWasSeen) {
  // The times in the record are years old, and do not matter.
  EXPECT_EQ(fsm_.on_observed(held_by("other", "one"), at(100)), Verdict::follow);
  EXPECT_EQ(fsm_.on_observed(held_by("other", "one"), at(114.9)), Verdict::follow);
  EXPECT_EQ(fsm_.on_observed(held_by("other", "two"), at(114.95)), Verdict::follow) << "renewed";
  EXPECT_EQ(fsm_.on_observed(held_by("other", "two"), at(129)), Verdict::follow);
  EXPECT_EQ(fsm_.on_observed(held_by("other", "two"), at(130)), Verdict::acquire);
  EXPECT_EQ(fsm_.holder(), "other");
}

TEST_F(LeaseFsmTest, RespectsTheDurationThatTheHolderChose) {
  EXPECT_EQ(fsm_.on_observed(held_by("other", "one", 60), at(0)), Verdict::follow);
  EXPECT_EQ(fsm_.on_observed(held_by("other", "one", 60), at(59)), Verdict::follow);
  EXPECT_EQ(fsm_.on_observed(held_by("other", "one", 60), at(60)), Verdict::acquire);
}

TEST_F(LeaseFsmTest, RenewsWithoutChangingWhenItWasAcquired) {
  acquire();
  EXPECT_TRUE(fsm_.is_leader(at(1)));
  const LeaseRecord first = fsm_.record_to_write(kWall);
  const LeaseRecord renewed = fsm_.record_to_write(kWall + seconds(2));
  EXPECT_EQ(renewed.acquire_time, first.acquire_time);
  EXPECT_EQ(renewed.renew_time, "2023-11-14T22:13:22.000000Z");
  EXPECT_EQ(renewed.transitions, 0);
}

TEST_F(LeaseFsmTest, IsLostAtTheRenewDeadlineBeforeOthersMayTakeIt) {
  acquire();
  EXPECT_TRUE(fsm_.is_leader(at(9.99)));
  EXPECT_FALSE(fsm_.lost(at(9.99)));
  EXPECT_FALSE(fsm_.is_leader(at(10)));
  EXPECT_TRUE(fsm_.lost(at(10)));
  EXPECT_EQ(fsm_.leading_for(at(4)), seconds(6));
  EXPECT_EQ(fsm_.leading_for(at(10)), std::nullopt);
}

TEST_F(LeaseFsmTest, IsLostWhenSomebodyElseHoldsIt) {
  acquire();
  EXPECT_EQ(fsm_.on_observed(held_by("other", "x"), at(1)), Verdict::follow);
  EXPECT_FALSE(fsm_.is_leader(at(1)));
  EXPECT_EQ(fsm_.leading_for(at(1)), std::nullopt);
}

TEST_F(LeaseFsmTest, ReleasesWithoutAHolderAndWithAShortDuration) {
  acquire();
  const LeaseRecord released = fsm_.record_to_release(kWall);
  EXPECT_EQ(released.holder, "");
  EXPECT_EQ(released.duration_seconds, 1);
  fsm_.on_written(released, at(1));
  EXPECT_FALSE(fsm_.is_leader(at(1)));
}

TEST(LeaseOptionsCheck, RefusesTimesThatCannotWork) {
  struct Row {
    const char* name;
    const char* identity;
    int lease;
    int renew;
    int retry;
    bool valid;
  };

  for (const Row& row :
       {Row{"defaults", "me", 15'000, 10'000, 2'000, true}, Row{"no identity", "", 15'000, 10'000, 2'000, false},
        Row{"renewal as long as the lease", "me", 10'000, 10'000, 2'000, false},
        Row{"retry too near to the renewal", "me", 15'000, 2'400, 2'000, false},
        Row{"retry just below", "me", 15'000, 2'401, 2'000, true}, Row{"no retry", "me", 15'000, 10'000, 0, false}}) {
    const LeaseOptions options{row.identity, Duration(row.lease), Duration(row.renew), Duration(row.retry), true};
    EXPECT_EQ(validate(options).has_value(), row.valid) << row.name;
  }
}

class LeaseElectorTest : public testing::Test {
 protected:
  struct Candidate {
    std::unique_ptr<LeaseElector> elector;
    std::unique_ptr<async::TaskGroup> group;
    std::vector<bool> changes;
  };

  std::unique_ptr<Candidate> start(const std::string& identity, bool release = true) {
    LeaseOptions options;
    options.identity = identity;
    options.release_on_cancel = release;
    auto opened = LeaseElector::open(*client_, {"ns", "lock"}, options, runtime_);
    EXPECT_TRUE(opened) << opened.error().message();
    auto out = std::make_unique<Candidate>();
    out->elector = *std::move(opened);
    out->elector->on_change([changes = &out->changes](bool leader) { changes->push_back(leader); });
    out->group = std::make_unique<async::TaskGroup>(loop_.executor());
    out->group->spawn(identity, out->elector->run());
    loop_.settle();
    return out;
  }

  void stop(Candidate& candidate) {
    candidate.group->stop();
    loop_.settle();
    EXPECT_TRUE(candidate.group->running().empty());
  }

  api::Lease lease() { return server_.find<api::Lease>({"ns", "lock"}).value_or(api::Lease{}); }

  async::TestLoop loop_;
  telemetry::Registry metrics_;
  kube::fake::FakeApiServer server_{loop_.executor(), loop_.clock()};
  std::unique_ptr<kube::Client> client_ = server_.client(metrics_);
  Runtime runtime_{loop_.executor(), loop_.clock(), [] { return 0.5; }, metrics_};
};

TEST_F(LeaseElectorTest, OneLeadsUntilItReleases) {
  const auto a = start("a");
  const auto b = start("b");
  EXPECT_TRUE(a->elector->is_leader());
  EXPECT_FALSE(b->elector->is_leader());
  EXPECT_EQ(b->elector->holder(), "a");
  loop_.advance(seconds(120));
  EXPECT_TRUE(a->elector->is_leader());
  EXPECT_EQ(a->changes, (std::vector<bool>{true}));
  stop(*a);
  EXPECT_EQ(a->changes, (std::vector<bool>{true, false}));
  EXPECT_EQ(lease().spec.holder_identity, "");
  loop_.advance(seconds(3));
  EXPECT_TRUE(b->elector->is_leader());
  EXPECT_EQ(lease().spec.lease_transitions, 1);
  stop(*b);
}

TEST_F(LeaseElectorTest, ADeadLeaderIsFollowedAfterItsLease) {
  const auto a = start("a", false);
  const auto b = start("b");
  stop(*a);
  EXPECT_EQ(lease().spec.holder_identity, "a");
  loop_.advance(seconds(14));
  EXPECT_FALSE(b->elector->is_leader());
  loop_.advance(seconds(4));
  EXPECT_TRUE(b->elector->is_leader());
  stop(*b);
}

TEST_F(LeaseElectorTest, ALeaderThatCannotRenewStopsLeadingBeforeAnotherBegins) {
  const auto a = start("a");
  loop_.advance(seconds(20));
  const auto b = start("b");
  server_.intercept([](const http::Request& request) -> std::optional<Result<http::Response>> {
    if (request.method == http::Method::get || request.body.find(R"("holderIdentity":"a")") == std::string::npos)
      return std::nullopt;
    return http::Response{503, {}, {}};
  });
  bool a_stopped_first = false;
  b->elector->on_change([&](bool leader) { a_stopped_first = leader && !a->elector->is_leader(); });
  loop_.advance(seconds(11));
  EXPECT_FALSE(a->elector->is_leader());
  EXPECT_FALSE(b->elector->is_leader());
  loop_.advance(seconds(8));
  EXPECT_TRUE(b->elector->is_leader());
  EXPECT_TRUE(a_stopped_first);
  EXPECT_EQ(a->changes, (std::vector<bool>{true, false}));
  EXPECT_LE(server_.requests().size(), 80U) << "a loser does not ask in a hot loop";
  stop(*a);
  EXPECT_EQ(lease().spec.holder_identity, "b") << "who lost the lease does not release it";
  stop(*b);
}

TEST_F(LeaseElectorTest, AnUnreachableServerMakesNobodyLeader) {
  server_.set_unreachable(true);
  const log::Capture log;
  const auto a = start("a");
  std::vector<std::string> told;
  a->elector->on_served([&told](const std::string& failure) { told.push_back(failure); });
  loop_.advance(seconds(60));
  EXPECT_FALSE(a->elector->is_leader());
  EXPECT_THAT(log.text(), testing::HasSubstr(R"("level":"warn","message":"lease not renewed")"))
      << "who never leads is not silent";
  server_.set_unreachable(false);
  loop_.advance(seconds(3));
  EXPECT_TRUE(a->elector->is_leader());
  server_.set_unreachable(true);
  loop_.advance(seconds(3));
  EXPECT_THAT(told, testing::ElementsAre("", testing::HasSubstr("connection refused")));
  stop(*a);
}

TEST_F(LeaseElectorTest, AStandbyIsServedToo) {
  const auto a = start("a");
  const auto b = start("b");
  std::vector<std::string> told;
  b->elector->on_served([&told](const std::string& failure) { told.push_back(failure); });
  server_.set_unreachable(true);
  loop_.advance(seconds(3));
  server_.set_unreachable(false);
  loop_.advance(seconds(3));
  EXPECT_THAT(told, testing::ElementsAre(testing::HasSubstr("connection refused"), ""));
  EXPECT_FALSE(b->elector->is_leader());
  stop(*a);
  stop(*b);
}

TEST_F(LeaseElectorTest, OfTwoThatTakeAFreeLeaseAtOnceOneWins) {
  const auto a = start("a", false);
  stop(*a);
  loop_.advance(seconds(1));
  const auto b = start("b");
  const auto c = start("c");
  loop_.advance(seconds(40));
  EXPECT_NE(b->elector->is_leader(), c->elector->is_leader());
  stop(*b);
  stop(*c);
}

TEST_F(LeaseElectorTest, RefusesImpossibleOptions) {
  LeaseOptions options;
  EXPECT_EQ(LeaseElector::open(*client_, {"ns", "lock"}, options, runtime_).error().code, Errc::invalid);
}

}  // namespace
}  // namespace fabric::controller
