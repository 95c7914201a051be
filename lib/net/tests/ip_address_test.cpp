#include <fabric/net/ip_address.hpp>
#include <fabric/net/mac.hpp>

#include <gtest/gtest.h>

namespace fabric::net {
namespace {

TEST(IpAddress, RoundTripsBothFamilies) {
  for (const char* text : {"0.0.0.0", "10.1.2.3", "255.255.255.255", "::", "::1", "fd00:1::a"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(IpAddress::parse(text).value().to_string(), text);
  }
}

TEST(IpAddress, RefusesWhatIsNotAnAddress) {
  for (const char* text : {"", "10.1.2", "10.1.2.3.4", "256.1.1.1", "010.1.1.1", "::ffff:10.0.0.1", "fd00::1%eth0", "a",
                           "1111:2222:3333:4444:5555:6666:7777:8888:9999:0000:1111"}) {
    SCOPED_TRACE(text);
    EXPECT_EQ(IpAddress::parse(text).error().code, Errc::invalid);
  }
}

TEST(IpAddress, KnowsItsKind) {
  EXPECT_TRUE(IpAddress::parse("169.254.1.1")->is_link_local());
  EXPECT_TRUE(IpAddress::parse("fe80::1")->is_link_local());
  EXPECT_TRUE(IpAddress::parse("::1")->is_loopback());
  EXPECT_TRUE(IpAddress::parse("239.0.0.1")->is_multicast());
  EXPECT_TRUE(IpAddress::any(Family::ipv6).is_unspecified());
  EXPECT_LT(*IpAddress::parse("255.0.0.0"), *IpAddress::parse("::"));
}

TEST(Mac, ParsesAndPrints) {
  EXPECT_EQ(Mac::parse("02:00:5e:10:00:ff")->to_string(), "02:00:5e:10:00:ff");
  EXPECT_FALSE(Mac::parse("02:00:5e:10:00"));
  EXPECT_FALSE(Mac::parse("02-00-5e-10-00-ff"));
}

}  // namespace
}  // namespace fabric::net
