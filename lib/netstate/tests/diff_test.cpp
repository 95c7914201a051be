#include <fabric/netstate/diff.hpp>

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "build.hpp"

namespace fabric::netstate {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kLocal = "192.0.2.1";
constexpr std::string_view kRemote = "198.51.100.1";

std::vector<std::string> described(const Script& script) {
  std::vector<std::string> result;
  for (const auto& step : script.steps)
    result.push_back(describe(step));
  return result;
}

/// A gateway with one peer: policies, and one SA in each direction.
State gateway() {
  State state;
  state.policies[policy_key(Direction::out, "10.1.0.0/16", "10.2.0.0/16")] = esp(kLocal, kRemote, 7);
  state.policies[policy_key(Direction::in, "10.2.0.0/16", "10.1.0.0/16")] = esp("0.0.0.0", "0.0.0.0", 7);
  state.policies[policy_key(Direction::out, "0.0.0.0/0", "10.2.0.0/16")] = block();
  state.sas[sa_key(kRemote, 0x2000)] = sa(kLocal, 7);
  state.sas[sa_key(kLocal, 0x1000)] = sa(kRemote, 7);
  return state;
}

TEST(Diff, OfEqualStatesIsEmpty) {
  EXPECT_TRUE(diff(gateway(), gateway(), Slices::all()).empty());
}

TEST(Diff, InstallsInboundThenBlockThenEspThenOutbound) {
  EXPECT_THAT(described(diff({}, gateway(), kGatewaySlices)),
              ElementsAre("add SA 198.51.100.1 -> 192.0.2.1 spi 0x00001000 reqid 0x46000007",
                          "add policy out 0.0.0.0/0 -> 10.2.0.0/16 block",
                          "add policy in 10.2.0.0/16 -> 10.1.0.0/16 reqid 0x46000007",
                          "add policy out 10.1.0.0/16 -> 10.2.0.0/16 reqid 0x46000007",
                          "add SA 192.0.2.1 -> 198.51.100.1 spi 0x00002000 reqid 0x46000007"));
}

TEST(Diff, RemovesBlockPoliciesLast) {
  EXPECT_THAT(described(diff(gateway(), {}, kGatewaySlices)),
              ElementsAre("remove SA 192.0.2.1 -> 198.51.100.1 spi 0x00002000 reqid 0x46000007",
                          "remove policy in 10.2.0.0/16 -> 10.1.0.0/16 reqid 0x46000007",
                          "remove policy out 10.1.0.0/16 -> 10.2.0.0/16 reqid 0x46000007",
                          "remove SA 198.51.100.1 -> 192.0.2.1 spi 0x00001000 reqid 0x46000007",
                          "remove policy out 0.0.0.0/0 -> 10.2.0.0/16 block"));
}

TEST(Diff, AddsTheNewSaBeforeItRemovesTheOld) {
  auto desired = gateway();
  desired.sas.erase(sa_key(kRemote, 0x2000));
  desired.sas[sa_key(kRemote, 0x2001)] = sa(kLocal, 7, key_material(2));
  EXPECT_THAT(described(diff(gateway(), desired, kGatewaySlices)),
              ElementsAre("add SA 192.0.2.1 -> 198.51.100.1 spi 0x00002001 reqid 0x46000007",
                          "remove SA 192.0.2.1 -> 198.51.100.1 spi 0x00002000 reqid 0x46000007"));
}

TEST(Diff, NeverInventsAnSaWithoutKey) {
  auto desired = gateway();
  for (auto& [key, sa] : desired.sas)
    sa.key = nullptr;
  auto observed = gateway();
  observed.sas.clear();
  EXPECT_TRUE(diff(observed, desired, Slices::all()).empty());
}

TEST(Diff, ReportsAnSaWithOtherAttributesAndLeavesIt) {
  struct Row {
    std::string name;
    void (*change)(Sa&);
    std::string reason;
  };

  const std::vector<Row> rows{
      {"source", [](Sa& sa) { sa.saddr = ip("203.0.113.9"); }, "source: desired 192.0.2.1, installed 203.0.113.9"},
      {"reqid", [](Sa& sa) { sa.reqid = Reqid(kReqidBase | 8); }, "reqid: desired 0x46000007, installed 0x46000008"},
      {"suite", [](Sa& sa) { sa.aead = Aead::chacha20_poly1305; }, "suite"},
      {"encapsulation", [](Sa& sa) { sa.encap = UdpEncap{4500, 4501}; }, "installed UDP 4500 -> 4501"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    auto observed = gateway();
    row.change(observed.sas[sa_key(kRemote, 0x2000)]);
    const auto script = diff(observed, gateway(), Slices::all());
    EXPECT_THAT(script.steps, IsEmpty());
    ASSERT_EQ(script.findings.size(), 1U);
    EXPECT_EQ(script.findings[0].sa, sa_key(kRemote, 0x2000));
    EXPECT_THAT(script.findings[0].reason, HasSubstr(row.reason));
  }
}

TEST(Diff, LeavesSlicesOfOthersAlone) {
  auto desired = gateway();
  desired.sysctls["net/ipv4/conf/eth0/rp_filter"] = "2";
  const auto script = diff({}, desired, {Slice::sysctls});
  EXPECT_THAT(described(script), ElementsAre("add sysctl net/ipv4/conf/eth0/rp_filter = 2"));
}

TEST(Diff, IgnoresWhatCarriesNoMarkOfOurs) {
  State observed;
  auto foreign = sa(kLocal, 0);
  foreign.reqid = Reqid(1);
  observed.sas[sa_key(kRemote, 0x3000)] = foreign;
  observed.policies[policy_key(Direction::out, "10.8.0.0/16", "10.9.0.0/16")] = {
      1000, EspTemplate{ip(kLocal), ip(kRemote), Reqid(1)}};
  observed.policies[policy_key(Direction::out, "0.0.0.0/0", "10.9.0.0/16")] = {1000, BlockAction{}};
  observed.links["vxlan.calico"] = vxlan();
  observed.ipsets["KUBE-CLUSTER-IP"] = IpSet{};
  EXPECT_TRUE(diff(observed, {}, Slices::all()).empty());
}

TEST(Diff, ReplacesTheGatewayBehindAMacInPlace) {
  const FdbEntry before{"vx-fabric", net::Mac{{2, 0, 0, 0, 0, 9}}, ip("192.0.2.8")};
  auto after = before;
  after.remote = ip("192.0.2.9");
  State observed;
  observed.fdb = {before};
  State desired;
  desired.fdb = {after};
  EXPECT_THAT(described(diff(observed, desired, Slices::all())),
              ElementsAre("replace FDB entry 02:00:00:00:00:09 -> 192.0.2.9 on vx-fabric"));
}

TEST(Diff, RestoresWhatHungOnALinkThatIsCreatedAnew) {
  State observed;
  observed.links["vx-fabric"] = vxlan();
  observed.fdb = {{"vx-fabric", net::Mac{{2, 0, 0, 0, 0, 9}}, ip("192.0.2.9")}};
  observed.routes[{cidr("10.2.0.0/16")}] = {"vx-fabric", {}, {}, 1400};
  observed.routes[{cidr("10.3.0.0/16")}] = {"vx-fabric", {}, {}, 1400};
  auto desired = observed;
  desired.links["vx-fabric"] = vxlan("192.0.2.77");
  desired.routes.erase({cidr("10.3.0.0/16")});
  EXPECT_THAT(described(diff(observed, desired, Slices::all())),
              ElementsAre("replace link vx-fabric vni 100 mtu 1400",
                          "replace FDB entry 02:00:00:00:00:09 -> 192.0.2.9 on vx-fabric",
                          "replace route 10.2.0.0/16 on vx-fabric"));
}

TEST(Diff, KeepsWhatHangsOnALinkWhoseMtuChanges) {
  State observed;
  observed.links["vx-fabric"] = vxlan();
  observed.routes[{cidr("10.2.0.0/16")}] = {"vx-fabric", {}, {}, 1400};
  auto desired = observed;
  desired.links["vx-fabric"].mtu = 1300;
  EXPECT_THAT(described(diff(observed, desired, Slices::all())),
              ElementsAre("replace link vx-fabric vni 100 mtu 1300"));
}

/// One step of a script by its description, to ask for dependencies between real steps.
Step step(const Script& script, std::string_view description) {
  for (const auto& candidate : script.steps) {
    if (describe(candidate).find(description) != std::string::npos) return candidate;
  }
  ADD_FAILURE() << "no step " << description;
  return {};
}

TEST(DependsOn, KeepsOldSasOfAClusterWhoseNewOneFailed) {
  auto desired = gateway();
  desired.sas = {{sa_key(kRemote, 0x2001), sa(kLocal, 7)}, {sa_key("203.0.113.1", 0x5001), sa(kLocal, 8)}};
  const auto script = diff(gateway(), desired, Slices::all());
  const auto removal = step(script, "remove SA 192.0.2.1 -> 198.51.100.1");
  EXPECT_TRUE(depends_on(removal, step(script, "spi 0x00002001")));
  EXPECT_FALSE(depends_on(removal, step(script, "spi 0x00005001"))) << "another cluster's failure";
}

TEST(DependsOn, KeepsTheBlockPolicyWhileItsEspPolicyRemains) {
  const auto script = diff(gateway(), {}, Slices::all());
  const auto block_removal = step(script, "block");
  EXPECT_TRUE(depends_on(block_removal, step(script, "remove policy out 10.1.0.0/16")));
  EXPECT_FALSE(depends_on(block_removal, step(script, "remove policy in"))) << "another direction";
}

TEST(DependsOn, AttractsNoTrafficWithoutABlockPolicy) {
  auto desired = gateway();
  desired.routes[{cidr("10.2.0.0/16")}] = {"eth0", {}, {}, 0};
  desired.routes[{cidr("10.3.0.0/16")}] = {"eth0", {}, {}, 0};
  const auto script = diff({}, desired, Slices::all());
  const auto block_step = step(script, "block");
  EXPECT_TRUE(depends_on(step(script, "route 10.2.0.0/16"), block_step));
  EXPECT_FALSE(depends_on(step(script, "route 10.3.0.0/16"), block_step));
  EXPECT_FALSE(depends_on(step(script, "add SA 192.0.2.1"), block_step)) << "outbound SAs are independent";
}

TEST(DependsOn, NeedsTheLinkAndTheSets) {
  State desired;
  desired.links["vx-fabric"] = vxlan();
  desired.neighbours = {{"vx-fabric", ip("169.254.1.1"), net::Mac{}}};
  desired.routes[{cidr("10.2.0.0/16")}] = {"vx-fabric", {}, {}, 0};
  desired.routes[{cidr("10.3.0.0/16")}] = {"eth0", {}, {}, 0};
  desired.ipsets["fabric-local-4"] = IpSet{};
  desired.ipsets["fabric-remote-4"] = IpSet{};
  FilterRule rule;
  rule.src_set = "fabric-local-4";
  desired.chains[{Family::ipv4, FilterHook::filter_forward}] = {rule};
  const auto script = diff({}, desired, Slices::all());
  const auto link = step(script, "link vx-fabric");
  EXPECT_TRUE(depends_on(step(script, "neighbour"), link));
  EXPECT_TRUE(depends_on(step(script, "route 10.2.0.0/16"), link));
  EXPECT_FALSE(depends_on(step(script, "route 10.3.0.0/16"), link));
  EXPECT_TRUE(depends_on(step(script, "chain"), step(script, "fabric-local-4")));
  EXPECT_FALSE(depends_on(step(script, "chain"), step(script, "fabric-remote-4")));
  EXPECT_FALSE(depends_on(link, step(script, "chain"))) << "only later steps depend";
}

TEST(DependsOn, KeepsSetsWhileAChainOfTheirFamilyFailed) {
  State observed;
  observed.ipsets["fabric-local-4"] = IpSet{Family::ipv4, {}};
  observed.ipsets["fabric-local-6"] = IpSet{Family::ipv6, {}};
  observed.chains[{Family::ipv4, FilterHook::filter_forward}] = {FilterRule{}};
  const auto script = diff(observed, {}, Slices::all());
  const auto chain = step(script, "chain");
  EXPECT_TRUE(depends_on(step(script, "fabric-local-4"), chain));
  EXPECT_FALSE(depends_on(step(script, "fabric-local-6"), chain));
}

TEST(Describe, NeverShowsKeyMaterial) {
  const SaObject object{sa_key(kRemote, 0x2000), sa(kLocal, 7, key_material(0xAB))};
  EXPECT_EQ(describe({Phase::outbound_sas, Verb::add, object}),
            "add SA 192.0.2.1 -> 198.51.100.1 spi 0x00002000 reqid 0x46000007");
}

}  // namespace
}  // namespace fabric::netstate
