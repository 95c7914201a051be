#include <fabric/api/identity.hpp>

#include <gtest/gtest.h>

namespace fabric::api {
namespace {

TEST(ClusterId, IsADnsLabel) {
  for (const char* text : {"a", "0", "cls-mdl3wn46", "a--b"})
    EXPECT_TRUE(parse_cluster_id(text)) << text;
  EXPECT_TRUE(parse_cluster_id(std::string(63, 'a')));
  for (const char* text : {"", "-a", "a-", "A", "a.b", "a_b", "\u00e4"})
    EXPECT_FALSE(parse_cluster_id(text)) << text;
  EXPECT_FALSE(parse_cluster_id(std::string(64, 'a')));
}

TEST(ClusterId, OffersANameThatWouldDo) {
  const auto id = parse_cluster_id("My.Cluster_");
  ASSERT_FALSE(id);
  EXPECT_NE(id.error().context.find("use 'my-cluster'"), std::string::npos) << id.error().context;
  EXPECT_FALSE(parse_cluster_id("..."));
}

TEST(DnsSubdomain, IsLabelsJoinedByDots) {
  for (const char* text : {"a", "node-1.example", "1.2.3"})
    EXPECT_TRUE(is_dns_subdomain(text)) << text;
  for (const char* text : {"", ".", "a.", ".a", "a..b", "A"})
    EXPECT_FALSE(is_dns_subdomain(text)) << text;
  EXPECT_FALSE(is_dns_subdomain(std::string(254, 'a')));
}

TEST(EndpointName, HasNeitherDotsNorColonsOfTheAddress) {
  const ClusterId cluster("east");
  EXPECT_EQ(cable_name(cluster, net::IpAddress::v4(192, 0, 2, 7)), "submariner-cable-east-192-0-2-7");
  const auto v6 = net::IpAddress::parse("2001:db8::1");
  ASSERT_TRUE(v6);
  EXPECT_EQ(endpoint_name(cluster, *v6), "east-submariner-cable-east-2001-db8--1");
}

}  // namespace
}  // namespace fabric::api
