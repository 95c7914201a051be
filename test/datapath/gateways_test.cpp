/// Two gateways with pods behind them, each a network namespace: what the planners want, put into the kernel by the
/// drivers, next to rules of others that would masquerade what goes through the tunnel.

#include <fabric/gateway/policy_plan.hpp>
#include <fabric/kernel/filter.hpp>
#include <fabric/kernel/route.hpp>
#include <fabric/kernel/xfrm.hpp>
#include <fabric/routeagent/plan.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/tcp.h>

#include "build.hpp"
#include "network.hpp"

namespace fabric {
namespace {

using kernel::test::cidr;
using kernel::test::converge;
using kernel::test::ip;
using kernel::test::Namespace;
using kernel::test::run;
using kernel::test::UdpSocket;
using netstate::State;
using testing::IsEmpty;

constexpr std::uint16_t kPort = 7000;
constexpr std::uint32_t kReqid = 7;
constexpr std::uint32_t kUplinkMtu = 1500;

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

constexpr Cluster kA{1, 0x1001};
constexpr Cluster kB{2, 0x1002};

/// Rules of somebody else on both gateways; `{0}` is the number of the cluster.
struct Masquerade {
  std::string name;
  std::string commands;

  friend void PrintTo(const Masquerade& row, std::ostream* out) { *out << row.name; }
};

/// kube-proxy in nftables mode: a service of this cluster is translated to its pod, and its clients from outside of the
/// cluster's prefix are marked for masquerading.
constexpr std::string_view kKubeProxy = R"(nft -f - << 'RULES'
table ip kube-proxy {{
  chain to-masquerade {{ meta mark set meta mark | 0x4000; }}
  chain to-pod {{ ip saddr != 10.{0}.0.0/16 jump to-masquerade; meta l4proto {{ tcp, udp }} dnat to 10.{0}.0.2:7000; }}
  chain nat-prerouting {{ type nat hook prerouting priority dstnat; ip daddr 10.10{0}.0.10 th dport 7000 jump to-pod; }}
  chain nat-postrouting {{ type nat hook postrouting priority srcnat; meta mark & 0x4000 == 0x4000 masquerade; }}
}}
RULES
)";

/// A network plug-in: what leaves the cluster's prefix is masqueraded.
constexpr std::string_view kNftPlugin = R"(nft -f - << 'RULES'
table inet plugin {{
  chain postrouting {{
    type nat hook postrouting priority srcnat - 5;
    ip daddr 10.{0}.0.0/16 accept
    ip6 daddr fd0{0}::/48 accept
    ip saddr 10.{0}.0.0/16 masquerade
    ip6 saddr fd0{0}::/48 masquerade
  }}
}}
RULES
)";

constexpr std::string_view kIptablesNftPlugin =
    "iptables-nft -t nat -A POSTROUTING -s 10.{0}.0.0/16 ! -d 10.{0}.0.0/16 -j MASQUERADE; "
    "ip6tables-nft -t nat -A POSTROUTING -s fd0{0}::/48 ! -d fd0{0}::/48 -j MASQUERADE; ";

/// A gateway node: one namespace with an uplink `eth0`, and a pod behind `cni0`.
class Gateway {
 public:
  /// In the gateway's namespace, which has eth0 with its outer address.
  Gateway(const Cluster& here, const Cluster& there, const Namespace& home)
      : here_(here), there_(there), home_(home), pod_(make_pod()) {
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

  /// What the gateway agent writes: policies of its planner, and an SA for each direction.
  void apply_tunnel() {
    enter();
    gateway::PolicyInputs in;
    in.local_cluster = here_.name();
    in.local_prefixes = here_.prefixes();
    const gateway::RemoteGateway remote{.name = there_.name(),
                                        .path = gateway::Path{ip(here_.outer()), ip(there_.outer()), {}},
                                        .health = gateway::Health::up,
                                        .outbound = true,
                                        .prefixes = there_.prefixes(),
                                        .probes = {}};
    in.remotes[there_.name()] = {.reqid = netstate::Reqid(netstate::kReqidBase | kReqid), .gateways = {remote}};
    const auto plan = gateway::plan_policies(in);
    ASSERT_THAT(plan.findings, IsEmpty());
    State desired;
    desired.policies = plan.policies;
    for (const auto& [from, to] : {std::pair(here_, there_), std::pair(there_, here_)}) {
      desired.sas[netstate::test::sa_key(to.outer(), to.spi)] =
          netstate::test::sa(from.outer(), kReqid, netstate::test::key_material(static_cast<std::uint8_t>(to.number)));
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
    in.remote_prefixes = {{there_.name(), there_.prefixes()}};
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

 private:
  int fd_;
};

sockaddr_in endpoint(const std::string& address, std::uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  FABRIC_ASSERT(::inet_pton(AF_INET, address.c_str(), &where.sin_addr) == 1);
  return where;
}

/// A TCP socket of the current namespace.
class TcpSocket {
 public:
  TcpSocket(const std::string& address, std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    FABRIC_ASSERT(::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0);
    const auto where = endpoint(address, port);
    FABRIC_ASSERT(::bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0);
  }

  TcpSocket(const TcpSocket&) = delete;
  TcpSocket& operator=(const TcpSocket&) = delete;

  ~TcpSocket() { ::close(fd_); }

  bool listen() const { return ::listen(fd_, 1) == 0; }

  bool connect(const std::string& address, std::uint16_t port) const {
    const auto where = endpoint(address, port);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
  }

  /// Bytes of a full segment that this end sends.
  std::uint32_t segment() const {
    tcp_info info{};
    socklen_t size = sizeof info;
    FABRIC_ASSERT(::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
    return info.tcpi_snd_mss;
  }

 private:
  int fd_;
};

class GatewayPath : public kernel::test::NetworkTest, public testing::WithParamInterface<Masquerade> {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    far = std::make_unique<Namespace>(make_peer());
    a = std::make_unique<Gateway>(kA, kB, home);
    b = std::make_unique<Gateway>(kB, kA, *far);
    for (const auto& [gateway, cluster] : {std::pair(a.get(), kA), std::pair(b.get(), kB)}) {
      gateway->enter();
      run(fmt::format(fmt::runtime(GetParam().commands), cluster.number));
    }
    b->enter_pod();
    in_b4 = std::make_unique<UdpSocket>(kB.pod4(), kPort);
    in_b6 = std::make_unique<UdpSocket>(kB.pod6(), kPort);
    a->enter_pod();
    in_a4 = std::make_unique<UdpSocket>(kA.pod4(), kPort);
  }

  /// The source that the receiver sees of a packet on a connection of its own.
  static std::optional<std::string> seen(const Gateway& from, const std::string& source, const std::string& to,
                                         const UdpSocket& receiver) {
    from.enter_pod();
    EXPECT_TRUE(UdpSocket(source).send(to, kPort));
    return receiver.receive();
  }

  void apply_all_but_filters() {
    for (auto* gateway : {a.get(), b.get()}) {
      gateway->apply_routes();
      gateway->apply_tunnel();
    }
  }

  void apply_filters() {
    for (auto* gateway : {a.get(), b.get()})
      gateway->apply_filter();
  }

  std::unique_ptr<Namespace> far;
  std::unique_ptr<Gateway> a, b;
  std::unique_ptr<UdpSocket> in_a4, in_b4, in_b6;
};

TEST_P(GatewayPath, KeepsTheSourceOfPodsThroughTheTunnelAlsoForServices) {
  ASSERT_EQ(a->filter().backend(), netstate::FilterBackend::nft) << "this kernel is to have nftables";
  a->enter();
  run("ip route add 10.2.0.0/16 via 192.0.2.2");
  ASSERT_EQ(seen(*a, kA.pod4(), kB.pod4(), *in_b4), kA.outer()) << "nothing masquerades, so the test shows nothing";
  a->enter();
  run("ip route del 10.2.0.0/16");

  apply_all_but_filters();
  // A masqueraded source fits no ESP policy, so without our rules nothing passes, and nothing leaves in clear.
  a->enter_pod();
  EXPECT_TRUE(UdpSocket(kA.pod4()).send(kB.pod4(), kPort));
  EXPECT_EQ(a->dropped_by_policy(), 1U);

  apply_filters();
  a->enter();
  const Wire from_a;
  b->enter();
  const Wire from_b;
  EXPECT_EQ(seen(*a, kA.pod4(), kB.pod4(), *in_b4), kA.pod4());
  EXPECT_EQ(seen(*a, kA.pod6(), kB.pod6(), *in_b6), kA.pod6());
  EXPECT_EQ(seen(*b, kB.pod4(), kA.pod4(), *in_a4), kB.pod4());
  EXPECT_EQ(seen(*a, kA.pod4(), kB.service(), *in_b4), kA.pod4());
  EXPECT_EQ(from_a.sent(), std::pair(3, std::vector<int>{}));
  EXPECT_EQ(from_b.sent(), std::pair(1, std::vector<int>{}));
}

TEST_P(GatewayPath, ConnectionsUseSegmentsThatFitTheTunnel) {
  apply_all_but_filters();
  apply_filters();
  b->enter_pod();
  const TcpSocket server(kB.pod4(), kPort);
  ASSERT_TRUE(server.listen());
  constexpr std::uint32_t kTimestamps = 12;  // RFC 7323; the kernel counts them off the segment.
  const auto fits = kUplinkMtu - routeagent::esp_overhead({}) - routeagent::tcp_header(net::Family::ipv4) - kTimestamps;
  for (const auto& target : {kB.pod4(), kB.service()}) {
    a->enter_pod();
    const TcpSocket client(kA.pod4(), 0);
    ASSERT_TRUE(client.connect(target, kPort)) << target;
    EXPECT_EQ(client.segment(), fits) << target;
  }
}

INSTANTIATE_TEST_SUITE_P(NextTo, GatewayPath,
                         testing::Values(Masquerade{"NftPlugin", fmt::format("{}{}", kKubeProxy, kNftPlugin)},
                                         Masquerade{"IptablesNftPlugin",
                                                    fmt::format("{}{}", kKubeProxy, kIptablesNftPlugin)}),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace fabric
