#include <fabric/gateway/tunnel_schedule.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr async::SteadyTime kStart{1h};
const crypto::GatewayId kPeer{"b", "n1"};
const crypto::GatewayId kOther{"c", "n1"};

TunnelTarget target(std::uint64_t counter = 10) {
  return {.instance = crypto::InstanceId({1}),
          .address = net::IpAddress::v4(10, 2, 0, 1),
          .wording = 1,
          .seen = {},
          .counter = counter};
}

Receipt receipt(std::uint64_t counter = 10) {
  return {.from = kPeer, .instance = crypto::InstanceId({1}), .owner = {"a", "n1"}, .counter = counter};
}

TEST(TunnelSchedule, SendsAtOnceAndThenWithGrowingPauses) {
  TunnelSchedule schedule;
  schedule.set_targets({{kPeer, target()}}, kStart);
  EXPECT_THAT(schedule.take_due(kStart, 9, 1.0), ElementsAre(kPeer));
  std::vector<async::SteadyTime> times{kStart};
  for (int i = 0; i < 9; ++i) {
    const auto next = schedule.next().value();
    EXPECT_THAT(schedule.take_due(next - 1ms, 9, 1.0), IsEmpty());
    EXPECT_THAT(schedule.take_due(next, 9, 1.0), ElementsAre(kPeer));
    EXPECT_GE(next - times.back(), 1s);
    EXPECT_LE(next - times.back(), 60s);
    times.push_back(next);
  }
  EXPECT_EQ(times.back() - times[times.size() - 2], 60s) << "the pauses stop growing";
}

TEST(TunnelSchedule, AReceiptEndsIt) {
  TunnelSchedule schedule;
  schedule.set_targets({{kPeer, target()}}, kStart);
  EXPECT_EQ(schedule.unconfirmed(), 1U);
  schedule.note(receipt());
  EXPECT_EQ(schedule.unconfirmed(), 0U);
  EXPECT_EQ(schedule.next(), std::nullopt);
  EXPECT_THAT(schedule.take_due(kStart + 24h, 9, 0.5), IsEmpty());
}

TEST(TunnelSchedule, ReceiptsThatProveNothingAreIgnored) {
  struct Case {
    const char* name;
    Receipt receipt;
  };

  auto instance = receipt();
  instance.instance = crypto::InstanceId({2});
  auto stranger = receipt();
  stranger.from = kOther;
  for (const auto& c :
       {Case{"an older announcement", receipt(9)}, Case{"another instance", instance}, Case{"no target", stranger}}) {
    TunnelSchedule schedule;
    schedule.set_targets({{kPeer, target()}}, kStart);
    schedule.note(c.receipt);
    EXPECT_EQ(schedule.unconfirmed(), 1U) << c.name;
  }
}

TEST(TunnelSchedule, WhatConcernsAPeerIsSentAnewAndNothingElse) {
  struct Case {
    const char* name;
    std::function<void(TunnelTarget&)> change;
    bool again;
  };

  const auto seen = crypto::Seen{kPeer, crypto::InstanceId({1}), crypto::Generation(5)};
  const std::vector<Case> cases{
      {"another wording", [](auto& t) { t.wording = 2; }, true},
      {"what is seen of it", [&](auto& t) { t.seen = {seen}; }, true},
      {"another instance", [](auto& t) { t.instance = crypto::InstanceId({2}); }, true},
      {"only a counter", [](auto& t) { t.counter = 11; }, false},
      {"only an address", [](auto& t) { t.address = net::IpAddress::v4(10, 2, 0, 2); }, false},
  };
  for (const auto& c : cases) {
    TunnelSchedule schedule;
    schedule.set_targets({{kPeer, target()}}, kStart);
    schedule.note(receipt());
    auto changed = target(11);
    c.change(changed);
    schedule.set_targets({{kPeer, changed}}, kStart);
    EXPECT_THAT(schedule.take_due(kStart, 9, 0.5), SizeIs(c.again ? 1 : 0)) << c.name;
  }
}

TEST(TunnelSchedule, ALaterCounterConfirmsTheSameMessage) {
  TunnelSchedule schedule;
  schedule.set_targets({{kPeer, target(10)}}, kStart);
  schedule.set_targets({{kPeer, target(12)}}, kStart);
  schedule.note(receipt(10));
  EXPECT_EQ(schedule.unconfirmed(), 0U) << "counter 10 said the same to this peer";
}

TEST(TunnelSchedule, ANewAddressIsTriedAtOnce) {
  TunnelSchedule schedule;
  schedule.set_targets({{kPeer, target()}}, kStart);
  EXPECT_THAT(schedule.take_due(kStart, 9, 0.5), SizeIs(1));
  auto moved = target();
  moved.address = net::IpAddress::v4(10, 2, 0, 2);
  schedule.set_targets({{kPeer, moved}}, kStart);
  EXPECT_THAT(schedule.take_due(kStart, 9, 0.5), SizeIs(1));
}

TEST(TunnelSchedule, ABurstIsBoundedAndNobodyStarves) {
  TunnelSchedule schedule;
  std::map<crypto::GatewayId, TunnelTarget> targets;
  for (int i = 0; i < 10; ++i)
    targets.emplace(crypto::GatewayId{fmt::format("c{}", i), "n1"}, target());
  schedule.set_targets(targets, kStart);
  std::set<crypto::GatewayId> served;
  for (int round = 0; round < 4; ++round) {
    const auto burst = schedule.take_due(kStart + round * 100ms, 3, 0.5);
    EXPECT_LE(burst.size(), 3U);
    served.insert(burst.begin(), burst.end());
  }
  EXPECT_THAT(served, SizeIs(10));
}

TEST(TunnelSchedule, APeerThatIsGoneIsForgotten) {
  TunnelSchedule schedule;
  schedule.set_targets({{kPeer, target()}}, kStart);
  schedule.set_targets({}, kStart);
  EXPECT_EQ(schedule.unconfirmed(), 0U);
  EXPECT_EQ(schedule.target(kPeer), nullptr);
}

TEST(TokenBucket, GivesItsBurstAndThenItsRate) {
  TokenBucket bucket(2, 4);
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(bucket.take(kStart));
  EXPECT_FALSE(bucket.take(kStart));
  EXPECT_TRUE(bucket.take(kStart + 500ms));
  EXPECT_FALSE(bucket.take(kStart + 500ms));
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(bucket.take(kStart + 1h)) << "a long rest fills it no higher than the burst";
  EXPECT_FALSE(bucket.take(kStart + 1h));
}

}  // namespace
}  // namespace fabric::gateway
