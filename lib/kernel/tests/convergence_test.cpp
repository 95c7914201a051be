#include <fabric/kernel/composition.hpp>
#include <fabric/kernel/fake_kernel.hpp>
#include <fabric/netstate/diff.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include "build.hpp"

// Properties of diff() and of running its scripts, over random pairs of states on FakeKernel.
namespace fabric::kernel {
namespace {

using namespace netstate;
using namespace netstate::test;

bool coin() {
  return *rc::gen::arbitrary<bool>();
}

int below(int limit) {
  return *rc::gen::inRange(0, limit);
}

const std::string kLink(kVxlanLink);

void arbitrary_sas(State& state) {
  for (std::uint32_t spi = 0x1000; spi < 0x1004; ++spi) {
    for (const bool outbound : {false, true}) {
      if (coin()) continue;
      auto value = sa(outbound ? "192.0.2.1" : "198.51.100.1", spi % 2, coin() ? key_material() : nullptr);
      if (below(8) == 0) value.encap = UdpEncap{4500, 4500};
      state.sas[sa_key(outbound ? "198.51.100.1" : "192.0.2.1", spi)] = value;
    }
  }
}

void arbitrary_policies(State& state) {
  for (int remote = 2; remote < 5; ++remote) {
    const auto prefix = fmt::format("10.{}.0.0/16", remote);
    if (coin()) {
      state.policies[policy_key(Direction::out, "10.1.0.0/16", prefix)] =
          esp("192.0.2.1", coin() ? "198.51.100.1" : "198.51.100.2", 1);
    }
    if (coin()) state.policies[policy_key(Direction::in, prefix, "10.1.0.0/16")] = esp("0.0.0.0", "0.0.0.0", 1);
    if (coin()) state.policies[policy_key(Direction::out, "0.0.0.0/0", prefix)] = block();
    if (coin()) state.policies[policy_key(Direction::in, prefix, "0.0.0.0/0")] = block();
  }
}

void arbitrary_forwarding(State& state) {
  const bool has_link = coin();
  if (has_link) state.links[kLink] = vxlan(coin() ? "192.0.2.1" : "192.0.2.2", coin() ? 1400 : 1300);
  for (std::uint8_t i = 0; i < 3; ++i) {
    const net::Mac mac{{2, 0, 0, 0, 0, i}};
    if (has_link && coin()) state.fdb.insert({kLink, mac, ip(coin() ? "192.0.2.8" : "192.0.2.9")});
    if (has_link && coin()) state.neighbours.insert({kLink, net::IpAddress::v4(169, 254, 0, i), mac});
    if (coin()) {
      const auto link = has_link && coin() ? kLink : std::string("eth0");
      state.routes[{cidr(fmt::format("10.{}.0.0/16", i + 2))}] = {link, {}, {}, coin() ? 1400U : 1300U};
    }
  }
}

void arbitrary_filter(State& state) {
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    std::vector<std::string> names;
    for (const auto* stem : {"fabric-local", "fabric-remote"}) {
      if (coin()) continue;
      const auto name = fmt::format("{}-{}", stem, family == Family::ipv4 ? 4 : 6);
      auto& set = state.ipsets[name];
      set.family = family;
      if (coin()) set.entries.insert(cidr(family == Family::ipv4 ? "10.1.0.0/16" : "fd01::/48"));
      names.push_back(name);
    }
    for (const auto hook : {FilterHook::nat_postrouting, FilterHook::filter_forward}) {
      if (coin()) continue;
      FilterRule rule;
      if (!names.empty() && coin()) rule.src_set = names.front();
      if (!names.empty() && coin()) rule.dst_set = names.back();
      state.chains[{family, hook}] = {rule};
    }
  }
}

State arbitrary_state() {
  State state;
  arbitrary_sas(state);
  arbitrary_policies(state);
  arbitrary_forwarding(state);
  arbitrary_filter(state);
  for (const auto* name : {"net/ipv4/conf/eth0/rp_filter", "net/ipv4/conf/all/rp_filter"}) {
    if (coin()) state.sysctls[name] = coin() ? "2" : "0";
  }
  return state;
}

/// What the kernel shows once `desired` is reached from `before`: SAs that are there stay as they are, and none comes
/// without a key.
State reached(const State& before, const State& desired) {
  auto result = desired;
  std::erase_if(result.sas,
                [&](const auto& entry) { return entry.second.key == nullptr && !before.sas.contains(entry.first); });
  for (auto& [key, value] : result.sas) {
    const auto found = before.sas.find(key);
    if (found != before.sas.end()) value = found->second;
  }
  return result;
}

/// A kernel that holds an arbitrary state.
struct World {
  World() {
    state.sysctls = {{"net/ipv4/conf/eth0/rp_filter", "1"}, {"net/ipv4/conf/all/rp_filter", "1"}};
    drivers.push_back(make_fake_driver(state));
    run_script(diff({}, arbitrary_state(), Slices::all()), drivers);
    before = state.ours;
  }

  Report run(const Script& script) { return run_script(script, drivers); }

  Script towards(const State& desired, Slices owned = Slices::all()) const { return diff(state.ours, desired, owned); }

  FakeKernelState state;
  std::vector<std::unique_ptr<Driver>> drivers;
  State before;
};

TEST(Convergence, OneScriptReachesTheDesiredStateAndTheSecondIsEmpty) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const auto desired = arbitrary_state();
    RC_ASSERT(world.run(world.towards(desired)).ok());
    RC_ASSERT(world.state.ours == reached(world.before, desired));
    RC_ASSERT(world.towards(desired).empty());
  }));
}

TEST(Convergence, LeavesSlicesOfTheOtherAgent) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const auto desired = arbitrary_state();
    RC_ASSERT(world.run(world.towards(desired, kGatewaySlices)).ok());
    auto expected = world.before;
    expected.sas = reached(world.before, desired).sas;
    expected.policies = desired.policies;
    RC_ASSERT(world.state.ours == expected);

    RC_ASSERT(world.run(world.towards(desired, kRouteAgentSlices)).ok());
    RC_ASSERT(world.state.ours == reached(world.before, desired));
  }));
}

TEST(Convergence, NeverTouchesObjectsWithoutOurMark) {
  EXPECT_TRUE(rc::check([] {
    World world;
    auto foreign_sa = sa("203.0.113.1", 0);
    foreign_sa.reqid = Reqid(1);
    const auto key = sa_key("203.0.113.2", 0x9000);
    const auto selector = policy_key(Direction::out, "172.16.0.0/16", "172.17.0.0/16");
    const XfrmPolicy foreign_policy{1000, EspTemplate{ip("203.0.113.1"), ip("203.0.113.2"), Reqid(1)}};
    world.state.ours.sas[key] = foreign_sa;
    world.state.ours.policies[selector] = foreign_policy;
    world.state.ours.ipsets["KUBE-CLUSTER-IP"] = IpSet{};
    world.run(world.towards(arbitrary_state()));
    world.run(world.towards({}));
    State only_foreign;
    only_foreign.sas[key] = foreign_sa;
    only_foreign.policies[selector] = foreign_policy;
    only_foreign.ipsets["KUBE-CLUSTER-IP"] = IpSet{};
    RC_ASSERT(world.state.ours == only_foreign);
  }));
}

TEST(Convergence, AScriptCutAnywhereIsFinishedByTheNext) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const auto desired = arbitrary_state();
    auto script = world.towards(desired);
    script.steps.resize(static_cast<std::size_t>(below(static_cast<int>(script.steps.size()) + 1)));
    RC_ASSERT(world.run(script).ok());
    RC_ASSERT(world.run(world.towards(desired)).ok());
    RC_ASSERT(world.state.ours == reached(world.before, desired));
  }));
}

TEST(Convergence, OneFailureCausesNoOtherAndIsMendedByTheNextScript) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const auto desired = arbitrary_state();
    const auto script = world.towards(desired);
    RC_PRE(!script.empty());
    const auto victim = script.steps[static_cast<std::size_t>(below(static_cast<int>(script.steps.size())))];
    world.state.fail_next([victim](const Step& step) { return step == victim; }, ENOMEM);
    RC_ASSERT(world.run(script).count(Outcome::failed) == 1U);
    RC_ASSERT(world.run(world.towards(desired)).ok());
    RC_ASSERT(world.state.ours == reached(world.before, desired));
  }));
}

/// Whether everything that both states hold is there now.
template <class Map>
bool keeps(const Map& before, const Map& after, const Map& now) {
  for (const auto& [key, value] : before) {
    const auto wanted = after.find(key);
    if (wanted != after.end() && wanted->second == value && !now.contains(key)) return false;
  }
  return true;
}

TEST(Convergence, NothingThatStaysIsEverMissing) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const auto desired = arbitrary_state();
    for (const auto& step : world.towards(desired).steps) {
      RC_ASSERT(world.state.carry_out(step).has_value());
      RC_ASSERT(keeps(world.before.sas, desired.sas, world.state.ours.sas));
      RC_ASSERT(keeps(world.before.policies, desired.policies, world.state.ours.policies));
      RC_ASSERT(keeps(world.before.ipsets, desired.ipsets, world.state.ours.ipsets));
      RC_ASSERT(keeps(world.before.chains, desired.chains, world.state.ours.chains));
    }
  }));
}

TEST(Convergence, NoTrafficIsAttractedBeforeItsBlockPolicyOrAfterIt) {
  EXPECT_TRUE(rc::check([] {
    World world;
    // A gateway: routes to remote prefixes always come with block policies.
    const auto guarded = [](State state) {
      std::erase_if(state.routes, [](const auto& route) { return route.second.link != "eth0"; });
      for (const auto& [key, route] : state.routes) {
        state.policies[{Direction::out, net::Cidr::any(Family::ipv4), key.dst}] = block();
      }
      return state;
    };
    world.run(world.towards(guarded(arbitrary_state())));
    for (const auto& step : world.towards(guarded(arbitrary_state())).steps) {
      RC_ASSERT(world.state.carry_out(step).has_value());
      for (const auto& [key, route] : world.state.ours.routes) {
        RC_ASSERT(world.state.ours.policies.contains({Direction::out, net::Cidr::any(Family::ipv4), key.dst}));
      }
    }
  }));
}

TEST(Convergence, DesiringNothingLeavesNothingAndRestoresSysctls) {
  EXPECT_TRUE(rc::check([] {
    World world;
    RC_ASSERT(world.run(world.towards({})).ok());
    RC_ASSERT(world.state.ours == State{});
    for (const auto& [name, value] : world.state.sysctls)
      RC_ASSERT(value == "1");
  }));
}

}  // namespace
}  // namespace fabric::kernel
