#include <fabric/broker/federation.hpp>
#include <fabric/broker/names.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::broker {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

ClusterRecord cluster(std::string id, std::string_view pods, std::string_view services, std::string_view global = "") {
  return {std::move(id), *net::parse_cidr_list(pods), *net::parse_cidr_list(services), *net::parse_cidr_list(global)};
}

TEST(Overlaps, NamesBothClustersBothPrefixesAndTheRemedy) {
  const auto found =
      check_overlaps(cluster("a", "10.1.0.0/16,fd01::/48", "10.96.0.0/16"),
                     {cluster("b", "10.2.0.0/16", "10.97.0.0/16"), cluster("c", "10.1.128.0/17", "10.98.0.0/16")});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].other_cluster, "c");
  EXPECT_EQ(found[0].message,
            "pod prefix 10.1.0.0/16 of cluster 'a' (joinConfig.clusterCIDR) overlaps pod prefix 10.1.128.0/17 of "
            "cluster 'c': enable "
            "globalnet in both clusters or give one of them another prefix");
}

TEST(Overlaps, ComparesPodsWithServicesToo) {
  const auto found =
      check_overlaps(cluster("a", "10.1.0.0/16", "fd00::/112"), {cluster("b", "10.2.0.0/16,fd00::/64", "10.1.0.0/24")});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found[0].message, HasSubstr("service prefix fd00::/112"));
  EXPECT_THAT(found[1].message, HasSubstr("overlaps service prefix 10.1.0.0/24"));
}

TEST(Overlaps, IgnoresItsOwnRecordOfAnEarlierRun) {
  EXPECT_THAT(
      check_overlaps(cluster("a", "10.1.0.0/16", "10.96.0.0/16"), {cluster("a", "10.1.0.0/16", "10.96.0.0/16")}),
      IsEmpty());
}

TEST(Overlaps, CountsOnlyGlobalPrefixesOfClustersThatHaveThem) {
  const auto self = cluster("a", "10.1.0.0/16", "10.96.0.0/16", "242.0.0.0/24");
  EXPECT_THAT(check_overlaps(self, {cluster("b", "10.1.0.0/16", "10.96.0.0/16", "242.0.1.0/24")}), IsEmpty());
  EXPECT_EQ(check_overlaps(self, {cluster("b", "10.1.0.0/16", "10.96.0.0/16", "242.0.0.128/25")}).size(), 1U);
}

TEST(Identity, IsProvedByThePskAndBoundToTheId) {
  crypto::DeterministicEntropy entropy(3);
  const auto key = *crypto::Ed25519KeyPair::draw(entropy);
  crypto::PskSet psks;
  ASSERT_TRUE(psks.add(*crypto::Psk::make(1, Secret::from_text(std::string(48, 'k')))).has_value());
  const IdentityProof proof = prove_identity(*psks.newest(), "a", key.public_key);
  ASSERT_TRUE(verify_identity(psks, "a", proof).has_value());
  EXPECT_EQ(*verify_identity(psks, "a", proof), key.public_key);
  EXPECT_THAT(verify_identity(psks, "b", proof).error().message(),
              HasSubstr("was not made with this federation's PSK"));
  EXPECT_THAT(verify_identity(psks, "a", {}).error().message(), HasSubstr("is missing"));
  EXPECT_FALSE(verify_identity(psks, "a", {proof.identity, "!"}).has_value());
}

}  // namespace
}  // namespace fabric::broker
