#include <fabric/routeagent/underlay.hpp>

#include <gtest/gtest.h>

#include <set>

namespace fabric::routeagent {
namespace {

TEST(Underlay, MacIsLocalUnicastAndDiffersBetweenNodes) {
  std::set<net::Mac> macs;
  for (int i = 0; i < 60000; ++i) {
    const auto mac =
        vxlan_mac(net::IpAddress::v4(10, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)));
    EXPECT_EQ(mac.bytes[0] & 0x03U, 0x02U);
    macs.insert(mac);
  }
  EXPECT_EQ(macs.size(), 60000U);
}

TEST(Underlay, MacIsTheSameOnEveryNodeForEver) {
  EXPECT_EQ(vxlan_mac(net::IpAddress::v4(172, 20, 1, 11)), vxlan_mac(net::IpAddress::v4(172, 20, 1, 11)));
  // A changed hash would cut the traffic between nodes of two versions during an upgrade.
  EXPECT_EQ(vxlan_mac(net::IpAddress::v4(172, 20, 1, 11)).to_string(), "02:b2:59:8e:60:75");
}

TEST(Underlay, NextHopsAreLinkLocal) {
  const auto mac = *net::Mac::parse("02:11:22:33:44:55");
  EXPECT_EQ(vxlan_next_hop(mac, net::Family::ipv4).to_string(), "169.254.68.85");
  EXPECT_EQ(vxlan_next_hop(mac, net::Family::ipv6).to_string(), "fe80::11:22ff:fe33:4455");
  EXPECT_EQ(vxlan_next_hop(*net::Mac::parse("02:11:22:33:00:55"), net::Family::ipv4).to_string(), "169.254.1.85");
  EXPECT_EQ(vxlan_next_hop(*net::Mac::parse("02:11:22:33:ff:55"), net::Family::ipv4).to_string(), "169.254.254.85");
}

TEST(Underlay, OverheadsAreThoseOfTheStandards) {
  EXPECT_EQ(esp_overhead({}), 57U);
  EXPECT_EQ(esp_overhead({.outer_ipv6 = true, .udp = true}), 85U);
  EXPECT_EQ(vxlan_overhead(net::Family::ipv4), 50U);
  EXPECT_EQ(vxlan_overhead(net::Family::ipv6), 70U);
}

}  // namespace
}  // namespace fabric::routeagent
