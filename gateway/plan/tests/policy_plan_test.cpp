#include <fabric/gateway/policy_plan.hpp>
#include <fabric/gateway/reqid.hpp>
#include <fabric/netstate/ownership.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::gateway {
namespace {

using net::Cidr;
using netstate::Direction;
using netstate::EspTemplate;
using netstate::Reqid;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Cidr cidr(std::string_view text) {
  return *Cidr::parse(text);
}

Path path_to(std::uint8_t last) {
  return {.local = net::IpAddress::v4(192, 0, 2, 1), .remote = net::IpAddress::v4(198, 51, 100, last), .encap = {}};
}

RemoteGateway gateway(std::string name, std::uint8_t last, std::vector<Cidr> prefixes) {
  return {.name = std::move(name),
          .path = path_to(last),
          .health = Health::up,
          .outbound = true,
          .prefixes = std::move(prefixes),
          .probes = {}};
}

PolicyInputs two_clusters() {
  PolicyInputs in;
  in.local_cluster = "a";
  in.local_prefixes = {cidr("10.0.0.0/16"), cidr("fd00::/48")};
  in.remotes["b"] = {.reqid = Reqid(0x46000002), .gateways = {gateway("g1", 1, {cidr("10.1.0.0/16")})}};
  return in;
}

TEST(PolicyPlan, CarriesAPrefixByEspAndBlocksItBehindThat) {
  const auto plan = plan_policies(two_clusters());
  const auto any = Cidr::any(net::Family::ipv4);
  const auto here = cidr("10.0.0.0/16");
  const auto there = cidr("10.1.0.0/16");
  const EspTemplate out{path_to(1).local, path_to(1).remote, Reqid(0x46000002)};
  const EspTemplate in{net::IpAddress(), net::IpAddress(), Reqid(0x46000002)};
  const netstate::XfrmPolicy block{netstate::kBlockPriority, netstate::BlockAction{}};
  const std::map<netstate::PolicyKey, netstate::XfrmPolicy> expected = {
      {{Direction::out, here, there}, {netstate::kEspPriority, out}},
      {{Direction::in, there, here}, {netstate::kEspPriority, in}},
      {{Direction::fwd, there, here}, {netstate::kEspPriority, in}},
      {{Direction::out, any, there}, block},
      {{Direction::in, there, any}, block},
      {{Direction::fwd, there, any}, block},
  };
  EXPECT_EQ(plan.policies, expected);
  EXPECT_THAT(plan.findings, IsEmpty());
  EXPECT_THAT(plan.chosen, ElementsAre(std::pair("b", "g1")));
}

TEST(PolicyPlan, KeepsFamiliesApart) {
  auto in = two_clusters();
  in.remotes["b"].gateways[0].prefixes = {cidr("fd01::/48")};
  const auto plan = plan_policies(in);
  EXPECT_TRUE(plan.policies.contains({Direction::out, cidr("fd00::/48"), cidr("fd01::/48")}));
  EXPECT_FALSE(plan.policies.contains({Direction::out, cidr("10.0.0.0/16"), cidr("fd01::/48")}));
  EXPECT_EQ(
      std::get<EspTemplate>(plan.policies.at({Direction::out, cidr("fd00::/48"), cidr("fd01::/48")}).action).daddr,
      path_to(1).remote)
      << "inner IPv6 through outer IPv4";
}

TEST(PolicyPlan, ChoosesByOutboundSaThenHealthThenName) {
  struct Row {
    std::string_view name;
    bool first_outbound;
    Health first_health;
    bool second_outbound;
    Health second_health;
    std::string chosen;
  };

  for (const auto& row : {Row{"equal", true, Health::up, true, Health::up, "g1"},
                          Row{"the first is down", true, Health::down, true, Health::unknown, "g2"},
                          Row{"the first is unknown", true, Health::unknown, true, Health::up, "g2"},
                          Row{"the first has no SA", false, Health::up, true, Health::down, "g2"},
                          Row{"neither has an SA", false, Health::unknown, false, Health::unknown, "g1"}}) {
    SCOPED_TRACE(row.name);
    auto in = two_clusters();
    auto& gateways = in.remotes["b"].gateways;
    gateways.push_back(gateway("g2", 2, {cidr("10.1.0.0/16")}));
    gateways[0].outbound = row.first_outbound;
    gateways[0].health = row.first_health;
    gateways[1].outbound = row.second_outbound;
    gateways[1].health = row.second_health;
    const auto plan = plan_policies(in);
    EXPECT_EQ(plan.chosen.at("b"), row.chosen);
    const auto& policy = plan.policies.at({Direction::out, cidr("10.0.0.0/16"), cidr("10.1.0.0/16")});
    EXPECT_EQ(std::get<EspTemplate>(policy.action).daddr, path_to(row.chosen == "g1" ? 1 : 2).remote);
  }
}

TEST(PolicyPlan, SendsEachPrefixToAGatewayThatAnnouncesIt) {
  auto in = two_clusters();
  in.remotes["b"].gateways = {gateway("g1", 1, {cidr("10.1.1.0/24")}), gateway("g2", 2, {cidr("10.1.2.0/24")})};
  const auto plan = plan_policies(in);
  const auto to = [&](std::string_view prefix) {
    return std::get<EspTemplate>(plan.policies.at({Direction::out, cidr("10.0.0.0/16"), cidr(prefix)}).action).daddr;
  };
  EXPECT_EQ(to("10.1.1.0/24"), path_to(1).remote);
  EXPECT_EQ(to("10.1.2.0/24"), path_to(2).remote);
}

TEST(PolicyPlan, WithoutAGatewayThePrefixIsBlocked) {
  auto in = two_clusters();
  in.remotes["b"].gateways[0].path.reset();
  const auto plan = plan_policies(in);
  EXPECT_THAT(plan.policies, SizeIs(3));
  for (const auto& [key, policy] : plan.policies)
    EXPECT_EQ(policy.priority, netstate::kBlockPriority);
  ASSERT_THAT(plan.findings, SizeIs(1));
  EXPECT_EQ(plan.findings[0].kind, FindingKind::no_gateway);
}

TEST(PolicyPlan, RefusesAPrefixThatOverlapsOurs) {
  auto in = two_clusters();
  in.remotes["b"].gateways[0].prefixes = {cidr("10.0.128.0/17"), cidr("10.1.0.0/16")};
  const auto plan = plan_policies(in);
  EXPECT_THAT(plan.carried.at("b"), ElementsAre(cidr("10.1.0.0/16")));
  ASSERT_THAT(plan.findings, SizeIs(1));
  EXPECT_EQ(plan.findings[0].kind, FindingKind::prefix_overlap);
  EXPECT_THAT(plan.findings[0].message, HasSubstr("cluster b: prefix 10.0.128.0/17 overlaps 10.0.0.0/16 of cluster a"));
}

TEST(PolicyPlan, OfTwoRemotesThatOverlapTheLowerIdKeepsThePrefix) {
  auto in = two_clusters();
  in.remotes["c"] = {.reqid = Reqid(0x46000003), .gateways = {gateway("g1", 3, {cidr("10.1.2.0/24")})}};
  const auto plan = plan_policies(in);
  EXPECT_THAT(plan.carried, SizeIs(1));
  EXPECT_TRUE(plan.carried.contains("b"));
  ASSERT_THAT(plan.findings, SizeIs(1));
  EXPECT_THAT(plan.findings[0].message, HasSubstr("cluster c: prefix 10.1.2.0/24 overlaps 10.1.0.0/16 of cluster b"));
}

TEST(PolicyPlan, OfTwoRemotesThatOverlapTheOneThatIsInstalledKeepsThePrefix) {
  auto in = two_clusters();
  in.remotes["c"] = {.reqid = Reqid(0x46000003), .gateways = {gateway("g1", 3, {cidr("10.1.2.0/24")})}};
  auto only_c = in;
  only_c.remotes.erase("b");
  in.holders = holders_of(plan_policies(only_c).policies);
  const auto plan = plan_policies(in);
  EXPECT_THAT(plan.carried, SizeIs(1));
  EXPECT_TRUE(plan.carried.contains("c"));
}

TEST(PolicyPlan, PingsGoThroughTheGatewayThatTheyAreAbout) {
  auto in = two_clusters();
  in.local_probes = {net::IpAddress::v4(10, 0, 1, 1)};
  auto& gateways = in.remotes["b"].gateways;
  gateways.push_back(gateway("g2", 2, {cidr("10.1.0.0/16")}));
  gateways[0].probes = {net::IpAddress::v4(10, 1, 1, 1)};
  gateways[1].probes = {net::IpAddress::v4(10, 1, 2, 1)};
  const auto to = [](const PolicyPlan& plan, std::string_view probe) {
    const auto& policy = plan.policies.at({Direction::out, cidr("10.0.1.1/32"), cidr(probe)});
    EXPECT_EQ(policy.priority, netstate::kProbePriority);
    return std::get<EspTemplate>(policy.action).daddr;
  };
  const auto plan = plan_policies(in);
  EXPECT_EQ(to(plan, "10.1.1.1/32"), path_to(1).remote);
  EXPECT_EQ(to(plan, "10.1.2.1/32"), path_to(2).remote);
  gateways[0].probes = {net::IpAddress::v4(10, 7, 0, 1), *net::IpAddress::parse("fd01::1")};
  EXPECT_FALSE(plan_policies(in).policies.contains({Direction::out, cidr("10.0.1.1/32"), cidr("10.7.0.1/32")}))
      << "outside of what is carried";
}

TEST(PolicyPlan, CountsPoliciesThatTheKernelSearchesOneByOne) {
  auto in = two_clusters();
  EXPECT_EQ(plan_policies(in).coarse_policies, 3U) << "the block policies, whose other end is any address";
  in.remotes["b"].gateways[0].prefixes = {cidr("11.0.0.0/8")};
  EXPECT_EQ(plan_policies(in).coarse_policies, 6U);
}

TEST(Reqids, AreStableInOurRangeAndDistinct) {
  std::set<std::string> ids;
  for (int i = 0; i < 2000; ++i)
    ids.insert("cluster-" + std::to_string(i));
  const auto reqids = assign_reqids(ids);
  std::set<Reqid> distinct;
  for (const auto& [id, reqid] : reqids) {
    EXPECT_TRUE(netstate::is_ours(reqid.value())) << id;
    distinct.insert(reqid);
  }
  EXPECT_EQ(distinct.size(), ids.size());
  EXPECT_EQ(assign_reqids({"cluster-7"}).at("cluster-7"), assign_reqids({"cluster-7", "zzz"}).at("cluster-7"));
}

}  // namespace
}  // namespace fabric::gateway
