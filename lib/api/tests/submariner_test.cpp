#include <fabric/api/names.hpp>
#include <fabric/api/submariner.hpp>

#include <gtest/gtest.h>

namespace fabric::api {
namespace {

TEST(Cluster, WritesEmptyListsThatSubmarinerRequires) {
  Cluster cluster;
  cluster.metadata.name = "east";
  cluster.spec.cluster_id = "east";
  EXPECT_EQ(json::encode(cluster),
            R"({"metadata":{"name":"east"},"spec":{"cluster_cidr":[],"cluster_id":"east","color_codes":["blue"],)"
            R"("global_cidr":[],"service_cidr":[]}})");
}

TEST(Cluster, GivesServicePrefixesThenPodPrefixes) {
  ClusterSpec spec;
  spec.service_cidr = {"10.96.0.0/16"};
  spec.cluster_cidr = {"10.244.0.0/16", "fd00::/48"};
  const auto all = prefixes(spec);
  ASSERT_TRUE(all);
  EXPECT_EQ(net::join(*all), "10.96.0.0/16, 10.244.0.0/16, fd00::/48");
  spec.cluster_cidr[1] = "fd00::1/48";
  const auto wrong = prefixes(spec);
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().context.starts_with("spec.cluster_cidr[1]")) << wrong.error().context;
}

TEST(Endpoint, ReadsAnObjectOfSubmariner) {
  const auto endpoint = json::decode<Endpoint>(
      R"({"apiVersion":"submariner.io/v1","kind":"Endpoint","metadata":{"name":"e"},"spec":{"backend":"libreswan",)"
      R"("backend_config":{"natt-discovery-port":"4490","udp-port":"4500"},"cable_name":"c","cluster_id":"west",)"
      R"("healthCheckIP":"10.1.0.1","hostname":"h","nat_enabled":true,"private_ip":"192.0.2.1","public_ip":"",)"
      R"("subnets":["10.1.0.0/16"]}})");
  ASSERT_TRUE(endpoint) << endpoint.error().context;
  EXPECT_EQ(endpoint->spec.health_check_ip, "10.1.0.1");
  EXPECT_TRUE(endpoint->spec.nat_enabled);
}

TEST(Gateway, RoundTripsItsStatus) {
  const std::string text =
      R"({"metadata":{"name":"n"},"status":{"connections":[{"endpoint":{"backend":"xfrm","cable_name":"c","cluster_id":"w",)"
      R"("hostname":"h","nat_enabled":false,"private_ip":"","public_ip":"","subnets":[]},"latencyRTT":{"average":"1.2ms",)"
      R"("last":"1.234567ms"},"status":"connected","statusMessage":"","usingIP":"192.0.2.1","usingNAT":true}],)"
      R"("haStatus":"active","keys":{"generations":[{"drawnAt":"2026-01-02T03:04:05Z","generation":"7","pskIDs":)"
      R"(["1:0123456789abcdef"],"reason":"age"}],"instance":"00ff","rejected":[{"count":2,"endpoint":"e",)"
      R"("reason":"bad_mac"}],"rekeys":1},"localEndpoint":{"backend":"","cable_name":"","cluster_id":"e","hostname":"",)"
      R"("nat_enabled":false,"private_ip":"","public_ip":"","subnets":[]},"statusFailure":"","version":"v1"}})";
  const auto gateway = json::decode<Gateway>(text);
  ASSERT_TRUE(gateway) << gateway.error().context;
  EXPECT_EQ(json::encode(*gateway), text);
}

TEST(PublicView, LeavesRecordsOutOfAStatus) {
  EndpointSpec spec;
  spec.backend_config = {{std::string(names::kKeysConfig), "k"},
                         {std::string(names::kStateConfig), "s"},
                         {std::string(names::kUdpPortConfig), "4500"}};
  EXPECT_EQ(public_view(spec).backend_config, (StringMap{{"udp-port", "4500"}}));
}

}  // namespace
}  // namespace fabric::api
