#include <fabric/netstate/ownership.hpp>
#include <fabric/routeagent/plan.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <netinet/in.h>

namespace fabric::routeagent {
namespace {

using net::Cidr;
using net::Family;
using net::IpAddress;

Cidr cidr(const char* text) {
  return Cidr::parse(text).value();
}

IpAddress ip(const char* text) {
  return IpAddress::parse(text).value();
}

/// The worker a-n2 of a dual-stack cluster whose gateway is a-n1.
Inputs worker() {
  Inputs in;
  in.node = "a-n2";
  in.node_address = ip("172.20.1.12");
  in.node_pod_cidrs = {cidr("10.1.1.0/24"), cidr("fd10:1:0:1::/64")};
  in.local_prefixes = {cidr("10.1.0.0/16"), cidr("10.101.0.0/16"), cidr("fd10:1::/48")};
  in.remote_prefixes = {{"b", {cidr("10.2.0.0/16"), cidr("fd10:2::/48")}}};
  in.gateways = {{.node = "a-n1", .address = ip("172.20.1.11")}};
  in.facts.interfaces = {{.name = "lo", .index = 1, .mtu = 65536, .up = true, .addresses = {{ip("127.0.0.1"), 8}}},
                         {.name = "eth0",
                          .index = 2,
                          .mtu = 1500,
                          .up = true,
                          .addresses = {{ip("172.20.1.12"), 24}, {ip("fd20:1::12"), 64}}},
                         {.name = "cni0",
                          .index = 3,
                          .mtu = 1500,
                          .up = true,
                          .addresses = {{ip("10.1.1.1"), 24}, {ip("fd10:1:0:1::1"), 64}}}};
  return in;
}

Inputs gateway() {
  Inputs in = worker();
  in.node = "a-n1";
  in.node_address = ip("172.20.1.11");
  in.node_pod_cidrs = {cidr("10.1.0.0/24"), cidr("fd10:1::/64")};
  in.facts.interfaces[1].addresses = {{ip("172.20.1.11"), 24}};
  in.facts.interfaces[2].addresses = {{ip("10.1.0.1"), 24}, {ip("fd10:1::1"), 64}};
  return in;
}

bool has(const Plan& plan, FindingKind kind) {
  return std::ranges::any_of(plan.findings, [&](const Finding& f) { return f.kind == kind; });
}

TEST(RouteAgentPlan, WorkerSendsRemotePrefixesThroughTheVxlanToTheGateway) {
  const Plan p = plan(worker());
  EXPECT_TRUE(p.findings.empty());
  EXPECT_EQ(p.gateway, "a-n1");
  const auto mac = vxlan_mac(ip("172.20.1.11"));
  const auto& route = p.desired.routes.at({cidr("10.2.0.0/16")});
  EXPECT_EQ(route.link, netstate::kVxlanLink);
  EXPECT_EQ(route.via, vxlan_next_hop(mac, Family::ipv4));
  EXPECT_EQ(route.source, ip("10.1.1.1"));
  EXPECT_EQ(route.mtu, 1500U - 57U) << "ESP adds more than VXLAN over IPv4";
  EXPECT_EQ(p.desired.routes.at({cidr("fd10:2::/48")}).via, vxlan_next_hop(mac, Family::ipv6));
  EXPECT_EQ(p.desired.fdb.size(), 1U);
  EXPECT_EQ(p.desired.fdb.begin()->remote, ip("172.20.1.11"));
  EXPECT_EQ(p.desired.neighbours.size(), 2U);
  EXPECT_EQ(p.desired.links.at("vx-fabric").mtu, 1450U);
}

TEST(RouteAgentPlan, GatewayRoutesToItsUplinkWhereThePoliciesTakeOver) {
  const Plan p = plan(gateway());
  const auto& route = p.desired.routes.at({cidr("10.2.0.0/16")});
  EXPECT_EQ(route.link, "eth0");
  EXPECT_EQ(route.via, std::nullopt);
  EXPECT_EQ(route.source, ip("10.1.0.1"));
  EXPECT_TRUE(p.desired.fdb.empty());
  EXPECT_TRUE(p.desired.links.contains("vx-fabric")) << "workers send to it";
  const auto& input = p.desired.chains.at({Family::ipv4, netstate::FilterHook::filter_input});
  EXPECT_TRUE(std::ranges::any_of(input, [](const auto& r) { return r.protocol == IPPROTO_ESP; }));
}

TEST(RouteAgentPlan, RecordsOfOtherClustersEndAtGatewaysAndComeFromTheirPrefixesOnly) {
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const auto records_of = [&](const Plan& p) {
      std::vector<netstate::FilterRule> result;
      std::ranges::copy_if(p.desired.chains.at({family, netstate::FilterHook::filter_input}),
                           std::back_inserter(result), [](const auto& r) { return r.dport == 4801; });
      return result;
    };
    const auto rules = records_of(plan(gateway()));
    ASSERT_EQ(rules.size(), 1U) << net::to_string(family);
    EXPECT_EQ(rules[0].src_set, family == Family::ipv4 ? "fabric-remote-4" : "fabric-remote-6");
    EXPECT_EQ(rules[0].dst_set, family == Family::ipv4 ? "fabric-local-4" : "fabric-local-6");
    EXPECT_EQ(rules[0].protocol, IPPROTO_UDP);
    EXPECT_TRUE(records_of(plan(worker())).empty()) << net::to_string(family);
  }
}

TEST(RouteAgentPlan, NothingLeavesAGatewayForARemotePrefixWithoutAPolicy) {
  using netstate::FilterHook;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    SCOPED_TRACE(net::to_string(family));
    const Plan p = plan(gateway());
    netstate::FilterRule drop;
    drop.dst_set = family == Family::ipv4 ? "fabric-remote-4" : "fabric-remote-6";
    drop.untransformed = true;
    drop.action = netstate::Drop{};
    const auto& forward = p.desired.chains.at({family, FilterHook::mangle_forward});
    const auto& out = p.desired.chains.at({family, FilterHook::mangle_postrouting});
    EXPECT_EQ(forward.back(), drop);
    EXPECT_EQ(out.back(), drop);
    // What may pass before it goes to a remote prefix too, and no pod can look like it.
    for (const auto& rule : out)
      EXPECT_EQ(rule.dst_set, drop.dst_set);
    ASSERT_EQ(out.size(), 4U);
    EXPECT_EQ(out[0].out_link, netstate::kVxlanLink) << "another gateway of this cluster may carry it";
    EXPECT_EQ(out[1].protocol, IPPROTO_ESP);
    EXPECT_EQ(out[2].protocol, IPPROTO_UDP);
    EXPECT_EQ(out[2].sport, 4500);
    ASSERT_EQ(forward.size(), 4U);
    EXPECT_EQ(forward[2], out[0]) << "after the clamp, which an accept would skip";
    const Plan w = plan(worker());
    EXPECT_FALSE(w.desired.chains.contains({family, FilterHook::mangle_postrouting})) << "workers have no policies";
    EXPECT_EQ(w.desired.chains.at({family, FilterHook::mangle_forward}).size(), 2U);
  }
  Inputs in = gateway();
  in.natt_port = 4510;
  EXPECT_EQ(plan(in).desired.chains.at({Family::ipv4, FilterHook::mangle_postrouting})[2].sport, 4510);
}

TEST(RouteAgentPlan, SetsHoldBothSidesPerFamily) {
  const Plan p = plan(worker());
  EXPECT_EQ(p.desired.ipsets.at("fabric-local-4").entries, (std::set{cidr("10.1.0.0/16"), cidr("10.101.0.0/16")}));
  EXPECT_EQ(p.desired.ipsets.at("fabric-remote-6").entries, (std::set{cidr("fd10:2::/48")}));
  EXPECT_EQ(p.desired.ipsets.at("fabric-remote-6").family, Family::ipv6);
}

TEST(RouteAgentPlan, RulesDoNotGrowWithTheNumberOfClusters) {
  Inputs in = worker();
  const auto before = plan(in).desired.chains;
  for (int i = 3; i < 200; ++i)
    in.remote_prefixes[fmt::format("c{}", i)] = {cidr(fmt::format("10.{}.0.0/16", i < 101 ? i : i + 2).c_str())};
  EXPECT_EQ(plan(in).desired.chains, before);
}

TEST(RouteAgentPlan, OverlappingPrefixIsNamedAndNotRouted) {
  Inputs in = worker();
  in.remote_prefixes["c"] = {cidr("10.1.128.0/17"), cidr("10.3.0.0/16")};
  const Plan p = plan(in);
  EXPECT_FALSE(p.desired.routes.contains({cidr("10.1.128.0/17")}));
  EXPECT_TRUE(p.desired.routes.contains({cidr("10.3.0.0/16")}));
  ASSERT_EQ(p.findings.size(), 1U);
  EXPECT_EQ(p.findings[0].message,
            "prefix 10.1.128.0/17 of cluster 'c' overlaps 10.1.0.0/16 of this cluster and is not routed; change one of "
            "the two CIDRs");
}

TEST(RouteAgentPlan, UnreadyGatewayIsNotChosen) {
  Inputs in = worker();
  in.gateways = {{.node = "a-n1", .address = ip("172.20.1.11"), .ready = false},
                 {.node = "a-n3", .address = ip("172.20.1.13")}};
  EXPECT_EQ(plan(in).gateway, "a-n3");
  in.gateways.pop_back();
  const Plan unready = plan(in);
  EXPECT_TRUE(has(unready, FindingKind::no_gateway));
  EXPECT_FALSE(unready.desired.routes.empty()) << "without them packets would leave in clear";
  in.gateways.clear();
  const Plan none = plan(in);
  EXPECT_TRUE(has(none, FindingKind::no_gateway));
  EXPECT_TRUE(none.desired.routes.empty());
  EXPECT_FALSE(none.desired.chains.empty()) << "no masquerading stays";
}

TEST(RouteAgentPlan, StrictReversePathFilterIsLoosenedAndStaysLoosened) {
  Inputs in = worker();
  in.facts.sysctls = {{"net/ipv4/conf/all/rp_filter", "0"},
                      {"net/ipv4/conf/eth0/rp_filter", "1"},
                      {"net/ipv4/conf/cni0/rp_filter", "0"}};
  const auto key = "net/ipv4/conf/eth0/rp_filter";
  EXPECT_EQ(plan(in).desired.sysctls, (std::map<std::string, std::string>{{key, "2"}}));
  in.changed_sysctls = plan(in).desired.sysctls;
  in.facts.sysctls[key] = "2";
  EXPECT_EQ(plan(in).desired.sysctls, in.changed_sysctls) << "the second run wants the same";
  in.changed_sysctls.clear();
  EXPECT_TRUE(plan(in).desired.sysctls.empty()) << "what others made loose is not ours";
}

TEST(RouteAgentPlan, StrictDefaultForAllInterfacesIsBeatenPerInterface) {
  Inputs in = worker();
  in.facts.sysctls = {{"net/ipv4/conf/all/rp_filter", "1"}};
  EXPECT_EQ(plan(in).desired.sysctls, (std::map<std::string, std::string>{{"net/ipv4/conf/cni0/rp_filter", "2"},
                                                                          {"net/ipv4/conf/eth0/rp_filter", "2"},
                                                                          {"net/ipv4/conf/vx-fabric/rp_filter", "2"}}));
}

TEST(RouteAgentPlan, ForwardingIsSwitchedOnOnlyWhereItIsOff) {
  Inputs in = worker();
  in.facts.sysctls = {{"net/ipv4/ip_forward", "0"}, {"net/ipv6/conf/all/forwarding", "1"}};
  EXPECT_EQ(plan(in).desired.sysctls, (std::map<std::string, std::string>{{"net/ipv4/ip_forward", "1"}}));
}

TEST(RouteAgentPlan, WithoutCniAddressPodsAreStillServed) {
  Inputs in = worker();
  in.facts.interfaces.pop_back();
  const Plan p = plan(in);
  EXPECT_TRUE(has(p, FindingKind::no_cni_address));
  EXPECT_EQ(p.desired.routes.at({cidr("10.2.0.0/16")}).source, std::nullopt);
}

TEST(RouteAgentPlan, WithoutUplinkNothingIsPlanned) {
  Inputs in = worker();
  in.node_address = ip("172.20.9.9");
  const Plan p = plan(in);
  EXPECT_TRUE(has(p, FindingKind::no_uplink));
  EXPECT_EQ(p.desired, netstate::State{});
}

TEST(RouteAgentPlan, SegmentsFitTheSmallerOfBothTunnels) {
  Inputs in = worker();
  in.encapsulation = {.outer_ipv6 = true, .udp = true};
  const auto mss = [&](Family family) {
    return std::get<netstate::ClampMss>(
               plan(in).desired.chains.at({family, netstate::FilterHook::mangle_forward})[0].action)
        .mss;
  };
  EXPECT_EQ(mss(Family::ipv4), 1500 - 85 - 40);
  EXPECT_EQ(mss(Family::ipv6), 1500 - 85 - 60);
}

TEST(RouteAgentPlan, SameInputsGiveTheSamePlan) {
  EXPECT_EQ(plan(worker()), plan(worker()));
}

}  // namespace
}  // namespace fabric::routeagent
