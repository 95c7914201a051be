/// What leaves a gateway when somebody flushes its policies, and that ESP itself always does.

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "gateways.hpp"

namespace fabric::datapath {
namespace {

/// Datagrams without pause from pods and from the gateway itself, of both families, while policies are flushed.
class Flood {
 public:
  explicit Flood(const Gateway& from) {
    from.enter_pod();
    sockets_.push_back(std::make_unique<UdpSocket>(kA.pod4()));
    sockets_.push_back(std::make_unique<UdpSocket>(kA.pod6()));
    from.enter();
    sockets_.push_back(std::make_unique<UdpSocket>(kA.cni4()));
    sockets_.push_back(std::make_unique<UdpSocket>(kA.cni6()));
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        // What is dropped on the way is an error to the sender in some cases; the capture tells.
        for (std::size_t i = 0; i < sockets_.size(); ++i)
          static_cast<void>(sockets_[i]->send(i % 2 == 0 ? kB.pod4() : kB.pod6(), kPort));
        ++rounds_;
        rounds_.notify_all();
      }
    });
  }

  void await_rounds(int more) {
    const int wanted = rounds_ + more;
    for (int seen = rounds_; seen < wanted; seen = rounds_)
      rounds_.wait(seen);
  }

 private:
  std::vector<std::unique_ptr<UdpSocket>> sockets_;
  std::atomic<int> rounds_ = 0;
  std::jthread thread_;
};

/// Whether anything leaves a gateway untransformed, with the packet filter that this kernel has: legacy tables in User
/// Mode Linux, nftables in QEMU.
class ClearText : public kernel::test::NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    far = std::make_unique<Namespace>(make_peer());
    a = std::make_unique<Gateway>(kA, kB, home);
    b = std::make_unique<Gateway>(kB, kA, *far);
    b->enter_pod();
    in_b4 = std::make_unique<UdpSocket>(kB.pod4(), kPort);
    a->enter();
    // The next router takes packets for other clusters, as a default gateway would.
    run(
        fmt::format("ip neigh replace {} lladdr 02:00:00:00:00:01 dev eth0 nud permanent; "
                    "ip neigh replace {} lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
                    kB.pod4(), kB.pod6()));
  }

  /// What left for pods of the other cluster in clear around a flush of all policies.
  std::set<std::string> leaves_in_clear_around_a_flush() {
    constexpr int kRounds = 100;
    a->apply_tunnel();
    a->enter();
    const Wire wire;
    {
      Flood flood(*a);
      flood.await_rounds(kRounds);
      run("ip xfrm policy flush");
      flood.await_rounds(kRounds);
    }
    const auto [sources, others] = wire.clear(kB);
    EXPECT_GE(others, 4 * kRounds) << "not even ESP left before the flush";
    return sources;
  }

  /// Whether packets of a pod leave, transformed, for a gateway whose own address is in a prefix of its cluster.
  std::pair<int, std::vector<int>> sent_to_a_gateway_in_a_remote_prefix(std::optional<netstate::UdpEncap> encap) {
    a->reach_also(net::Cidr::host(ip(kB.outer())));
    a->apply_routes();
    a->apply_tunnel(encap);
    const auto send = [&] {
      a->enter();
      const Wire wire;
      a->enter_pod();
      EXPECT_TRUE(UdpSocket(kA.pod4()).send(kB.pod4(), kPort));
      return wire.sent();
    };
    a->apply_filter_without([](const netstate::FilterRule& rule) {
      return !rule.untransformed && !rule.src_set;  // The exceptions.
    });
    EXPECT_EQ(send(), std::pair(0, std::vector<int>{})) << "the exceptions are not needed, so the test shows nothing";
    a->apply_filter();
    return send();
  }

  std::unique_ptr<Namespace> far;
  std::unique_ptr<Gateway> a, b;
  std::unique_ptr<UdpSocket> in_b4;
};

TEST_F(ClearText, NothingLeavesUntransformedWhenSomebodyFlushesThePolicies) {
  for (auto* gateway : {a.get(), b.get()}) {
    gateway->apply_routes();
    gateway->apply_tunnel();
    gateway->apply_filter();
  }
  EXPECT_THAT(leaves_in_clear_around_a_flush(), IsEmpty());
  // The policies are back and so is the traffic.
  a->apply_tunnel();
  in_b4.reset();
  b->enter_pod();
  in_b4 = std::make_unique<UdpSocket>(kB.pod4(), kPort);  // Without what the flood left behind.
  a->enter_pod();
  EXPECT_TRUE(UdpSocket(kA.pod4()).send(kB.pod4(), kPort));
  EXPECT_EQ(in_b4->receive(), kA.pod4());

  a->apply_filter_without([](const netstate::FilterRule& rule) { return rule.untransformed; });
  EXPECT_EQ(leaves_in_clear_around_a_flush(), (std::set{kA.pod4(), kA.pod6(), kA.cni4(), kA.cni6()}))
      << "without the rules nothing leaves either, so the test shows nothing";
}

TEST_F(ClearText, EspPassesToAGatewayInsideOfARemotePrefix) {
  EXPECT_EQ(sent_to_a_gateway_in_a_remote_prefix({}), std::pair(1, std::vector<int>{}));
}

TEST_F(ClearText, EspInUdpPassesToAGatewayInsideOfARemotePrefix) {
  EXPECT_EQ(sent_to_a_gateway_in_a_remote_prefix(netstate::UdpEncap{.sport = 4500, .dport = 4500}),
            std::pair(0, std::vector<int>{IPPROTO_UDP}));
}

}  // namespace
}  // namespace fabric::datapath
