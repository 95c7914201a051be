#include <fabric/kernel/host_facts.hpp>
#include <fabric/kernel/route_monitor.hpp>
#include <fabric/kernel/sysctl.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <filesystem>
#include <fstream>

#include "network.hpp"

namespace fabric::kernel::test {

namespace {

using netstate::State;
using testing::HasSubstr;

class HostFactsTest : public NetworkTest {};

TEST_F(HostFactsTest, ListsInterfacesAddressesAndDefaultRoutes) {
  run("ip link add d0 type veth peer name d0p; ip link set d0p up; ip link set d0 mtu 1450 up; ip addr add "
      "192.0.2.1/24 dev d0; "
      "ip addr add 192.0.2.5/24 dev d0; ip addr add fd00::1/64 dev d0 nodad; ip link add d1 type veth peer name d1p; "
      "ip link set d1p up; "
      "ip link set d1 up; ip addr add 198.51.100.1/24 dev d1; ip route add default via 198.51.100.2 metric 100; "
      "ip route add default via 192.0.2.2 metric 50; ip -6 route add default via fd00::2; "
      "ip route add default via 198.51.100.3 table 7");
  const auto reader = HostFactsReader::open();
  ASSERT_TRUE(reader);
  const auto facts = (*reader)->read({.sysctls = {"net/ipv4/conf/d0/rp_filter", "net/ipv4/conf/gone/rp_filter"}});
  ASSERT_TRUE(facts) << facts.error().message();
  ASSERT_EQ(facts->interfaces.size(), 5U);
  const auto found = std::ranges::find(facts->interfaces, "d0", &netstate::Interface::name);
  ASSERT_NE(found, facts->interfaces.end());
  const auto& d0 = *found;
  EXPECT_EQ(d0.mtu, 1450U);
  EXPECT_TRUE(d0.up);
  EXPECT_THAT(d0.addresses, testing::IsSupersetOf(std::vector<netstate::InterfaceAddress>{
                                {ip("192.0.2.1"), 24}, {ip("192.0.2.5"), 24}, {ip("fd00::1"), 64}}));
  EXPECT_EQ(d0.addresses.front(), (netstate::InterfaceAddress{ip("192.0.2.1"), 24}));
  EXPECT_EQ(facts->default_link.at(net::Family::ipv4), "d0");
  EXPECT_EQ(facts->default_link.at(net::Family::ipv6), "d0");
  EXPECT_EQ(facts->sysctls, (std::map<std::string, std::string>{{"net/ipv4/conf/d0/rp_filter", "0"}}));
}

TEST_F(HostFactsTest, HasNoDefaultLinkWithoutDefaultRoute) {
  const auto reader = HostFactsReader::open();
  ASSERT_TRUE(reader);
  const auto facts = (*reader)->read({});
  ASSERT_TRUE(facts) << facts.error().message();
  EXPECT_TRUE(facts->default_link.empty());
}

class SysctlTest : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    run("rm -rf /run/fabric; ip link add d0 type veth peer name d0p; ip link set d0p up");
    driver = *SysctlDriver::open();
  }

  static State with(const std::string& key, const std::string& value) {
    State state;
    state.sysctls[key] = value;
    return state;
  }

  const std::string key = "net/ipv4/conf/d0/rp_filter";
  std::unique_ptr<SysctlDriver> driver;
};

TEST_F(SysctlTest, WritesAndRestores) {
  run("echo 1 > /proc/sys/" + key);
  converge(*driver, with(key, "2"));
  EXPECT_EQ(output_of("cat /proc/sys/" + key), "2\n");
  expect_state(observed(*driver), with(key, "2"));
  EXPECT_EQ(converge(*driver, with(key, "2")), 0U);
  converge(*driver, {});
  EXPECT_EQ(output_of("cat /proc/sys/" + key), "1\n");
  EXPECT_FALSE(std::filesystem::exists(netstate::kSysctlStateDirectory));
}

TEST_F(SysctlTest, KeepsTheFirstOldValueOverManyWritesAndARestart) {
  run("echo 1 > /proc/sys/" + key);
  converge(*driver, with(key, "2"));
  driver = *SysctlDriver::open();
  converge(*driver, with(key, "0"));
  converge(*driver, with(key, "2"));
  converge(*driver, {});
  EXPECT_EQ(output_of("cat /proc/sys/" + key), "1\n");
}

TEST_F(SysctlTest, RepairsAValueThatSomebodyChanged) {
  converge(*driver, with(key, "2"));
  run("echo 1 > /proc/sys/" + key);
  EXPECT_EQ(converge(*driver, with(key, "2")), 1U);
  EXPECT_EQ(output_of("cat /proc/sys/" + key), "2\n");
}

TEST_F(SysctlTest, ForgetsAnInterfaceThatIsGone) {
  converge(*driver, with(key, "2"));
  run("ip link del d0");
  converge(*driver, {});
  EXPECT_FALSE(std::filesystem::exists(netstate::kSysctlStateDirectory));
}

TEST_F(SysctlTest, KeepsNothingWhenTheSettingDoesNotExist) {
  const auto script = netstate::diff({}, with("net/ipv4/conf/nowhere/rp_filter", "2"), driver->slices());
  const auto results = driver->apply(script.steps);
  ASSERT_FALSE(results.front());
  EXPECT_EQ(results.front().error().code, Errc::not_found);
  expect_state(observed(*driver), State{});
}

TEST_F(SysctlTest, HandlesInterfaceNamesWithOddCharacters) {
  run("ip link add 'a.1,2' type bridge");
  const std::string odd = "net/ipv4/conf/a.1,2/rp_filter";
  converge(*driver, with(odd, "2"));
  expect_state(observed(*driver), with(odd, "2"));
  EXPECT_EQ(converge(*driver, with(odd, "2")), 0U);
}

TEST_F(SysctlTest, RefusesNamesThatLeadElsewhere) {
  for (const auto* name : {"net/../kernel/panic", "/net/ipv4/ip_forward", "kernel/panic", "net/",
                           "net//ipv4/ip_forward", "net/ipv4/../../../etc/passwd", ""}) {
    const auto read = read_sysctl({}, name);
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().code, Errc::invalid) << name;
  }
}

class RouteMonitorTest : public NetworkTest {
 protected:
  /// Whether the monitor told of a change by what the command did.
  static bool tells(const std::string& command, bool expected = true) {
    boost::asio::io_context io;
    auto monitor = RouteMonitor::open(io.get_executor());
    EXPECT_TRUE(monitor) << monitor.error().message();
    run(command);
    bool told = false;
    boost::asio::co_spawn(
        io, [&]() -> async::Task<> { told = (co_await monitor->wait()).has_value(); }, boost::asio::detached);
    if (expected) io.run_for(std::chrono::seconds(5));  // The kernel tells of some changes from a worker of its own.
    io.poll();
    monitor->close();
    io.restart();
    io.run();
    return told;
  }
};

TEST_F(RouteMonitorTest, TellsOfLinksAddressesAndRoutesThatMatter) {
  EXPECT_TRUE(tells("ip link add d0 type veth peer name d0p; ip link set d0p up"));
  EXPECT_TRUE(tells("ip link set d0 up"));
  EXPECT_TRUE(tells("ip addr add 192.0.2.1/24 dev d0"));
  EXPECT_TRUE(tells("ip addr add fd00::1/64 dev d0 nodad"));
  EXPECT_TRUE(tells("ip route add default via 192.0.2.2"));
  EXPECT_TRUE(tells("ip -6 route add default via fd00::2"));
  EXPECT_TRUE(tells("ip route add 10.2.0.0/16 via 192.0.2.2 proto 70"));
  EXPECT_TRUE(tells("ip route del 10.2.0.0/16"));
}

TEST_F(RouteMonitorTest, IsSilentAboutForeignRoutesAndNothing) {
  // Without IPv6 the links say nothing by themselves later on.
  run("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; ip link add d0 type veth peer name d0p; "
      "ip link set d0p up; ip link set d0 up; ip addr add 192.0.2.1/24 dev d0");
  EXPECT_FALSE(tells("ip route add 10.3.0.0/16 via 192.0.2.2 proto 12", false));
  EXPECT_FALSE(tells("true", false));
}

}  // namespace

}  // namespace fabric::kernel::test
