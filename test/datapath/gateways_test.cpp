/// What the planners want, put into the kernel by the drivers, next to rules of others that would masquerade what goes
/// through the tunnel.

#include "gateways.hpp"

#include <netinet/tcp.h>

namespace fabric::datapath {
namespace {

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
}  // namespace fabric::datapath
