#include <fabric/async/testing.hpp>
#include <fabric/async/timeout.hpp>

#include <gmock/gmock.h>

#include <numeric>

#include <netinet/udp.h>

#include "build.hpp"
#include "network.hpp"
#include "real_kernel.hpp"

namespace fabric::kernel {
namespace {

using namespace netstate;
using netstate::test::block;
using netstate::test::esp;
using netstate::test::key_material;
using netstate::test::policy_key;
using netstate::test::sa;
using netstate::test::sa_key;

namespace contract_tests {
using namespace contract;
INSTANTIATE_TEST_SUITE_P(Esp, PolicyContract, testing::Values(real_kernel()), name_of);
INSTANTIATE_TEST_SUITE_P(Esp, SaContract, testing::Values(real_kernel()), name_of);
}  // namespace contract_tests

constexpr std::uint16_t kPort = 7000;
/// A limit for what comes at once, so that a defect fails instead of hanging.
constexpr Duration kPatience{5000};
constexpr std::uint32_t kCluster = 7;

/// One side of a tunnel.
struct Side {
  std::string outer;
  std::string prefix4, prefix6;
  std::string inner4, inner6;
  std::string marker4;  ///< Another address behind this side.
  std::string outer6;
};

const Side kA{"192.0.2.1", "10.1.0.0/16", "fd01::/48", "10.1.0.1", "fd01::1", "10.1.0.2", "fd00:ee::1"};
const Side kB{"192.0.2.2", "10.2.0.0/16", "fd02::/48", "10.2.0.1", "fd02::1", "10.2.0.2", "fd00:ee::2"};

/// The block policies of a gateway for what is behind the other side.
void add_blocks(State& state, const Side& there) {
  state.policies[policy_key(Direction::out, "0.0.0.0/0", there.prefix4)] = block();
  state.policies[policy_key(Direction::out, "::/0", there.prefix6)] = block();
  for (const auto direction : {Direction::in, Direction::fwd}) {
    state.policies[policy_key(direction, there.prefix4, "0.0.0.0/0")] = block();
    state.policies[policy_key(direction, there.prefix6, "::/0")] = block();
  }
}

/// All policies of a gateway, without SAs.
State policies(const Side& here, const Side& there) {
  State state;
  add_blocks(state, there);
  state.policies[policy_key(Direction::out, here.prefix4, there.prefix4)] = esp(here.outer, there.outer, kCluster);
  state.policies[policy_key(Direction::out, here.prefix6, there.prefix6)] = esp(here.outer, there.outer, kCluster);
  for (const auto direction : {Direction::in, Direction::fwd}) {
    state.policies[policy_key(direction, there.prefix4, here.prefix4)] = esp("0.0.0.0", "0.0.0.0", kCluster);
    state.policies[policy_key(direction, there.prefix6, here.prefix6)] = esp("0.0.0.0", "0.0.0.0", kCluster);
  }
  return state;
}

/// Two gateways in two namespaces, joined by a wire. A test stays on side A unless it says otherwise.
class EspTraffic : public test::NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    peer = std::make_unique<test::Namespace>(make_peer());
    home.enter();
    a = prepare_side(kA, kB);
    peer->enter();
    b = prepare_side(kB, kA);
    in_b4 = std::make_unique<test::UdpSocket>(kB.inner4, kPort);
    in_b6 = std::make_unique<test::UdpSocket>(kB.inner6, kPort);
    home.enter();
    from_a4 = std::make_unique<test::UdpSocket>(kA.inner4);
    from_a6 = std::make_unique<test::UdpSocket>(kA.inner6);
    marker = std::make_unique<test::UdpSocket>(kA.marker4);
  }

  static std::unique_ptr<XfrmDriver> prepare_side(const Side& here, const Side& there) {
    test::run(
        fmt::format("ip addr add {0}/32 dev lo; ip addr add {1}/32 dev lo; ip addr add {2}/128 dev lo nodad; "
                    "ip route add {3} via {4} src {0}; ip -6 route add {5} via {6} src {2}",
                    here.inner4, here.marker4, here.inner6, there.prefix4, there.outer, there.prefix6, there.outer6));
    return XfrmDriver::open().value();
  }

  /// The wire carries packets in clear, and addresses of the link layer are known.
  void expect_clear_path() {
    EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
    ASSERT_EQ(in_b4->receive(), kA.inner4);
    EXPECT_TRUE(from_a6->send(kB.inner6, kPort));
    ASSERT_EQ(in_b6->receive(), kA.inner6);
  }

  /// A packet in clear, sent now, is the first to arrive: all before it were dropped.
  void expect_nothing_arrived() {
    ASSERT_TRUE(marker->send(kB.inner4, kPort));
    EXPECT_EQ(in_b4->receive(), kA.marker4);
  }

  /// SAs from A to B: outbound on A, inbound on B.
  void switch_to(std::uint32_t spi) {
    desired_b.sas[sa_key(kB.outer, spi)] = sa(kA.outer, kCluster, key_material(static_cast<std::uint8_t>(spi)));
    test::converge(*b, desired_b);
    desired_a.sas = {{sa_key(kB.outer, spi), sa(kA.outer, kCluster, key_material(static_cast<std::uint8_t>(spi)))}};
    test::converge(*a, desired_a);
    desired_b.sas = {{sa_key(kB.outer, spi), desired_b.sas.at(sa_key(kB.outer, spi))}};
    test::converge(*b, desired_b);
  }

  void expect_no_drops() {
    for (const test::Namespace* side : {&home, static_cast<const test::Namespace*>(peer.get())}) {
      side->enter();
      const auto counters = read_xfrm_stat().value();
      EXPECT_FALSE(counters.empty());
      for (const auto& [name, value] : counters)
        EXPECT_EQ(value, 0U) << name;
    }
    home.enter();
  }

  std::unique_ptr<test::Namespace> peer;
  std::unique_ptr<XfrmDriver> a, b;
  std::unique_ptr<test::UdpSocket> from_a4, from_a6, marker, in_b4, in_b6;
  State desired_a = policies(kA, kB);
  State desired_b = policies(kB, kA);
};

TEST_F(EspTraffic, CarriesBothInnerFamiliesOverOneSa) {
  switch_to(0x1001);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
    EXPECT_EQ(in_b4->receive(), kA.inner4);
    EXPECT_TRUE(from_a6->send(kB.inner6, kPort));
    EXPECT_EQ(in_b6->receive(), kA.inner6);
  }
  const auto key = sa_key(kB.outer, 0x1001);
  const auto sent = *test::observed(*a).sas.at(key).counters;
  EXPECT_EQ(sent.packets, 20U);
  EXPECT_EQ(sent.sent_sequence, 20U);
  const auto received = *test::observed(*b).sas.at(key).counters;
  EXPECT_EQ(received.packets, 20U);
  EXPECT_EQ(received.received_sequence, 20U);
  EXPECT_GT(received.bytes, 0U);
  EXPECT_GT(received.added.time_since_epoch().count(), 0);
  expect_no_drops();
}

TEST_F(EspTraffic, CarriesPacketsWithTheSecondSuite) {
  auto value = sa(kA.outer, kCluster);
  value.aead = Aead::chacha20_poly1305;
  desired_a.sas[sa_key(kB.outer, 0x1001)] = value;
  desired_b.sas = desired_a.sas;
  test::converge(*b, desired_b);
  test::converge(*a, desired_a);
  EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
  EXPECT_EQ(in_b4->receive(), kA.inner4);
  EXPECT_EQ(test::observed(*a).sas.begin()->second.counters->packets, 1U);
}

TEST_F(EspTraffic, EverySuiteHasLongKeysEsnAndAWideWindow) {
  struct Row {
    Aead aead;
    std::string_view name;
  };

  for (const auto& row :
       {Row{Aead::aes_gcm_256, "rfc4106(gcm(aes))"}, Row{Aead::chacha20_poly1305, "rfc7539esp(chacha20,poly1305)"}}) {
    SCOPED_TRACE(row.name);
    auto value = sa(kA.outer, kCluster);
    value.aead = row.aead;
    State only;
    only.sas[sa_key(kB.outer, 0x1001)] = value;
    test::converge(*a, only);
    const auto text = test::output_of("ip -s xfrm state");
    EXPECT_THAT(text, testing::HasSubstr(fmt::format("aead {} 0x", row.name)));
    // Key and salt are shown as one text of hex digits, then the bits of the ICV.
    EXPECT_THAT(text, testing::ContainsRegex("0x[0-9a-f]{72} \\(288 bits\\) 128"));
    EXPECT_THAT(text, testing::HasSubstr("esn"));
    EXPECT_THAT(text, testing::HasSubstr("replay_window 1024"));
    test::converge(*a, {});
  }
}

TEST_F(EspTraffic, WarmingUpLeavesNothingBehind) {
  for (const auto aead : {Aead::aes_gcm_256, Aead::chacha20_poly1305})
    EXPECT_TRUE(a->warm_up(aead).has_value());
  EXPECT_EQ(test::output_of("ip xfrm state"), "");
}

TEST_F(EspTraffic, TellsOfAFlushAndTheBlocksComeBackBeforeAnythingElse) {
  async::TestLoop loop;
  const auto events = open_sa_events(loop.executor(), {.flushes = true}).value();
  switch_to(0x1001);
  test::run("ip xfrm policy flush");
  const auto event = loop.run_blocking(async::with_timeout(events->next(), kPatience));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, SaEvent::Kind::flushed);
  const auto script = diff(test::observed(*a), desired_a, kGatewaySlices);
  EXPECT_EQ(script.steps.front().phase, Phase::block_policies);
  test::run("ip xfrm state flush");
  const auto second = loop.run_blocking(async::with_timeout(events->next(), kPatience));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->kind, SaEvent::Kind::flushed);
}

TEST_F(EspTraffic, TellsWhenAnSaReachesItsLimitOfBytes) {
  async::TestLoop loop;
  const auto events = open_sa_events(loop.executor()).value();
  auto limited = sa(kA.outer, kCluster);
  limited.soft_bytes = 100;
  const auto key = sa_key(kB.outer, 0x1001);
  desired_a.sas[key] = limited;
  desired_b.sas[key] = sa(kA.outer, kCluster);
  test::converge(*b, desired_b);
  test::converge(*a, desired_a);
  for (int i = 0; i < 8; ++i)
    from_a4->send(kB.inner4, kPort);
  const auto soft = loop.run_blocking(async::with_timeout(events->next(), kPatience));
  ASSERT_TRUE(soft.has_value());
  EXPECT_EQ(*soft, (SaEvent{SaEvent::Kind::soft_expired, key, limited.reqid}));
  EXPECT_TRUE(test::observed(*a).sas.contains(key)) << "it goes on working";
}

TEST_F(EspTraffic, CarriesPacketsInUdp) {
  auto value = sa(kA.outer, kCluster);
  value.encap = UdpEncap{4500, 4500};
  desired_a.sas[sa_key(kB.outer, 0x1001)] = value;
  desired_b.sas = desired_a.sas;
  peer->enter();
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(4500);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof(where)), 0);
  const int type = UDP_ENCAP_ESPINUDP;
  ASSERT_EQ(::setsockopt(fd, IPPROTO_UDP, UDP_ENCAP, &type, sizeof(type)), 0);
  home.enter();
  test::converge(*b, desired_b);
  test::converge(*a, desired_a);
  EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
  EXPECT_EQ(in_b4->receive(), kA.inner4);
  EXPECT_EQ(test::observed(*b).sas.begin()->second.counters->packets, 1U);
  ::close(fd);
}

TEST_F(EspTraffic, LosesNoPacketWhenItSwitchesSas) {
  constexpr std::uint32_t kSwitches = 20;
  constexpr std::uint32_t kPacketsEach = 50;
  std::uint32_t arrived = 0;
  for (std::uint32_t generation = 0; generation < kSwitches; ++generation) {
    switch_to(0x1001 + generation);
    for (std::uint32_t i = 0; i < kPacketsEach; ++i) {
      ASSERT_TRUE(from_a4->send(kB.inner4, kPort));
      ASSERT_EQ(in_b4->receive(), kA.inner4) << "after " << arrived;
      ++arrived;
    }
    EXPECT_EQ(test::observed(*a).sas.at(sa_key(kB.outer, 0x1001 + generation)).counters->packets, kPacketsEach);
  }
  EXPECT_EQ(arrived, kSwitches * kPacketsEach);
  expect_no_drops();
}

TEST_F(EspTraffic, LosesNoPacketWhileSasOverlapInEveryStepOfASwitch) {
  switch_to(0x1001);
  const auto packet = [&] {
    ASSERT_TRUE(from_a4->send(kB.inner4, kPort));
    ASSERT_EQ(in_b4->receive(), kA.inner4);
  };
  packet();
  const auto next = std::pair(sa_key(kB.outer, 0x1002), sa(kA.outer, kCluster, key_material(2)));
  desired_b.sas.insert(next);
  test::converge(*b, desired_b);
  packet();
  desired_a.sas.insert(next);
  test::converge(*a, desired_a);
  packet();
  EXPECT_EQ(test::observed(*a).sas.at(next.first).counters->packets, 1U) << "adding the outbound SA is the switch";
  desired_a.sas.erase(sa_key(kB.outer, 0x1001));
  test::converge(*a, desired_a);
  packet();
  desired_b.sas.erase(sa_key(kB.outer, 0x1001));
  test::converge(*b, desired_b);
  packet();
  expect_no_drops();
}

TEST_F(EspTraffic, DropsInsteadOfSendingInClearWhenTheSaIsMissing) {
  expect_clear_path();
  test::converge(*a, desired_a);
  // Side B has no policies, and would accept the packets in clear.
  from_a4->send(kB.inner4, kPort);
  from_a4->send(kB.inner4, kPort);
  test::converge(*a, {});
  expect_nothing_arrived();
}

TEST_F(EspTraffic, BlocksWhatNoEspPolicyCovers) {
  expect_clear_path();
  State blocks;
  add_blocks(blocks, kB);
  test::converge(*a, blocks);
  EXPECT_FALSE(from_a4->send(kB.inner4, kPort));
  EXPECT_FALSE(from_a6->send(kB.inner6, kPort));
  EXPECT_EQ(read_xfrm_stat()->at("XfrmOutPolBlock"), 2U);
  test::converge(*a, {});
  expect_nothing_arrived();
}

TEST_F(EspTraffic, AcceptsNothingInClear) {
  expect_clear_path();
  test::converge(*b, desired_b);
  // Side A has no policies, and sends in clear.
  EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
  EXPECT_TRUE(from_a6->send(kB.inner6, kPort));
  peer->enter();
  const auto counters = read_xfrm_stat().value();
  home.enter();
  const auto dropped = std::accumulate(counters.begin(), counters.end(), std::uint64_t{0},
                                       [](std::uint64_t sum, const auto& counter) { return sum + counter.second; });
  EXPECT_EQ(dropped, 2U);
  test::converge(*b, {});
  expect_nothing_arrived();
}

TEST_F(EspTraffic, TellsWhenAnSaReachesItsLimits) {
  async::TestLoop loop;
  const auto events = open_sa_events(loop.executor()).value();
  auto limited = sa(kA.outer, kCluster);
  limited.soft_packets = 3;
  limited.hard_packets = 5;
  const auto key = sa_key(kB.outer, 0x1001);
  desired_a.sas[key] = limited;
  desired_b.sas[key] = sa(kA.outer, kCluster);
  test::converge(*b, desired_b);
  test::converge(*a, desired_a);
  for (int i = 0; i < 8; ++i)
    from_a4->send(kB.inner4, kPort);
  const auto soft = loop.run_blocking(async::with_timeout(events->next(), kPatience));
  ASSERT_TRUE(soft.has_value());
  EXPECT_EQ(*soft, (SaEvent{SaEvent::Kind::soft_expired, key, limited.reqid}));
  const auto hard = loop.run_blocking(async::with_timeout(events->next(), kPatience));
  ASSERT_TRUE(hard.has_value());
  EXPECT_EQ(*hard, (SaEvent{SaEvent::Kind::hard_expired, key, limited.reqid}));
  EXPECT_FALSE(test::observed(*a).sas.contains(key));
}

TEST_F(EspTraffic, TellsWhenAPacketMeetsNoSa) {
  async::TestLoop loop;
  const auto events = open_sa_events(loop.executor(), {.acquire = true}).value();
  test::converge(*a, desired_a);
  from_a4->send(kB.inner4, kPort);
  const auto event = loop.run_blocking(async::with_timeout(events->next(), kPatience));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->kind, SaEvent::Kind::acquire);
  EXPECT_EQ(event->reqid, Reqid(kReqidBase | kCluster));
  EXPECT_EQ(event->key.daddr, test::ip(kB.outer));
  EXPECT_TRUE(test::observed(*a).sas.empty()) << "a larval state is no SA";

  // The larval state does not stand in the way of the SA that follows.
  switch_to(0x1001);
  EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
  EXPECT_EQ(in_b4->receive(), kA.inner4);
}

TEST_F(EspTraffic, SurvivesADriverThatIsOpenedAnew) {
  switch_to(0x1001);
  a = XfrmDriver::open().value();
  auto kept = desired_a;
  for (auto& [key, value] : kept.sas)
    value.key = nullptr;
  EXPECT_EQ(test::converge(*a, kept), 0U);
  EXPECT_TRUE(from_a4->send(kB.inner4, kPort));
  EXPECT_EQ(in_b4->receive(), kA.inner4);
}

}  // namespace
}  // namespace fabric::kernel
