#include <fabric/kernel/filter.hpp>
#include <fabric/netstate/ownership.hpp>

#include <chrono>
#include <fcntl.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>

#include "../../route/tests/network.hpp"

namespace fabric::kernel::test {

namespace {

using netstate::Accept;
using netstate::ChainKey;
using netstate::ClampMss;
using netstate::Drop;
using netstate::Family;
using netstate::FilterBackend;
using netstate::FilterHook;
using netstate::FilterRule;
using netstate::KeepSource;
using netstate::SourceNat;
using netstate::State;
using testing::HasSubstr;
using testing::Not;

std::string set_name(std::string_view kind, Family family) {
  return fmt::format("fabric-{}-{}", kind, family == Family::ipv4 ? 4 : 6);
}

FilterRule between(std::string_view from, std::string_view to, Family family, decltype(FilterRule::action) action) {
  FilterRule rule;
  rule.src_set = set_name(from, family);
  rule.dst_set = set_name(to, family);
  rule.action = action;
  return rule;
}

FilterRule port(std::uint8_t protocol, std::optional<std::uint16_t> number) {
  FilterRule rule;
  rule.protocol = protocol;
  rule.dport = number;
  return rule;
}

/// What keeps a gateway node from sending in clear, and a rule with both ports.
void add_clear_text_rules(State& state, Family family) {
  FilterRule to_remote;
  to_remote.dst_set = set_name("remote", family);
  FilterRule drop = to_remote;
  drop.untransformed = true;
  drop.action = Drop{};
  FilterRule to_gateway = to_remote;
  to_gateway.out_link = "vx-fabric";
  FilterRule esp = to_remote;
  esp.protocol = std::uint8_t{IPPROTO_ESP};
  FilterRule esp_in_udp = to_remote;
  esp_in_udp.protocol = std::uint8_t{IPPROTO_UDP};
  esp_in_udp.sport = 4500;
  FilterRule both = esp_in_udp;
  both.protocol = std::uint8_t{IPPROTO_TCP};
  both.dport = 443;
  auto& forward = state.chains[{family, FilterHook::mangle_forward}];
  forward.insert(forward.end(), {to_gateway, drop});
  state.chains[{family, FilterHook::mangle_postrouting}] = {to_gateway, esp, esp_in_udp, both, drop};
}

/// What a gateway node has, with every kind of rule.
State gateway() {
  State state;
  state.ipsets["fabric-local-4"] = {Family::ipv4, {cidr("10.1.0.0/16"), cidr("10.96.0.0/16")}};
  state.ipsets["fabric-remote-4"] = {Family::ipv4, {cidr("10.2.0.0/16"), cidr("10.3.0.0/16"), cidr("192.0.2.77/32")}};
  state.ipsets["fabric-local-6"] = {Family::ipv6, {cidr("fd01::/48")}};
  state.ipsets["fabric-remote-6"] = {Family::ipv6, {cidr("fd02::/48"), cidr("fd02:1::/48"), cidr("fd03::1/128")}};
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    const auto both = [&](decltype(FilterRule::action) action) {
      return std::vector{between("local", "remote", family, action), between("remote", "local", family, action)};
    };
    state.chains[{family, FilterHook::nat_postrouting}] = both(KeepSource{});
    state.chains[{family, FilterHook::filter_forward}] = both(Accept{});
    state.chains[{family, FilterHook::mangle_forward}] = both(ClampMss{1300});
    state.chains[{family, FilterHook::filter_input}] = {port(IPPROTO_UDP, 4800), port(IPPROTO_UDP, 4500),
                                                        port(IPPROTO_ESP, std::nullopt)};
    FilterRule host;
    host.out_link = "vx-fabric";
    host.dst_set = set_name("remote", family);
    host.action = SourceNat{ip(family == Family::ipv4 ? "10.1.0.1" : "fd01::1")};
    state.chains[{family, FilterHook::nat_postrouting}].push_back(host);
    FilterRule tcp = port(IPPROTO_TCP, 443);
    tcp.in_link = "eth0";
    state.chains[{family, FilterHook::filter_input}].push_back(tcp);
    state.chains[{family, FilterHook::filter_input}].push_back(port(IPPROTO_TCP, std::nullopt));
    add_clear_text_rules(state, family);
  }
  return state;
}

/// Without the rules that stop packets for remote prefixes, for tests that send some where no tunnel is.
State passable() {
  auto state = gateway();
  for (auto& [key, rules] : state.chains)
    std::erase_if(rules, [](const FilterRule& rule) { return rule.untransformed; });
  return state;
}

/// All rules and sets. Legacy tables print by name, since the order of saved tables changes and empty ones stay loaded.
std::string everything() {
  return output_of(
      "nft list ruleset; ipset save; for t in nat filter mangle; do for i in iptables ip6tables; do "
      "$i-legacy-save -t $t | grep '^-'; done; $i-legacy-save -t $t | grep FABRIC; done");
}

std::unique_ptr<PacketFilter> open_filter(std::optional<FilterBackend> backend) {
  auto opened = PacketFilter::open({.backend = backend});
  EXPECT_TRUE(opened) << opened.error().message();
  return *std::move(opened);
}

class FilterTest : public NetworkTest, public testing::WithParamInterface<FilterBackend> {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    filter = open_filter(GetParam());
  }

  static bool nft() { return GetParam() == FilterBackend::nft; }

  std::unique_ptr<PacketFilter> filter;
};

TEST_P(FilterTest, ShowsWhatWasAppliedAndThenFindsNothingToDo) {
  converge(*filter, gateway());
  expect_state(observed(*filter), gateway());
  EXPECT_EQ(converge(*filter, gateway()), 0U);
  filter = open_filter(GetParam());
  expect_state(observed(*filter), gateway());
}

TEST_P(FilterTest, WritesWhatTheToolOfTheBackendReadsTheSameWay) {
  converge(*filter, gateway());
  if (nft()) {
    const auto rules = output_of("nft -n -n list table ip fabric");
    EXPECT_THAT(rules, HasSubstr("ip saddr @fabric-local-4 ip daddr @fabric-remote-4 snat to ip saddr\n"));
    EXPECT_THAT(rules, HasSubstr("oifname \"vx-fabric\" ip daddr @fabric-remote-4 snat to 10.1.0.1\n"));
    EXPECT_THAT(rules, HasSubstr("tcp option maxseg size > 1300 tcp option maxseg size set 1300\n"));
    EXPECT_THAT(rules, HasSubstr("ip daddr @fabric-remote-4 rt ipsec "));
    EXPECT_THAT(rules, HasSubstr("ip daddr @fabric-remote-4 udp sport 4500 accept\n"));
    return;
  }
  for (const auto& [tool, family, address] :
       {std::tuple{"iptables-legacy", 4, "10.1.0.1"}, std::tuple{"ip6tables-legacy", 6, "fd01::1"}}) {
    const auto listed = [&](const char* table) {
      return output_of(fmt::format("{}-save -t {} | grep -- '-A FABRIC'", tool, table));
    };
    const auto out = fmt::format("--match-set fabric-local-{0} src -m set --match-set fabric-remote-{0} dst", family);
    const auto in = fmt::format("--match-set fabric-remote-{0} src -m set --match-set fabric-local-{0} dst", family);
    EXPECT_EQ(listed("nat"),
              fmt::format("-A FABRIC-POSTROUTING -m set {0} -j ACCEPT\n-A FABRIC-POSTROUTING -m set {1} -j ACCEPT\n"
                          "-A FABRIC-POSTROUTING -o vx-fabric -m set --match-set fabric-remote-{2} dst -j SNAT "
                          "--to-source {3}\n",
                          out, in, family, address));
    const std::string clamp = "-p tcp -m set {0} -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1300\n";
    const auto remote = fmt::format("-m set --match-set fabric-remote-{} dst", family);
    const auto drop = remote + " -m policy --dir out --pol none -j DROP\n";
    EXPECT_EQ(listed("mangle"),
              fmt::format("-A FABRIC-CLEAR-TEXT -o vx-fabric {0} -j ACCEPT\n-A FABRIC-CLEAR-TEXT -p esp {0} -j ACCEPT\n"
                          "-A FABRIC-CLEAR-TEXT -p udp {0} -m udp --sport 4500 -j ACCEPT\n"
                          "-A FABRIC-CLEAR-TEXT -p tcp {0} -m tcp --sport 4500 --dport 443 -j ACCEPT\n"
                          "-A FABRIC-CLEAR-TEXT {1}",
                          remote, drop) +
                  fmt::format(fmt::runtime("-A FABRIC-MANGLE " + clamp), out) +
                  fmt::format(fmt::runtime("-A FABRIC-MANGLE " + clamp), in) +
                  fmt::format("-A FABRIC-MANGLE -o vx-fabric {} -j ACCEPT\n-A FABRIC-MANGLE {}", remote, drop));
    EXPECT_THAT(listed("filter"), HasSubstr("-A FABRIC-INPUT -p udp -m udp --dport 4800 -j ACCEPT\n"));
    EXPECT_THAT(listed("filter"), HasSubstr("-A FABRIC-INPUT -p esp -j ACCEPT\n"));
    EXPECT_THAT(listed("filter"), HasSubstr("-A FABRIC-INPUT -i eth0 -p tcp -m tcp --dport 443 -j ACCEPT\n"));
  }
}

TEST_P(FilterTest, RestoringWhatIptablesSavedChangesNothing) {
  if (nft()) return;  // libnftables itself reads and writes that one.
  converge(*filter, gateway());
  run("iptables-legacy-save | iptables-legacy-restore; ip6tables-legacy-save | ip6tables-legacy-restore");
  expect_state(observed(*filter), gateway());
}

TEST_P(FilterTest, RemovesEverythingOfOursAndNothingElse) {
  run("iptables-legacy -t nat -A POSTROUTING -s 10.0.0.0/8 -j MASQUERADE; iptables-legacy -N FOREIGN; "
      "iptables-legacy -A FORWARD -j FOREIGN; ip6tables-legacy -t mangle -A FORWARD -j ACCEPT; "
      "ipset create foreign hash:net; ipset add foreign 10.0.0.0/8; "
      "iptables-legacy -A INPUT -m set --match-set foreign src -j DROP");
  if (detect_filter_backend().nft_supported) {
    run("nft add table ip other '{ set s { type ipv4_addr; flags interval; elements = { 10.0.0.0/8 } }; "
        "chain c { type nat hook postrouting priority 100; ip saddr @s masquerade; }; }'");
  }
  const auto before = everything();
  converge(*filter, gateway());
  EXPECT_NE(everything(), before);
  converge(*filter, {});
  EXPECT_EQ(everything(), before);
}

TEST_P(FilterTest, FollowsChangesOfRulesAndSets) {
  converge(*filter, gateway());
  auto desired = gateway();
  desired.ipsets["fabric-remote-4"].entries = {cidr("10.2.0.0/15"), cidr("10.5.0.0/16")};
  desired.ipsets["fabric-extra-4"] = {Family::ipv4, {}};
  desired.chains[{Family::ipv4, FilterHook::mangle_forward}].pop_back();
  desired.chains.erase({Family::ipv6, FilterHook::filter_forward});
  desired.chains[{Family::ipv4, FilterHook::filter_forward}].push_back(
      between("extra", "local", Family::ipv4, Accept{}));
  converge(*filter, desired);
  expect_state(observed(*filter), desired);
  converge(*filter, gateway());
  expect_state(observed(*filter), gateway());
}

TEST_P(FilterTest, HoldsTheWholeAddressSpaceAndNothing) {
  auto desired = gateway();
  desired.ipsets["fabric-remote-4"].entries = {cidr("0.0.0.0/0")};
  desired.ipsets["fabric-remote-6"].entries = {cidr("::/0")};
  desired.ipsets["fabric-local-4"].entries = {};
  converge(*filter, desired);
  expect_state(observed(*filter), desired);
}

TEST_P(FilterTest, LeavesOutPrefixesThatOthersContain) {
  auto desired = gateway();
  desired.ipsets["fabric-remote-4"].entries = {cidr("10.0.0.0/8"), cidr("10.2.0.0/16")};
  converge(*filter, desired);
  EXPECT_EQ(observed(*filter).ipsets["fabric-remote-4"].entries, std::set{cidr("10.0.0.0/8")});
}

TEST_P(FilterTest, RepairsWhatOthersChanged) {
  const std::vector<std::pair<const char*, const char*>> drifts =
      nft() ? std::vector<std::pair<const char*, const char*>>{
                  {"table deleted", "nft delete table ip fabric"},
                  {"chain flushed", "nft flush chain ip fabric FABRIC-POSTROUTING"},
                  {"chain deleted", "nft delete chain ip6 fabric FABRIC-INPUT"},
                  {"rule added", "nft add rule ip fabric FABRIC-INPUT tcp dport 22 drop"},
                  {"rule with a counter", "nft insert rule ip6 fabric FABRIC-INPUT counter accept"},
                  {"foreign chain", "nft add chain ip fabric foreign"},
                  {"element deleted", "nft delete element ip fabric fabric-remote-4 '{ 10.2.0.0/16 }'"},
                  {"element added", "nft add element ip6 fabric fabric-remote-6 '{ fd09::/64 }'"},
                  {"set flushed", "nft flush set ip fabric fabric-local-4"},
                  {"drop of transformed packets",
                   "nft insert rule ip fabric FABRIC-CLEAR-TEXT ip daddr @fabric-remote-4 rt ipsec exists drop"},
                  {"policy", "nft chain ip fabric FABRIC-FORWARD '{ policy drop; }'"},
              }
            : std::vector<std::pair<const char*, const char*>>{
                  {"jump deleted", "iptables-legacy -t nat -D POSTROUTING 1"},
                  {"jump no longer first", "iptables-legacy -I FORWARD -j ACCEPT"},
                  {"jump twice", "ip6tables-legacy -A INPUT -j FABRIC-INPUT"},
                  {"chain flushed", "iptables-legacy -F FABRIC-INPUT"},
                  {"rule added", "iptables-legacy -A FABRIC-INPUT -p tcp --dport 22 -j DROP"},
                  {"rule with an address", "iptables-legacy -I FABRIC-INPUT -s 10.9.9.9 -j ACCEPT"},
                  {"rule with a port range", "iptables-legacy -I FABRIC-INPUT -p udp --dport 4800:4900 -j ACCEPT"},
                  {"rule negated", "ip6tables-legacy -I FABRIC-INPUT ! -p udp -j ACCEPT"},
                  {"rule with a negated set",
                   "iptables-legacy -I FABRIC-FORWARD -m set ! --match-set fabric-local-4 src -j ACCEPT"},
                  {"rule deleted", "ip6tables-legacy -t mangle -D FABRIC-MANGLE 1"},
                  {"drop of transformed packets",
                   "iptables-legacy -t mangle -I FABRIC-CLEAR-TEXT -m set --match-set fabric-remote-4 dst "
                   "-m policy --dir out --pol ipsec -j DROP"},
                  {"jump to the last drop deleted", "ip6tables-legacy -t mangle -D POSTROUTING 1"},
                  {"table flushed", "iptables-legacy -t nat -F; iptables-legacy -t nat -X"},
                  {"element deleted", "ipset del fabric-remote-4 10.2.0.0/16"},
                  {"element added", "ipset add fabric-remote-6 fd09::/64"},
                  {"set flushed", "ipset flush fabric-local-4"},
                  {"stand-in left over", "ipset create fabric-new hash:ip; ipset flush fabric-local-4"},
              };
  for (const auto& [name, command] : drifts) {
    SCOPED_TRACE(name);
    converge(*filter, gateway());
    run(command);
    EXPECT_GT(converge(*filter, gateway()), 0U);
    expect_state(observed(*filter), gateway());
  }
}

TEST_P(FilterTest, EntersItsChainsBeforeThoseOfOthers) {
  run("iptables-legacy -t nat -A POSTROUTING -j MASQUERADE");
  converge(*filter, gateway());
  run("iptables-legacy -t nat -I POSTROUTING -j MASQUERADE");
  converge(*filter, gateway());
  const auto rules = output_of("iptables-legacy -t nat -S POSTROUTING | grep -v '^-P' | head -1");
  if (!nft()) EXPECT_EQ(rules, "-A POSTROUTING -j FABRIC-POSTROUTING\n");
  if (nft()) EXPECT_THAT(output_of("nft list chain ip fabric FABRIC-POSTROUTING"), HasSubstr("priority srcnat - 10"));
}

TEST_P(FilterTest, RefusesWhatNoBackendCanExpressAndWritesTheRest) {
  const auto in = [](FilterHook hook, FilterRule rule) {
    return netstate::Step{.phase = netstate::Phase::chains,
                          .verb = netstate::Verb::add,
                          .object = netstate::ChainObject{{Family::ipv4, hook}, {std::move(rule)}}};
  };
  FilterRule injection;
  injection.src_set = "x accept; flush ruleset";
  FilterRule long_link;
  long_link.in_link = "a-name-of-sixteen";
  FilterRule translation;
  translation.action = SourceNat{ip("fd01::1")};
  FilterRule keep;
  keep.action = KeepSource{};
  FilterRule clamp;
  clamp.action = ClampMss{1300};
  FilterRule drop;
  drop.dst_set = "fabric-remote-4";
  drop.untransformed = true;
  drop.action = Drop{};
  FilterRule drop_to_anywhere = drop;
  drop_to_anywhere.dst_set.reset();
  FilterRule drop_of_everything = drop;
  drop_of_everything.untransformed = false;
  FilterRule from_link = drop;
  from_link.in_link = "eth0";
  FilterRule outgoing_input;
  outgoing_input.untransformed = true;
  FilterRule source_port;
  source_port.sport = 4500;
  const netstate::Step wrong[] = {
      in(FilterHook::filter_forward, drop),
      in(FilterHook::nat_postrouting, drop),
      in(FilterHook::mangle_postrouting, drop_to_anywhere),
      in(FilterHook::mangle_forward, drop_of_everything),
      in(FilterHook::mangle_postrouting, from_link),
      in(FilterHook::mangle_postrouting, clamp),
      in(FilterHook::filter_input, outgoing_input),
      in(FilterHook::mangle_postrouting, source_port),
      in(FilterHook::filter_forward, keep),
      in(FilterHook::nat_postrouting, FilterRule{}),
      in(FilterHook::filter_input, clamp),
      in(FilterHook::nat_postrouting, translation),
      in(FilterHook::filter_input, port(50, 4800)),
      in(FilterHook::filter_input, injection),
      in(FilterHook::filter_input, long_link),
      {.phase = netstate::Phase::ipsets, .verb = netstate::Verb::add, .object = netstate::IpSetObject{"foreign", {}}},
      {.phase = netstate::Phase::ipsets,
       .verb = netstate::Verb::add,
       .object = netstate::IpSetObject{"fabric-remote-6", {Family::ipv6, {cidr("10.0.0.0/8")}}}}};
  for (const auto& step : wrong) {
    const auto result = filter->apply(std::span(&step, 1)).front();
    ASSERT_FALSE(result) << netstate::describe(step);
    EXPECT_EQ(result.error().code, Errc::invalid) << result.error().message();
  }
  expect_state(observed(*filter), State{});
  const netstate::Step mixed[] = {in(FilterHook::filter_forward, keep),
                                  in(FilterHook::filter_input, port(IPPROTO_UDP, 4800))};
  const auto results = filter->apply(mixed);
  EXPECT_FALSE(results[0]);
  EXPECT_TRUE(results[1]);
  EXPECT_EQ(observed(*filter).chains.size(), 1U);
}

TEST_P(FilterTest, DropsWhatNoPolicyTransformsButNotWhatIsTransformedAlready) {
  const auto peer = make_peer();
  run("ip route add 10.2.0.0/16 via 192.0.2.2; ip route add fd02::/48 via fd00:ee::2");
  peer.enter();
  run("ip addr add 10.2.0.1 dev lo; ip addr add fd02::1 dev lo nodad");
  await_addresses();
  const UdpSocket receiver4("10.2.0.1", 7000);
  const UdpSocket receiver6("fd02::1", 7000);
  home.enter();
  const auto sent = [](const char* source, std::uint16_t from, const char* to) {
    return UdpSocket(source, from).send(to, 7000);
  };
  converge(*filter, passable());
  EXPECT_TRUE(sent("192.0.2.1", 0, "10.2.0.1"));
  EXPECT_TRUE(sent("fd00:ee::1", 0, "fd02::1"));
  EXPECT_TRUE(receiver4.receive() && receiver6.receive()) << "no way to the peer, so the test shows nothing";
  converge(*filter, gateway());
  EXPECT_FALSE(sent("192.0.2.1", 0, "10.2.0.1"));
  EXPECT_FALSE(sent("fd00:ee::1", 0, "fd02::1"));
  EXPECT_TRUE(sent("192.0.2.1", 0, "192.0.2.2")) << "no remote prefix";
  // ESP in UDP, as it looks after the transformation.
  EXPECT_TRUE(sent("192.0.2.1", 4500, "10.2.0.1"));
  EXPECT_TRUE(sent("fd00:ee::1", 4500, "fd02::1"));
  EXPECT_TRUE(receiver4.receive() && receiver6.receive());
  run("ip link set eth0 down; ip link set eth0 name vx-fabric; ip link set vx-fabric up; "
      "ip route replace 10.2.0.0/16 via 192.0.2.2");
  EXPECT_TRUE(sent("192.0.2.1", 0, "10.2.0.1")) << "another gateway carries it";
  EXPECT_TRUE(receiver4.receive());
}

TEST_P(FilterTest, AMissingSetFailsItsChainOnly) {
  auto desired = gateway();
  desired.ipsets.erase("fabric-local-6");
  desired.ipsets.erase("fabric-remote-6");
  const auto script = netstate::diff({}, desired, {netstate::Slice::ipsets});
  for (const auto& result : filter->apply(script.steps))
    ASSERT_TRUE(result) << result.error().message();
  const auto chains = netstate::diff({}, desired, {netstate::Slice::chains});
  const auto results = filter->apply(chains.steps);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& key = std::get<netstate::ChainObject>(chains.steps[i].object).key;
    const bool lacks = key.family == Family::ipv6 && key.hook != FilterHook::filter_input;
    EXPECT_EQ(results[i].has_value(), !lacks) << netstate::describe(chains.steps[i]);
  }
}

TEST_P(FilterTest, SwapsTenThousandPrefixesQuickly) {
  auto desired = gateway();
  auto& entries = desired.ipsets["fabric-remote-4"].entries;
  entries.clear();
  constexpr int kPrefixes = 10'000;
  // Every other /24, so that none are adjacent.
  for (int i = 0; i < kPrefixes; ++i)
    entries.insert(cidr(fmt::format("11.{}.{}.0/24", i / 128, i % 128 * 2)));
  const auto start = std::chrono::steady_clock::now();
  converge(*filter, desired);
  const auto took = std::chrono::steady_clock::now() - start;
  expect_state(observed(*filter), desired);
  RecordProperty("milliseconds", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  // A bound for disasters (an element at a time takes ten seconds and more), not a benchmark.
  EXPECT_LT(took, std::chrono::seconds(10));
  entries.erase(entries.begin());
  EXPECT_EQ(converge(*filter, desired), 1U);
  expect_state(observed(*filter), desired);
}

TEST_P(FilterTest, LeftoversOfTheOtherBackendGoOnceTheRulesAreWritten) {
  const auto before = everything();
  const auto former = open_filter(nft() ? FilterBackend::legacy : FilterBackend::nft);
  converge(*former, gateway());
  filter = open_filter(GetParam());
  EXPECT_GT(converge(*filter, gateway()), 0U);
  expect_state(observed(*former), State{});
  expect_state(observed(*filter), gateway());
  converge(*former, gateway());
  filter = open_filter(GetParam());
  converge(*filter, {});
  EXPECT_EQ(everything(), before);
}

INSTANTIATE_TEST_SUITE_P(Backends, FilterTest, testing::Values(FilterBackend::legacy, FilterBackend::nft),
                         [](const auto& row) { return row.param == FilterBackend::nft ? "nft" : "legacy"; });

/// Which masquerade of somebody else our rules have to beat.
struct Masquerade {
  std::string name;
  FilterBackend ours;
  std::string command;
};

constexpr const char* kNftMasquerade =
    "nft add table ip nat; nft 'add chain ip nat POSTROUTING { type nat hook postrouting priority 100; }'; "
    "nft add rule ip nat POSTROUTING masquerade; nft add table ip6 nat; "
    "nft 'add chain ip6 nat POSTROUTING { type nat hook postrouting priority 100; }'; nft add rule ip6 nat POSTROUTING "
    "masquerade";
constexpr const char* kLegacyMasquerade =
    "iptables-legacy -t nat -A POSTROUTING -j MASQUERADE; ip6tables-legacy -t nat -A POSTROUTING -j MASQUERADE";

class KeepSourceTest : public NetworkTest, public testing::WithParamInterface<Masquerade> {};

TEST_P(KeepSourceTest, KeepsTheSourceThatAMasqueradeWouldChange) {
  const auto peer = make_peer();
  run("ip addr add 10.1.0.1 dev lo; ip addr add fd01::1 dev lo nodad; ip route add 10.2.0.0/16 via 192.0.2.2; "
      "ip route add fd02::/48 via fd00:ee::2");
  await_addresses();
  run(GetParam().command);
  peer.enter();
  run("ip addr add 10.2.0.1 dev lo; ip addr add fd02::1 dev lo nodad");
  await_addresses();
  const UdpSocket receiver4("0.0.0.0", 7000);
  const UdpSocket receiver6("fd02::1", 7000);
  home.enter();
  const auto source4 = [&](const std::string& destination = "10.2.0.1") {
    const UdpSocket sender("10.1.0.1");
    EXPECT_TRUE(sender.send(destination, 7000));
    return receiver4.receive();
  };
  const auto source6 = [&] {
    const UdpSocket sender("fd01::1");
    EXPECT_TRUE(sender.send("fd02::1", 7000));
    return receiver6.receive();
  };
  ASSERT_EQ(source4(), "192.0.2.1") << "the masquerade does not work, so the test shows nothing";
  ASSERT_EQ(source6(), "fd00:ee::1");
  const auto filter = open_filter(GetParam().ours);
  converge(*filter, passable());
  EXPECT_EQ(source4(), "10.1.0.1");
  EXPECT_EQ(source6(), "fd01::1");
  // Only between the two: what goes elsewhere is still masqueraded.
  EXPECT_EQ(source4("192.0.2.2"), "192.0.2.1");
  converge(*filter, {});
  EXPECT_EQ(source4(), "192.0.2.1");
  EXPECT_EQ(source6(), "fd00:ee::1");
}

TEST_P(KeepSourceTest, TranslatesTheSourceWhereAskedTo) {
  const auto peer = make_peer();
  run("ip addr add 10.1.0.1 dev lo; ip route add 10.2.0.0/16 via 192.0.2.2");
  run(GetParam().command);
  peer.enter();
  run("ip addr add 10.2.0.1 dev lo");
  const UdpSocket receiver("10.2.0.1", 7000);
  home.enter();
  State desired;
  desired.ipsets["fabric-remote-4"] = {Family::ipv4, {cidr("10.2.0.0/16")}};
  FilterRule rule;
  rule.dst_set = "fabric-remote-4";
  rule.out_link = "eth0";
  rule.action = SourceNat{ip("10.1.0.1")};
  desired.chains[{Family::ipv4, FilterHook::nat_postrouting}] = {rule};
  const auto filter = open_filter(GetParam().ours);
  converge(*filter, desired);
  const UdpSocket sender("192.0.2.1");
  ASSERT_TRUE(sender.send("10.2.0.1", 7000));
  EXPECT_EQ(receiver.receive(), "10.1.0.1");
}

INSTANTIATE_TEST_SUITE_P(Masquerades, KeepSourceTest,
                         testing::Values(Masquerade{"LegacyAgainstLegacy", FilterBackend::legacy, kLegacyMasquerade},
                                         Masquerade{"NftAgainstLegacy", FilterBackend::nft, kLegacyMasquerade},
                                         Masquerade{"NftAgainstNft", FilterBackend::nft, kNftMasquerade}),
                         [](const auto& row) { return row.param.name; });

class DetectionTest : public NetworkTest {};

TEST_F(DetectionTest, ChoosesABackendThatWorksOnThisKernel) {
  const auto found = detect_filter_backend();
  EXPECT_EQ(found.backend, found.nft_supported ? FilterBackend::nft : FilterBackend::legacy);
  const auto filter = open_filter(std::nullopt);
  converge(*filter, gateway());
  expect_state(observed(*filter), gateway());
}

TEST_F(DetectionTest, PrefersNftWhereTheKernelHasItAndLoadsNothing) {
  const auto found = detect_filter_backend();
  EXPECT_TRUE(found.nft_supported);
  EXPECT_EQ(found.backend, FilterBackend::nft);
  EXPECT_FALSE(found.masquerade_in_legacy);
  EXPECT_FALSE(found.masquerade_in_nft);
  EXPECT_EQ(output_of("cat /proc/net/ip_tables_names /proc/net/ip6_tables_names; nft list ruleset"), "");
}

TEST_F(DetectionTest, SeesWhereKubeProxyWrites) {
  run("iptables-legacy -t nat -N KUBE-POSTROUTING");
  EXPECT_TRUE(detect_filter_backend().masquerade_in_legacy);
  EXPECT_FALSE(detect_filter_backend().masquerade_in_nft);
  run("nft add table ip nat; nft add chain ip nat KUBE-POSTROUTING");
  EXPECT_TRUE(detect_filter_backend().masquerade_in_nft);
  EXPECT_THAT(detect_filter_backend().reason, HasSubstr("nftables"));
}

TEST_F(DetectionTest, AConfiguredBackendWins) {
  EXPECT_EQ(open_filter(FilterBackend::legacy)->backend(), FilterBackend::legacy);
  EXPECT_EQ(open_filter(std::nullopt)->backend(), FilterBackend::nft);
}

TEST_F(DetectionTest, AHeldTableLockIsReportedAndNothingIsWritten) {
  auto opened = PacketFilter::open({.backend = FilterBackend::legacy, .lock_patience = Duration(50)});
  ASSERT_TRUE(opened);
  auto& filter = **opened;
  State desired;
  desired.chains[{Family::ipv4, FilterHook::filter_input}] = {port(IPPROTO_UDP, 4800)};
  const auto script = netstate::diff({}, desired, filter.slices());
  // A lock belongs to the open file, so one of our own is as good as that of another process.
  const int holder = ::open("/run/xtables.lock", O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  const auto result = filter.apply(script.steps).front();
  ::close(holder);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::unavailable);
  EXPECT_THAT(result.error().message(), HasSubstr("/run/xtables.lock"));
  expect_state(observed(filter), State{});
  EXPECT_EQ(converge(filter, desired), 1U);
}

/// The MSS that the far end of a connection through this namespace sees, with rules that clamp it.
class ForwardTest : public NetworkTest, public testing::WithParamInterface<FilterBackend> {
 protected:
  static std::uint16_t seen_mss(int client_mtu) {
    auto home = Namespace::enter_new();
    prepare();
    const auto join = [&](int number) {
      auto end = Namespace::enter_new();
      prepare();
      home.enter();
      run(
          fmt::format("ip link add v{0} type veth peer name eth0 netns {1}; ip link set v{0} up; "
                      "ip addr add 10.{0}.0.254/24 dev v{0}",
                      number, end.path()));
      end.enter();
      run(fmt::format("ip link set eth0 up; ip addr add 10.{0}.0.1/24 dev eth0; ip route add default via 10.{0}.0.254",
                      number));
      home.enter();
      return end;
    };
    const auto client_end = join(1);
    const auto server_end = join(2);
    run("echo 1 > /proc/sys/net/ipv4/ip_forward");
    const auto filter = open_filter(GetParam());
    converge(*filter, passable());
    server_end.enter();
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(7000);
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    client_end.enter();
    run(fmt::format("ip link set eth0 mtu {}; echo 0 > /proc/sys/net/ipv4/tcp_timestamps", client_mtu));
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::inet_pton(AF_INET, "10.2.0.1", &where.sin_addr), 1);
    EXPECT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    const int server = ::accept(listener, nullptr, nullptr);
    int mss = 0;
    socklen_t size = sizeof mss;
    EXPECT_EQ(::getsockopt(server, IPPROTO_TCP, TCP_MAXSEG, &mss, &size), 0);
    for (const int fd : {listener, client, server})
      ::close(fd);
    home.enter();
    return static_cast<std::uint16_t>(mss);
  }
};

TEST_P(ForwardTest, LowersTheMssOfConnectionsBetweenClusters) {
  EXPECT_EQ(seen_mss(1500), 1300);
}

TEST_P(ForwardTest, NeverRaisesTheMss) {
  EXPECT_EQ(seen_mss(1000), 960);
}

INSTANTIATE_TEST_SUITE_P(Backends, ForwardTest, testing::Values(FilterBackend::legacy, FilterBackend::nft),
                         [](const auto& row) { return row.param == FilterBackend::nft ? "nft" : "legacy"; });

}  // namespace

}  // namespace fabric::kernel::test
