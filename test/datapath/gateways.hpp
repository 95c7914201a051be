#pragma once

#include <fabric/gateway/policy_plan.hpp>
#include <fabric/kernel/filter.hpp>
#include <fabric/kernel/route.hpp>
#include <fabric/kernel/xfrm.hpp>
#include <fabric/routeagent/plan.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>

#include "build.hpp"
#include "network.hpp"

/// Two gateways with pods behind them, each a network namespace, and what the planners and drivers make of them.
namespace fabric::datapath {

using kernel::test::cidr;
using kernel::test::converge;
using kernel::test::ip;
using kernel::test::Namespace;
using kernel::test::run;
using kernel::test::UdpSocket;
using netstate::State;
using testing::IsEmpty;

inline constexpr std::uint16_t kPort = 7000;
inline constexpr std::uint32_t kReqid = 7;
inline constexpr std::uint32_t kUplinkMtu = 1500;

/// What differs between the clusters: cluster `i` has pods in 10.i.0.0/16 and fd0i::/48, services in 10.10i.0.0/16.
struct Cluster {
  int number;
  std::uint32_t spi;  ///< Of the SA that leads here.

  std::string name() const { return number == 1 ? "a" : "b"; }

  std::string outer() const { return fmt::format("192.0.2.{}", number); }

  std::string cni4() const { return fmt::format("10.{}.0.1", number); }

  std::string cni6() const { return fmt::format("fd0{}::1", number); }

  std::string pod4() const { return fmt::format("10.{}.0.2", number); }

  std::string pod6() const { return fmt::format("fd0{}::2", number); }

  std::string service() const { return fmt::format("10.10{}.0.10", number); }

  std::vector<net::Cidr> prefixes() const {
    return {cidr(fmt::format("10.{}.0.0/16", number)), cidr(fmt::format("10.10{}.0.0/16", number)),
            cidr(fmt::format("fd0{}::/48", number))};
  }
};

inline constexpr Cluster kA{1, 0x1001};
inline constexpr Cluster kB{2, 0x1002};

/// A gateway node: one namespace with an uplink `eth0`, and a pod behind `cni0`.
class Gateway {
 public:
  /// In the gateway's namespace, which has eth0 with its outer address.
  Gateway(const Cluster& here, const Cluster& there, const Namespace& home)
      : here_(here), there_(there), home_(home), pod_(make_pod()), remote_prefixes_(there.prefixes()) {
    home_.enter();
    run("ip link set cni0 up; " + addresses("cni0", here_.cni4(), here_.cni6()) +
        "echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding");
    kernel::test::await_addresses();
    pod_.enter();
    run("ip link set lo up; ip link set eth0 up; " + addresses("eth0", here_.pod4(), here_.pod6()) +
        fmt::format("ip route add default via {}; ip -6 route add default via {}", here_.cni4(), here_.cni6()));
    kernel::test::await_addresses();
    home_.enter();
    xfrm_ = kernel::XfrmDriver::open().value();
    routes_ = kernel::RouteDriver::open().value();
    filter_ = kernel::PacketFilter::open({.backend = {}, .xtables_lock = "/run/xtables.lock"}).value();
  }

  /// The gateway's namespace becomes the current one.
  void enter() const { home_.enter(); }

  void enter_pod() const { pod_.enter(); }

  const kernel::PacketFilter& filter() const { return *filter_; }

  /// The other cluster has this prefix too.
  void reach_also(const net::Cidr& prefix) { remote_prefixes_.push_back(prefix); }

  /// What the gateway agent writes: policies of its planner, and an SA for each direction.
  void apply_tunnel(std::optional<netstate::UdpEncap> encap = {}) {
    enter();
    gateway::PolicyInputs in;
    in.local_cluster = here_.name();
    in.local_prefixes = here_.prefixes();
    const gateway::RemoteGateway remote{.name = there_.name(),
                                        .path = gateway::Path{ip(here_.outer()), ip(there_.outer()), {}},
                                        .health = gateway::Health::up,
                                        .outbound = true,
                                        .prefixes = remote_prefixes_,
                                        .probes = {}};
    in.remotes[there_.name()] = {.reqid = netstate::Reqid(netstate::kReqidBase | kReqid), .gateways = {remote}};
    const auto plan = gateway::plan_policies(in);
    ASSERT_THAT(plan.findings, IsEmpty());
    State desired;
    desired.policies = plan.policies;
    for (const auto& [from, to] : {std::pair(here_, there_), std::pair(there_, here_)}) {
      auto& sa = desired.sas[netstate::test::sa_key(to.outer(), to.spi)];
      sa = netstate::test::sa(from.outer(), kReqid, netstate::test::key_material(static_cast<std::uint8_t>(to.number)));
      sa.encap = encap;
    }
    converge(*xfrm_, desired);
  }

  /// What the route agent of this node writes.
  routeagent::Plan route_plan() const {
    routeagent::Inputs in;
    in.node = "node";
    in.node_address = ip(here_.outer());
    in.node_pod_cidrs = {cidr(fmt::format("10.{}.0.0/24", here_.number)),
                         cidr(fmt::format("fd0{}::/64", here_.number))};
    in.local_prefixes = here_.prefixes();
    in.remote_prefixes = {{there_.name(), remote_prefixes_}};
    in.gateways = {{.node = "node", .address = in.node_address}};
    netstate::Interface uplink{.name = "eth0", .index = 1, .mtu = kUplinkMtu, .up = true, .addresses = {}};
    uplink.addresses = {{in.node_address, 24}};
    netstate::Interface cni{.name = "cni0", .index = 2, .mtu = kUplinkMtu, .up = true, .addresses = {}};
    cni.addresses = {{ip(here_.cni4()), 24}, {ip(here_.cni6()), 64}};
    in.facts.interfaces = {uplink, cni};
    return routeagent::plan(in);
  }

  void apply_routes() {
    enter();
    const auto plan = route_plan();
    for (const auto& finding : plan.findings)
      ADD_FAILURE() << finding.message;
    converge(*routes_, plan.desired);
  }

  void apply_filter() {
    enter();
    converge(*filter_, route_plan().desired);
  }

  /// As it would be if rules of this kind were not planned.
  template <class Kind>
  void apply_filter_without(Kind kind) {
    enter();
    auto desired = route_plan().desired;
    for (auto& [key, rules] : desired.chains)
      std::erase_if(rules, kind);
    std::erase_if(desired.chains, [](const auto& chain) { return chain.second.empty(); });
    converge(*filter_, desired);
  }

  std::uint64_t dropped_by_policy() const {
    enter();
    return kernel::read_xfrm_stat().value().at("XfrmOutPolBlock");
  }

 private:
  Namespace make_pod() const {
    home_.enter();
    auto pod = Namespace::enter_new();
    kernel::test::run("for f in /proc/sys/net/ipv6/conf/*/accept_dad; do echo 0 > $f; done");
    home_.enter();
    run("ip link add cni0 type veth peer name eth0 netns " + pod.path());
    return pod;
  }

  static std::string addresses(std::string_view link, const std::string& v4, const std::string& v6) {
    return fmt::format("ip addr add {1}/24 dev {0}; ip addr add {2}/64 dev {0} nodad; ", link, v4, v6);
  }

  Cluster here_, there_;
  const Namespace& home_;
  Namespace pod_;
  std::vector<net::Cidr> remote_prefixes_;
  std::unique_ptr<kernel::XfrmDriver> xfrm_;
  std::unique_ptr<kernel::RouteDriver> routes_;
  std::unique_ptr<kernel::PacketFilter> filter_;
};

/// What the current namespace sends through eth0.
class Wire {
 public:
  Wire() : fd_(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(ETH_P_ALL);
    where.sll_ifindex = static_cast<int>(::if_nametoindex("eth0"));
    FABRIC_ASSERT(fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0);
    // A flood must not crowd out what we look for.
    constexpr int kRoom = 64 << 20;
    FABRIC_ASSERT(::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &kRoom, sizeof kRoom) == 0);
  }

  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  ~Wire() { ::close(fd_); }

  /// How many packets of ESP left so far, and what else did: the protocol numbers of IPv4 packets.
  std::pair<int, std::vector<int>> sent() const {
    int esp = 0;
    std::vector<int> others;
    std::array<unsigned char, 2048> packet{};
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    while (::recvfrom(fd_, packet.data(), packet.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size) > 0) {
      if (from.sll_pkttype != PACKET_OUTGOING) continue;
      const auto type = ntohs(from.sll_protocol);
      constexpr std::size_t kNextHeader4 = 9;
      constexpr std::size_t kNextHeader6 = 6;
      const int protocol = type == ETH_P_IP ? packet[kNextHeader4] : type == ETH_P_IPV6 ? packet[kNextHeader6] : -1;
      // Neighbour discovery and ARP are the link's own.
      if (protocol == IPPROTO_ESP) ++esp;
      if (protocol >= 0 && protocol != IPPROTO_ESP && protocol != IPPROTO_ICMPV6) others.push_back(protocol);
    }
    return {esp, others};
  }

  /// The sources of packets that left in clear for the pods of a cluster so far, and how many others left. Fails if
  /// some were not captured.
  std::pair<std::set<std::string>, int> clear(const Cluster& to) const {
    std::set<std::string> sources;
    int others = 0;
    std::array<unsigned char, 2048> packet{};
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    while (::recvfrom(fd_, packet.data(), packet.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size) > 0) {
      const auto type = ntohs(from.sll_protocol);
      if (from.sll_pkttype != PACKET_OUTGOING || (type != ETH_P_IP && type != ETH_P_IPV6)) continue;
      const auto address = [&](std::size_t at) {
        return *net::IpAddress::from_bytes(std::span(packet).subspan(at, type == ETH_P_IP ? 4 : 16));
      };
      const auto source = type == ETH_P_IP ? address(12) : address(8);
      const auto destination = type == ETH_P_IP ? address(16) : address(24);
      const bool remote = destination == ip(to.pod4()) || destination == ip(to.pod6());
      if (remote)
        sources.insert(fmt::format("{}", source));
      else
        ++others;
    }
    tpacket_stats lost{};
    socklen_t room = sizeof lost;
    FABRIC_ASSERT(::getsockopt(fd_, SOL_PACKET, PACKET_STATISTICS, &lost, &room) == 0);
    EXPECT_EQ(lost.tp_drops, 0U) << "the capture has holes";
    return {sources, others};
  }

 private:
  int fd_;
};

}  // namespace fabric::datapath
