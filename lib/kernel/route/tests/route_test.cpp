#include <fabric/kernel/route.hpp>
#include <fabric/netstate/ownership.hpp>

#include "network.hpp"

namespace fabric::kernel::test {

namespace {

using netstate::Family;
using netstate::Route;
using netstate::RouteKey;
using netstate::State;
using testing::HasSubstr;
using testing::Not;

const std::string kLink(netstate::kVxlanLink);

netstate::VxlanLink vxlan(std::string_view local = "192.0.2.1") {
  return {.vni = netstate::kVxlanVni,
          .port = netstate::kVxlanPort,
          .local = ip(local),
          .mac = mac("02:11:22:33:44:01"),
          .mtu = 1400};
}

Route over_link(std::string_view via, std::uint32_t mtu = 1350) {
  return {.link = kLink, .via = ip(via), .source = std::nullopt, .mtu = mtu};
}

/// What a worker with one remote cluster has, in both families.
State worker() {
  State state;
  state.links[kLink] = vxlan();
  state.fdb.insert({kLink, mac("02:11:22:33:44:02"), ip("192.0.2.2")});
  state.neighbours.insert({kLink, ip("169.254.1.2"), mac("02:11:22:33:44:02")});
  state.neighbours.insert({kLink, ip("fe80::2"), mac("02:11:22:33:44:02")});
  state.routes[{cidr("10.2.0.0/16")}] = over_link("169.254.1.2");
  state.routes[{cidr("fd02::/48")}] = over_link("fe80::2");
  return state;
}

class RouteDriverTest : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    auto opened = RouteDriver::open();
    ASSERT_TRUE(opened) << opened.error().message();
    driver = *std::move(opened);
  }

  static std::string everything() {
    return output_of(
        "ip -d link; ip -4 route show table all; ip -6 route show table all; ip neigh show nud all; bridge fdb");
  }

  std::unique_ptr<RouteDriver> driver;
};

TEST_F(RouteDriverTest, ShowsWhatWasAppliedAndThenFindsNothingToDo) {
  EXPECT_EQ(converge(*driver, worker()), 6U);
  expect_state(observed(*driver), worker());
  EXPECT_EQ(converge(*driver, worker()), 0U);
}

TEST_F(RouteDriverTest, MakesALinkThatNeitherLearnsNorSpeaks) {
  converge(*driver, worker());
  const auto link = output_of("ip -d link show " + kLink);
  EXPECT_THAT(link, HasSubstr("nolearning"));
  EXPECT_THAT(link, HasSubstr("addrgenmode none"));
  EXPECT_THAT(link, HasSubstr("id 100 local 192.0.2.1"));
  EXPECT_THAT(link, HasSubstr("dstport 4800"));
  EXPECT_THAT(link, HasSubstr("noudpcsum"));
  EXPECT_EQ(output_of("ip addr show dev " + kLink + " | grep inet"), "");
}

TEST_F(RouteDriverTest, GivesRoutesTheirMtuAndProtocol) {
  converge(*driver, worker());
  EXPECT_THAT(output_of("ip route show proto 70"),
              HasSubstr("10.2.0.0/16 via 169.254.1.2 dev vx-fabric onlink mtu 1350"));
  EXPECT_THAT(output_of("ip -6 route show proto 70"),
              HasSubstr("fd02::/48 via fe80::2 dev vx-fabric metric 1024 onlink mtu 1350"));
}

TEST_F(RouteDriverTest, RemovesEverythingOfOursAndNothingElse) {
  run("ip link add d0 type veth peer name d0p; ip link set d0p up; ip link set d0 up; ip addr add 10.9.0.1/24 dev d0; "
      "ip link add vx-other type vxlan id 7 dstport 4799 nolearning; ip link set vx-other up; "
      "bridge fdb append 02:00:00:00:00:09 dev vx-other dst 192.0.2.9; ip neigh add 10.9.0.9 lladdr 02:00:00:00:00:09 "
      "dev d0; "
      "ip route add 10.8.0.0/16 via 10.9.0.2 proto 71; ip route add 10.2.0.0/16 via 10.9.0.2 table 100 proto 70");
  const auto before = everything();
  converge(*driver, worker());
  EXPECT_NE(everything(), before);
  converge(*driver, {});
  EXPECT_EQ(everything(), before);
}

TEST_F(RouteDriverTest, RemovingWhatIsGoneSucceeds) {
  converge(*driver, worker());
  const auto script = netstate::diff(observed(*driver), {}, driver->slices());
  run("ip link del " + kLink);
  for (const auto& result : driver->apply(script.steps))
    EXPECT_TRUE(result) << result.error().message();
}

TEST_F(RouteDriverTest, RepairsWhatOthersChanged) {
  const std::pair<const char*, const char*> drifts[] = {
      {"link down", "ip link set vx-fabric down"},
      {"mtu", "ip link set vx-fabric mtu 1300"},
      {"mac", "ip link set vx-fabric address 02:00:00:00:00:77"},
      {"learning", "ip link set vx-fabric type vxlan learning"},
      {"link deleted", "ip link del vx-fabric"},
      {"vni",
       "ip link del vx-fabric; ip link add vx-fabric type vxlan id 5 dstport 4800 nolearning; ip link set vx-fabric "
       "up"},
      {"fdb deleted", "bridge fdb del 02:11:22:33:44:02 dev vx-fabric dst 192.0.2.2"},
      {"fdb changed", "bridge fdb replace 02:11:22:33:44:02 dev vx-fabric dst 192.0.2.9 self permanent"},
      {"neighbour deleted", "ip neigh del 169.254.1.2 dev vx-fabric"},
      {"neighbour changed", "ip neigh replace fe80::2 lladdr 02:00:00:00:00:99 dev vx-fabric nud permanent"},
      {"route deleted", "ip route del 10.2.0.0/16"},
      {"route changed", "ip route change 10.2.0.0/16 via 169.254.9.9 dev vx-fabric onlink proto 70"},
      {"second next hop", "ip -6 route append fd02::/48 via fe80::9 dev vx-fabric onlink proto 70 metric 1024"},
      {"extra route", "ip route add 10.7.0.0/16 dev vx-fabric proto 70"},
  };
  for (const auto& [name, command] : drifts) {
    SCOPED_TRACE(name);
    converge(*driver, worker());
    run(command);
    EXPECT_GT(converge(*driver, worker()), 0U);
    converge(*driver, worker());
    expect_state(observed(*driver), worker());
    EXPECT_EQ(output_of("ip -6 route show proto 70 | wc -l; ip route show proto 70 | wc -l"), "1\n1\n");
  }
}

TEST_F(RouteDriverTest, ReplacesARouteLeavingExactlyOne) {
  run("ip link add d0 type veth peer name d0p; ip link set d0p up; ip link set d0 up; ip addr add 10.9.0.1/24 dev d0; "
      "ip addr add fd09::1/64 dev d0 "
      "nodad");
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    const bool v4 = family == Family::ipv4;
    const RouteKey key{cidr(v4 ? "10.2.0.0/16" : "fd02::/48")};
    const auto first = over_link(v4 ? "169.254.1.2" : "fe80::2");
    const auto second = over_link(v4 ? "169.254.1.3" : "fe80::3");
    const auto source = ip(v4 ? "10.9.0.1" : "fd09::1");
    const Route direct{.link = "d0", .via = std::nullopt, .source = source, .mtu = 1300};
    auto sourced = first;
    sourced.source = source;
    auto plain = first;
    plain.mtu = 0;
    for (const auto& route : {first, second, direct, first, sourced, direct, plain, second}) {
      auto desired = worker();
      desired.routes[key] = route;
      converge(*driver, desired);
      EXPECT_EQ(observed(*driver).routes, desired.routes);
      const auto listed = output_of(fmt::format("ip -{} route show {}", v4 ? 4 : 6, key.dst));
      EXPECT_EQ(std::count(listed.begin(), listed.end(), '\n'), 1) << listed;
    }
  }
}

TEST_F(RouteDriverTest, NeverReplacesAForeignRoute) {
  run("ip link add d0 type veth peer name d0p; ip link set d0p up; ip link set d0 up; ip addr add 10.9.0.1/24 dev d0; "
      "ip addr add fd09::1/64 dev d0 "
      "nodad; "
      "ip route add 10.2.0.0/16 via 10.9.0.2; ip -6 route add fd02::/48 via fd09::2");
  const auto before = output_of("ip route; ip -6 route show fd02::/48");
  const auto script = netstate::diff({}, worker(), driver->slices());
  std::size_t refused = 0;
  for (const auto& result : driver->apply(script.steps)) {
    if (result) continue;
    ++refused;
    EXPECT_EQ(result.error().code, Errc::already_exists);
    EXPECT_THAT(result.error().message(), HasSubstr("not ours"));
  }
  EXPECT_EQ(refused, 2U);
  EXPECT_EQ(output_of("ip route; ip -6 route show fd02::/48"), before);
}

TEST_F(RouteDriverTest, RefusesALinkOfOurNameThatIsNoVxlan) {
  run("ip link add vx-fabric type bridge");
  const auto script = netstate::diff(observed(*driver), worker(), driver->slices());
  ASSERT_FALSE(script.steps.empty());
  const auto results = driver->apply(std::span(script.steps).first(1));
  ASSERT_FALSE(results.front());
  EXPECT_EQ(results.front().error().code, Errc::already_exists);
  EXPECT_THAT(output_of("ip -d link show vx-fabric"), HasSubstr("bridge"));
}

TEST_F(RouteDriverTest, SaysWhatTheKernelSaysAboutARefusedRoute) {
  converge(*driver, worker());
  auto desired = worker();
  desired.routes[{cidr("10.3.0.0/16")}] = over_link("169.254.1.2");
  desired.routes[{cidr("10.3.0.0/16")}].source = ip("10.99.0.1");
  const auto script = netstate::diff(observed(*driver), desired, driver->slices());
  const auto results = driver->apply(script.steps);
  ASSERT_EQ(results.size(), 1U);
  ASSERT_FALSE(results.front());
  EXPECT_EQ(results.front().error().code, Errc::invalid);
  EXPECT_THAT(results.front().error().message(), HasSubstr("Invalid prefsrc address"));
}

TEST_F(RouteDriverTest, ARouteOverAMissingLinkNamesTheLink) {
  State desired;
  desired.routes[{cidr("10.2.0.0/16")}] = {.link = "nowhere", .via = std::nullopt, .source = std::nullopt, .mtu = 0};
  const auto results = driver->apply(netstate::diff({}, desired, driver->slices()).steps);
  ASSERT_FALSE(results.front());
  EXPECT_EQ(results.front().error().code, Errc::not_found);
  EXPECT_THAT(results.front().error().message(), HasSubstr("nowhere"));
}

TEST_F(RouteDriverTest, KeepsThousandsOfRoutesApart) {
  auto desired = worker();
  constexpr int kRoutes = 4000;
  for (int i = 0; i < kRoutes; ++i) {
    desired.routes[{cidr(fmt::format("11.{}.{}.0/24", i / 256, i % 256))}] = over_link("169.254.1.2");
    desired.routes[{cidr(fmt::format("fd11:0:{:x}::/48", i))}] = over_link("fe80::2");
  }
  converge(*driver, desired);
  expect_state(observed(*driver), desired);
  EXPECT_EQ(converge(*driver, worker()), 2U * kRoutes);
  expect_state(observed(*driver), worker());
}

/// Both ends of an overlay, by hand of two drivers.
class OverlayTest : public RouteDriverTest {
 protected:
  void carries(const std::string& underlay_here, const std::string& underlay_there, bool v4) {
    const auto peer = make_peer();
    const std::string here = v4 ? "10.1.0.1" : "fd01::1";
    const std::string there = v4 ? "10.2.0.1" : "fd02::1";
    run("ip addr add " + here + " dev lo" + (v4 ? "" : " nodad"));
    await_addresses();
    auto desired = worker();
    desired.links[kLink] = vxlan(underlay_here);
    desired.fdb = {{kLink, mac("02:11:22:33:44:02"), ip(underlay_there)}};
    const RouteKey key{cidr(v4 ? "10.2.0.0/16" : "fd02::/48")};
    desired.routes = {{key, over_link(v4 ? "169.254.1.2" : "fe80::2")}};
    desired.routes[key].source = ip(here);
    converge(*driver, desired);

    peer.enter();
    run("ip addr add " + there + " dev lo" + (v4 ? "" : " nodad"));
    await_addresses();
    State gateway;
    gateway.links[kLink] = vxlan(underlay_there);
    gateway.links[kLink].mac = mac("02:11:22:33:44:02");
    const auto remote = RouteDriver::open();
    ASSERT_TRUE(remote);
    converge(**remote, gateway);
    const UdpSocket receiver(there, 7000);
    home.enter();
    const UdpSocket sender(v4 ? "0.0.0.0" : "::");
    ASSERT_TRUE(sender.send(there, 7000));
    EXPECT_EQ(receiver.receive(), here);
  }
};

TEST_F(OverlayTest, CarriesIpv4OverIpv4) {
  carries("192.0.2.1", "192.0.2.2", true);
}

TEST_F(OverlayTest, CarriesIpv6OverIpv4) {
  carries("192.0.2.1", "192.0.2.2", false);
}

TEST_F(OverlayTest, CarriesIpv4OverIpv6) {
  carries("fd00:ee::1", "fd00:ee::2", true);
}

TEST_F(OverlayTest, CarriesIpv6OverIpv6) {
  carries("fd00:ee::1", "fd00:ee::2", false);
}

}  // namespace

}  // namespace fabric::kernel::test
