#include <fabric/gateway/sa_plan.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using crypto::Generation;
using crypto::InstanceId;
using netstate::SaKey;
using netstate::Spi;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const crypto::GatewayId kSelf{"a", "node-1"};
const crypto::GatewayId kPeer{"b", "node-1"};
const crypto::GatewayId kOther{"c", "node-1"};
const auto kLocal = net::IpAddress::v4(10, 0, 0, 1);
const auto kRemote = net::IpAddress::v4(10, 0, 0, 2);
const InstanceId kInstance({1});
const InstanceId kLaterInstance({2});
const netstate::Reqid kReqid(0x46000001);

/// The shell's loop over a kernel that is a map, with one peer.
class World {
 public:
  World() {
    in_.self = kSelf;
    in_.psks = {crypto::PskId{1, {}}};
    in_.now = TimePoint(1'000'000s);
    derive_ = [this](const PairId& pair) -> Result<PairSas> {
      if (!derivable_ || underivable.contains(pair)) return fail(Errc::invalid, "no PSK in common");
      static const auto kKey = std::make_shared<const Secret>(36);
      const auto low = static_cast<std::uint32_t>(pair.mine.value() << 8 | pair.theirs.value()) |
                       (pair.peer == kPeer ? 0U : 0x8000U);
      return PairSas{
          .inbound_spi = Spi(0x10000 + low), .outbound_spi = Spi(0x20000 + low), .inbound = kKey, .outbound = kKey};
    };
  }

  void show_peer(InstanceId instance, std::vector<Generation> generations, std::set<Generation> seen_mine = {}) {
    show(kPeer, instance, std::move(generations), std::move(seen_mine));
  }

  void show(const crypto::GatewayId& id, InstanceId instance, std::vector<Generation> generations,
            std::set<Generation> seen_mine = {}) {
    in_.peers[id] = {.reqid = kReqid,
                     .path = Path{.local = kLocal, .remote = kRemote, .encap = std::nullopt},
                     .instance = instance,
                     .generations = std::move(generations),
                     .seen_mine = std::move(seen_mine)};
  }

  PeerKeys& peer() { return in_.peers[kPeer]; }

  SaInputs& inputs() { return in_; }

  SaMemory& memory() { return memory_; }

  void advance(Duration by) { in_.now += by; }

  void make_underivable() { derivable_ = false; }

  SaPlan plan() const {
    auto inputs = in_;
    inputs.observed = tracker_observation();
    return plan_sas(inputs, memory_, derive_);
  }

  /// One pass: apply, remember, act.
  SaPlan pass() {
    in_.observed = tracker_.track(kernel_, in_.now);
    auto plan = plan_sas(in_, memory_, derive_);
    for (const auto& [key, sa] : plan.desired) {
      if (kernel_.contains(key)) continue;
      EXPECT_NE(sa.key, nullptr) << "an SA is wanted that is absent and must not be added";
      auto added = sa;
      added.key = nullptr;
      added.counters.emplace();
      kernel_.emplace(key, std::move(added));
    }
    std::erase_if(kernel_, [&](const auto& entry) { return !plan.desired.contains(entry.first); });
    memory_ = plan.memory;
    for (const auto& action : plan.actions)
      std::visit([this](const auto& a) { act(a); }, action);
    return plan;
  }

  /// Passes until nothing is left to do; returns the last plan.
  SaPlan settle() {
    for (int i = 0; i < 10; ++i) {
      const auto before = kernel_.size();
      auto plan = pass();
      if (plan.actions.empty() && before == kernel_.size()) return plan;
    }
    ADD_FAILURE() << "the plan does not settle";
    return {};
  }

  void packets(const SaKey& key, std::uint64_t count) { kernel_.at(key).counters->packets += count; }

  void rewind(const SaKey& key) { kernel_.at(key).counters->packets = 0; }

  void bytes(const SaKey& key, std::uint64_t count) { kernel_.at(key).counters->bytes += count; }

  void remove(const SaKey& key) { kernel_.erase(key); }

  void flush() { kernel_.clear(); }

  void adopt(const SaKey& key, net::IpAddress source) {
    netstate::Sa sa;
    sa.saddr = source;
    sa.reqid = kReqid;
    sa.counters.emplace();
    kernel_.emplace(key, sa);
  }

  std::vector<std::string> sas() const {
    std::vector<std::string> out;
    for (const auto& [key, sa] : kernel_)
      out.push_back(name(key));
    std::ranges::sort(out);
    return out;
  }

  static std::string name(const SaKey& key) {
    return fmt::format("{} {:x}", key.daddr == kLocal ? "in" : "out", key.spi.value() & 0xffff);
  }

  const std::optional<Publication>& published() const { return in_.published; }

  const std::vector<MyGeneration>& mine() const { return in_.mine; }

  std::vector<DrawReason> drawn;
  bool ignore_drops = false;
  bool broker_is_away = false;
  std::set<PairId> underivable;

 private:
  std::map<SaKey, ObservedSa> tracker_observation() const {
    auto copy = tracker_;
    return copy.track(kernel_, in_.now);
  }

  void act(const DrawGeneration& action) {
    drawn.push_back(action.reason);
    MyGeneration made;
    made.generation = Generation(next_++);
    made.drawn = in_.now;
    made.psks = in_.psks;
    made.reason = action.reason;
    made.losses = action.losses;
    in_.mine.push_back(made);
  }

  void act(const Publish& action) {
    if (!broker_is_away) in_.published = action.publication;
  }

  void act(const DropGeneration& action) {
    if (ignore_drops) return;
    std::erase_if(in_.mine, [&](const MyGeneration& mine) { return mine.generation == action.generation; });
  }

  SaInputs in_;
  SaMemory memory_;
  SaTracker tracker_;
  std::map<SaKey, netstate::Sa> kernel_;
  DerivePair derive_;
  bool derivable_ = true;
  std::uint64_t next_ = 1;
};

SaKey inbound(std::uint32_t mine, std::uint32_t theirs) {
  return {kLocal, Spi(0x10000 + (mine << 8 | theirs))};
}

SaKey outbound(std::uint32_t mine, std::uint32_t theirs) {
  return {kRemote, Spi(0x20000 + (mine << 8 | theirs))};
}

/// Both ends have their first generation and send with it.
World connected() {
  World world;
  world.settle();
  world.show_peer(kInstance, {Generation(1)});
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1)});
  world.settle();
  return world;
}

bool has(const SaPlan& plan, FindingKind kind) {
  return std::ranges::find(plan.findings, kind, &Finding::kind) != plan.findings.end();
}

TEST(SaPlan, DrawsAndPublishesAGenerationWithoutAnyPeer) {
  World world;
  world.settle();
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first));
  ASSERT_TRUE(world.published());
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(1)));
}

TEST(SaPlan, InstallsInboundOnSightAndOutboundOnProof) {
  World world;
  world.settle();
  world.show_peer(kInstance, {Generation(1)});
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101"));
  EXPECT_THAT(world.published()->seen, ElementsAre(crypto::Seen{kPeer, kInstance, Generation(1)}));
  world.show_peer(kInstance, {Generation(1)}, {Generation(1)});
  const auto plan = world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "out 101"));
  EXPECT_TRUE(plan.peers.at(kPeer).inbound);
  EXPECT_TRUE(plan.peers.at(kPeer).outbound);
}

TEST(SaPlan, APacketOnAnInboundSaIsProofToo) {
  World world;
  world.settle();
  world.show_peer(kInstance, {Generation(1)});
  world.settle();
  world.packets(inbound(1, 1), 1);
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "out 101"));
}

TEST(SaPlan, ProofOfAnEarlierInstanceCountsForNothing) {
  auto world = connected();
  world.show_peer(kLaterInstance, {Generation(9)});
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 109", "out 101")) << "the old outbound SA stays in use";
  world.show_peer(kLaterInstance, {Generation(9)}, {Generation(1)});
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 109", "out 109"));
  world.advance(31s);
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 109", "out 109")) << "the old inbound SA went when it was idle";
}

TEST(SaPlan, DoesNotPublishAGenerationBeforeItsInboundSasAreSeenInTheKernel) {
  auto world = connected();
  world.inputs().rotation_requested = world.inputs().now + 31s;
  world.advance(31s);
  world.pass();
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first, DrawReason::requested));
  world.pass();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 201", "out 101")) << "installed";
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(1))) << "and not published yet";
  world.pass();
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(1), Generation(2)));
}

TEST(SaPlan, RotatesDrainsAndDropsTheOldGeneration) {
  auto world = connected();
  world.advance(1h);
  world.settle();
  EXPECT_EQ(world.drawn.back(), DrawReason::age);
  world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 201", "out 201"));
  world.packets(inbound(1, 1), 5);
  world.advance(59s);
  world.settle();
  world.advance(2s);
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 201", "out 201")) << "used 2 s ago";
  world.advance(31s);
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 201", "out 201"));
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(2)));
  ASSERT_EQ(world.mine().size(), 1U);
}

TEST(SaPlan, ADroppedGenerationNeverComesBackEvenIfTheShellStillHoldsIt) {
  auto world = connected();
  world.show(kOther, kInstance, {Generation(1)}, {Generation(1)});
  world.settle();
  world.advance(1h);
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.show(kOther, kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.settle();
  world.advance(2min);
  world.ignore_drops = true;
  world.pass();
  world.pass();
  ASSERT_EQ(world.mine().size(), 2U);
  // A peer that restarted has proved nothing, and would hold up the drain if that were decided again.
  world.show(kOther, kLaterInstance, {Generation(9)});
  const auto plan = world.pass();
  EXPECT_FALSE(plan.desired.contains(inbound(1, 1))) << "the same key a second time";
  EXPECT_THAT(plan.actions, ::testing::Contains(Action(DropGeneration{Generation(1)})));
}

TEST(SaPlan, JitterMovesTheTimeOfRotation) {
  auto world = connected();
  world.inputs().mine.front().jitter = -0.15;
  world.advance(50min);
  EXPECT_EQ(world.plan().next_wake, world.inputs().now + 1min);
  world.advance(1min);
  world.pass();
  EXPECT_EQ(world.drawn.back(), DrawReason::age);
}

TEST(SaPlan, RotatesAfterManyPackets) {
  auto world = connected();
  world.advance(31s);
  world.packets(inbound(1, 1), std::uint64_t{1} << 32);
  world.pass();
  EXPECT_EQ(world.drawn.back(), DrawReason::packets);
}

TEST(SaPlan, RotatesWhenThePsksChange) {
  auto world = connected();
  world.advance(31s);
  world.inputs().psks.push_back({2, {}});
  world.pass();
  EXPECT_EQ(world.drawn.back(), DrawReason::psk_changed);
}

TEST(SaPlan, RotatesWhenThePathChangesAndKeepsTheOldOneUntilThen) {
  auto world = connected();
  world.advance(31s);
  const auto other = net::IpAddress::v4(10, 0, 0, 3);
  world.peer().path->remote = other;
  world.settle();
  EXPECT_EQ(world.drawn.back(), DrawReason::path_changed);
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 201", "out 101"));
  const auto drawn = world.drawn.size();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.peer().path->remote = other;
  world.settle();
  world.advance(10min);
  world.settle();
  EXPECT_EQ(world.drawn.size(), drawn) << "once";
}

TEST(SaPlan, NeverAddsALostSaAgainButRotates) {
  for (const auto& lost : {inbound(1, 1), outbound(1, 1)}) {
    SCOPED_TRACE(World::name(lost));
    auto world = connected();
    world.remove(lost);
    const auto plan = world.pass();
    EXPECT_FALSE(plan.desired.contains(lost));
    EXPECT_TRUE(has(plan, FindingKind::sa_lost));
    EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first)) << "it was drawn just now";
    EXPECT_EQ(plan.next_wake, world.inputs().now + 1s);
    world.advance(1s);
    world.settle();
    EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first, DrawReason::sa_lost));
    world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
    world.settle();
    world.advance(2min);
    world.settle();
    EXPECT_THAT(world.sas(), ElementsAre("in 201", "out 201"));
  }
}

/// When a generation is drawn if all SAs are removed again and again, as soon as they are there.
std::vector<Duration> waits_of_a_storm(World& world, int draws) {
  std::vector<Duration> waits;
  for (int i = 0; i < draws; ++i) {
    world.flush();
    const auto drawn = world.drawn.size();
    Duration waited{};
    for (; world.drawn.size() == drawn && waited < 2min; waited += 500ms) {
      if (waited > 0s) world.advance(500ms);
      world.pass();
      world.flush();
    }
    waits.push_back(waited - 500ms);
  }
  return waits;
}

TEST(SaPlan, DrawsSoonAfterALossAndMoreSlowlyEachTime) {
  auto world = connected();
  world.advance(1h);
  EXPECT_THAT(waits_of_a_storm(world, 8), ElementsAre(0s, 2s, 4s, 8s, 16s, 30s, 30s, 30s));
  world.advance(60s);
  EXPECT_THAT(waits_of_a_storm(world, 2), ElementsAre(::testing::Le(1s), 2s)) << "the newest one lived for long";
}

TEST(SaPlan, AStormOfLossesWithoutABrokerIsAnsweredSlowlyToo) {
  auto world = connected();
  world.broker_is_away = true;
  world.advance(1h);
  EXPECT_THAT(waits_of_a_storm(world, 6), ElementsAre(0s, 2s, 4s, 8s, 16s, 30s));
}

TEST(SaPlan, AFlushRightAfterARotationIsAnsweredWithinSeconds) {
  auto world = connected();
  world.advance(1h);
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.settle();
  ASSERT_THAT(world.sas(), ElementsAre("in 101", "in 201", "out 201"));
  world.flush();
  world.settle();
  world.advance(1s);
  world.settle();
  EXPECT_EQ(world.drawn.back(), DrawReason::sa_lost);
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(2), Generation(3)));
  EXPECT_THAT(world.sas(), ElementsAre("in 301"));
}

TEST(SaPlan, TheLossOfTheNewOutboundSaDuringADrainMakesRoomForAnotherGeneration) {
  auto world = connected();
  world.advance(1h);
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.settle();
  world.remove(outbound(2, 1));
  for (int i = 0; i < 5; ++i) {
    world.packets(inbound(2, 1), 1);
    world.settle();
    world.advance(1s);
  }
  EXPECT_EQ(world.drawn.back(), DrawReason::sa_lost);
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(2), Generation(3)));
}

TEST(SaPlan, AnUnpublishedGenerationThatLostItsSasDoesNotStopRotationForEver) {
  auto world = connected();
  world.broker_is_away = true;
  world.advance(1h);
  for (int i = 0; i < 4; ++i)
    world.pass();
  ASSERT_EQ(world.mine().size(), 2U);
  world.remove(inbound(2, 1));
  world.advance(10s);
  for (int i = 0; i < 4; ++i)
    world.pass();
  EXPECT_EQ(world.mine().back().generation, Generation(3));
  world.broker_is_away = false;
  world.settle();
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(1), Generation(3)));
}

TEST(SaPlan, AnOldGenerationWithoutACommonPskDoesNotHideThatTheNewOneIsReady) {
  auto world = connected();
  world.advance(1h);
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1), Generation(2)});
  world.settle();
  // The peer's next record lists a PSK that my first one does not, and the one that they share was dropped.
  world.underivable = {{.peer = kPeer, .instance = kInstance, .theirs = Generation(2), .mine = Generation(1)}};
  world.show_peer(kInstance, {Generation(1), Generation(2)}, {Generation(1), Generation(2)});
  world.settle();
  EXPECT_TRUE(world.published()->seen.contains({kPeer, kInstance, Generation(2)}));
  // Not so for the newest one, with which the peer would send.
  world.underivable = {{.peer = kPeer, .instance = kInstance, .theirs = Generation(3), .mine = Generation(2)}};
  world.show_peer(kInstance, {Generation(2), Generation(3)}, {Generation(1), Generation(2)});
  world.settle();
  EXPECT_FALSE(world.published()->seen.contains({kPeer, kInstance, Generation(3)}));
}

TEST(SaPlan, ADroppedPskLeavesPairsInPlaceThatKnowNoOther) {
  auto world = connected();
  world.inputs().psks = {{2, {}}};
  world.underivable = {{.peer = kPeer, .instance = kInstance, .theirs = Generation(1), .mine = Generation(2)}};
  world.advance(31s);
  for (int i = 0; i < 60; ++i) {
    world.packets(inbound(1, 1), 1);
    world.advance(1min);
    world.settle();
  }
  EXPECT_EQ(world.drawn.back(), DrawReason::psk_changed);
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "out 101")) << "the peer goes on until it has a record that lists it";
  EXPECT_TRUE(has(world.plan(), FindingKind::not_derivable));
  world.show_peer(kInstance, {Generation(1), Generation(2)}, {Generation(1), Generation(2)});
  world.underivable.insert({.peer = kPeer, .instance = kInstance, .theirs = Generation(2), .mine = Generation(1)});
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 202", "out 202"));
}

TEST(SaPlan, RotatesAfterManyBytes) {
  auto world = connected();
  world.inputs().limits.soft_bytes = 1'000'000;
  world.advance(31s);
  world.bytes(outbound(1, 1), 999'999);
  world.pass();
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first));
  world.bytes(outbound(1, 1), 1);
  world.pass();
  EXPECT_EQ(world.drawn.back(), DrawReason::bytes);
  EXPECT_EQ(world.pass().desired.at(inbound(2, 1)).soft_bytes, 1'000'000U);
}

TEST(SaPlan, RotatesWhenTheCounterOfAnSaWentBack) {
  auto world = connected();
  world.packets(inbound(1, 1), 10);
  world.settle();
  world.rewind(inbound(1, 1));
  world.advance(31s);
  const auto plan = world.pass();
  EXPECT_TRUE(has(plan, FindingKind::sa_lost));
  EXPECT_EQ(world.drawn.back(), DrawReason::sa_lost);
}

TEST(SaPlan, DrawsAnewWhenAnUnpublishedGenerationClashes) {
  World world;
  world.adopt(inbound(1, 1), net::IpAddress::v4(10, 9, 9, 9));
  world.show_peer(kInstance, {Generation(1)});
  world.settle();
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first, DrawReason::first));
  EXPECT_THAT(world.published()->generations, ElementsAre(Generation(2)));
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "in 201"));
}

TEST(SaPlan, RotatesWhenARecordOfAPeerClashesWithAPublishedGeneration) {
  World world;
  world.settle();
  world.adopt(inbound(1, 1), net::IpAddress::v4(10, 9, 9, 9));
  world.advance(31s);
  world.show_peer(kInstance, {Generation(1)});
  world.settle();
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first, DrawReason::spi_clash));
}

TEST(SaPlan, AForeignSaThatTheKernelReportsIsAClash) {
  World world;
  world.settle();
  world.advance(31s);
  world.show_peer(kInstance, {Generation(1)});
  auto plan = world.plan();
  ASSERT_TRUE(plan.desired.contains(inbound(1, 1)));
  note_failed_add(plan.memory, inbound(1, 1), true);
  world.memory() = plan.memory;
  world.settle();
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first, DrawReason::spi_clash));
}

TEST(SaPlan, ARefusedAddIsTriedAgain) {
  World world;
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1)});
  auto plan = world.plan();
  ASSERT_TRUE(plan.desired.contains(outbound(1, 1)));
  note_failed_add(plan.memory, inbound(1, 1), false);
  note_failed_add(plan.memory, outbound(1, 1), false);
  world.memory() = plan.memory;
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in 101", "out 101"));
  EXPECT_THAT(world.drawn, ElementsAre(DrawReason::first));
}

TEST(SaPlan, KeepsAdoptedSasUntilThePeerProvedTheNewInstance) {
  World world;
  const SaKey old_in{kLocal, Spi(0x1f0f0)};
  const SaKey old_out{kRemote, Spi(0x2f0f0)};
  world.adopt(old_in, kRemote);
  world.adopt(old_out, kLocal);
  world.settle();
  EXPECT_THAT(world.sas(), ElementsAre("in f0f0", "out f0f0")) << "no peer is known";
  world.show_peer(kInstance, {Generation(1)});
  world.advance(1h);
  const auto plan = world.settle();
  EXPECT_TRUE(plan.peers.at(kPeer).outbound) << "the adopted SA carries traffic";
  world.show_peer(kInstance, {Generation(1)}, {world.mine().back().generation});
  world.packets(old_in, 1);
  world.settle();
  EXPECT_THAT(world.sas(), ::testing::Contains("in f0f0")) << "the peer still uses it";
  EXPECT_THAT(world.sas(), ::testing::Not(::testing::Contains("out f0f0")));
  world.advance(31s);
  world.settle();
  EXPECT_THAT(world.sas(), ::testing::Not(::testing::Contains("in f0f0")));
}

TEST(SaPlan, ADeletedPeerKeepsItsSasAndALeavingOneDoesNot) {
  auto world = connected();
  world.peer().leaving = true;
  const auto plan = world.settle();
  EXPECT_THAT(world.sas(), IsEmpty());
  EXPECT_THAT(world.published()->seen, IsEmpty());
}

TEST(SaPlan, ASilentPeerDoesNotHoldUpTheDrain) {
  auto world = connected();
  world.advance(1h);
  world.settle();
  world.advance(4min);
  world.settle();
  EXPECT_EQ(world.mine().size(), 2U) << "it may still come back";
  world.advance(2min);
  world.settle();
  EXPECT_EQ(world.mine().size(), 1U);
}

TEST(SaPlan, ASilentPeerHasTheTimeOfARotationWhileOnlyTheTunnelCarriesANewGeneration) {
  auto world = connected();
  world.advance(1h);
  world.inputs().tunnel_only = {Generation(2)};
  world.settle();
  world.advance(59min);
  world.settle();
  EXPECT_EQ(world.mine().size(), 2U) << "it could not hear of the new one when it comes back";
  world.advance(2min);
  world.settle();
  EXPECT_EQ(world.mine().front().generation, Generation(2)) << "others do not wait for it for ever";
}

TEST(SaPlan, APeerThatAnswersAndDoesNotProveHoldsUpTheDrainUntilTheHardLifetime) {
  auto world = connected();
  world.advance(1h);
  world.settle();
  for (int i = 0; i < 22; ++i) {
    world.advance(1h);
    world.packets(inbound(1, 1), 1);
    world.settle();
  }
  EXPECT_EQ(world.mine().size(), 2U);
  EXPECT_TRUE(has(world.plan(), FindingKind::old_generation));
  world.advance(1h);
  world.packets(inbound(1, 1), 1);
  world.settle();
  EXPECT_EQ(world.mine().front().generation, Generation(2));
}

TEST(SaPlan, APeerWithoutPathOrKeysIsAFindingAndHoldsUpNobody) {
  World world;
  world.show_peer(kInstance, {Generation(1)});
  world.peer().path.reset();
  EXPECT_TRUE(has(world.settle(), FindingKind::no_path));
  EXPECT_TRUE(world.published());
  world.show_peer(kInstance, {Generation(1)});
  world.make_underivable();
  EXPECT_TRUE(has(world.settle(), FindingKind::not_derivable));
  EXPECT_THAT(world.published()->seen, IsEmpty());
}

TEST(SaPlan, EncapsulationPortsAreSwappedForInboundSas) {
  World world;
  world.settle();
  world.show_peer(kInstance, {Generation(1)}, {Generation(1)});
  world.peer().path->encap = netstate::UdpEncap{.sport = 4500, .dport = 4501};
  const auto plan = world.plan();
  EXPECT_EQ(plan.desired.at(inbound(1, 1)).encap, (netstate::UdpEncap{.sport = 4501, .dport = 4500}));
  EXPECT_EQ(plan.desired.at(outbound(1, 1)).encap, (netstate::UdpEncap{.sport = 4500, .dport = 4501}));
}

TEST(SaPlan, APlanThatIsRepeatedChangesNothing) {
  auto world = connected();
  const auto plan = world.plan();
  EXPECT_THAT(plan.actions, IsEmpty());
  EXPECT_EQ(plan.memory, world.memory());
  for (const auto& [key, sa] : plan.desired)
    EXPECT_EQ(sa.key, nullptr);
}

TEST(SaTracker, IdleCountsFromTheLastPacketOrTheFirstSight) {
  SaTracker tracker;
  netstate::Sa sa;
  sa.counters.emplace().packets = 5;
  const SaKey key{kLocal, Spi(0x1000)};
  const TimePoint start(1'000s);
  EXPECT_EQ(tracker.track({{key, sa}}, start).at(key).idle, 0s);
  EXPECT_EQ(tracker.track({{key, sa}}, start + 10s).at(key).idle, 10s);
  sa.counters->packets = 6;
  EXPECT_EQ(tracker.track({{key, sa}}, start + 20s).at(key).idle, 0s);
  sa.counters->packets = 2;
  EXPECT_TRUE(tracker.track({{key, sa}}, start + 21s).at(key).rewound);
  EXPECT_TRUE(tracker.track({}, start + 22s).empty());
  EXPECT_FALSE(tracker.track({{key, sa}}, start + 23s).at(key).rewound) << "forgotten with the SA";
}

}  // namespace
}  // namespace fabric::gateway
