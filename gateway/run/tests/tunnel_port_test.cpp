#include <fabric/async/testing.hpp>
#include <fabric/gateway/tunnel_frame.hpp>
#include <fabric/gateway/tunnel_port.hpp>

#include <boost/asio/ip/udp.hpp>
#include <gtest/gtest.h>

#include "tunnel_fake.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using testing::FakeNetwork;
using testing::FakeTunnelPort;

const net::IpAddress kHere = net::IpAddress::v4(127, 0, 0, 2);
const net::IpAddress kThere = net::IpAddress::v4(127, 0, 0, 3);

/// A port that nobody uses at this moment.
std::uint16_t free_port() {
  boost::asio::io_context io;
  return boost::asio::ip::udp::socket(io, {boost::asio::ip::make_address("127.0.0.2"), 0}).local_endpoint().port();
}

struct Got {
  net::IpAddress from;
  net::IpAddress to;
  crypto::Bytes bytes;
  bool operator==(const Got&) const = default;
};

/// The same demands on sockets and on their fake. True: real sockets on the loopback device.
class TunnelPortContract : public ::testing::TestWithParam<bool> {
 protected:
  void TearDown() override {
    here.reset();
    there.reset();
    // Closed sockets end their coroutines; nothing is left to be cancelled.
    loop.settle();
    loop.group().stop();
    loop.settle();
  }

  std::unique_ptr<TunnelPort> make() {
    if (GetParam()) return std::make_unique<UdpTunnelPort>(loop.group(), loop.executor(), loop.clock(), port);
    return std::make_unique<FakeTunnelPort>(network);
  }

  /// Runs the loop until so many datagrams came. A limit of real time only ends a test that fails.
  void wait_for(std::size_t count) {
    loop.io().restart();
    while (got.size() < count && loop.io().run_one_for(5s) > 0) {
    }
    ASSERT_EQ(got.size(), count);
  }

  void listen() {
    there->on_receive([this](const Datagram& d) { got.push_back({d.from, d.to, {d.bytes.begin(), d.bytes.end()}}); });
    ASSERT_TRUE(here->listen_at({kHere}));
    ASSERT_TRUE(there->listen_at({kThere}));
  }

  async::TestLoop loop;
  FakeNetwork network{loop.executor()};
  std::uint16_t port = free_port();
  std::unique_ptr<TunnelPort> here = make();
  std::unique_ptr<TunnelPort> there = make();
  std::vector<Got> got;
};

INSTANTIATE_TEST_SUITE_P(Ports, TunnelPortContract, ::testing::Bool(),
                         [](const auto& row) { return row.param ? "Udp" : "Fake"; });

TEST_P(TunnelPortContract, ADatagramArrivesWithBothAddresses) {
  listen();
  ASSERT_TRUE(here->send(kHere, kThere, crypto::Bytes{1, 2, 3}));
  wait_for(1);
  EXPECT_EQ(got[0], (Got{kHere, kThere, {1, 2, 3}}));
}

TEST_P(TunnelPortContract, TheLargestFrameArrivesWhole) {
  listen();
  const crypto::Bytes large(kMaxFrame, 7);
  ASSERT_TRUE(here->send(kHere, kThere, large));
  wait_for(1);
  EXPECT_EQ(got[0].bytes, large);
}

TEST_P(TunnelPortContract, SendingFromAnAddressThatIsNotListenedAtIsRefused) {
  listen();
  const auto sent = here->send(kThere, kHere, crypto::Bytes{1});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Errc::not_found);
}

TEST_P(TunnelPortContract, SendingToNobodyHurtsNobody) {
  listen();
  (void)here->send(kHere, net::IpAddress::v4(127, 0, 0, 9), crypto::Bytes{1});
  loop.settle();
  ASSERT_TRUE(here->send(kHere, kThere, crypto::Bytes{2}) || here->send(kHere, kThere, crypto::Bytes{2}))
      << "one error may tell of the datagram before";
  wait_for(1);
}

TEST_P(TunnelPortContract, AddressesComeAndGo) {
  listen();
  ASSERT_TRUE(there->listen_at({}));
  loop.settle();
  ASSERT_TRUE(here->listen_at({kHere, kThere})) << "the other port let go of it";
  ASSERT_TRUE(here->listen_at({kHere}));
  loop.settle();
  ASSERT_TRUE(there->listen_at({kThere}));
  ASSERT_TRUE(here->send(kHere, kThere, crypto::Bytes{4}));
  wait_for(1);
}

TEST_P(TunnelPortContract, OneAddressThatCannotBeUsedDoesNotHinderTheOthers) {
  ASSERT_TRUE(there->listen_at({kThere}));
  EXPECT_FALSE(here->listen_at({kThere, kHere})) << "taken";
  EXPECT_TRUE(here->send(kHere, kThere, crypto::Bytes{1}));
}

TEST_P(TunnelPortContract, WithoutAReceiverDatagramsVanish) {
  listen();
  there->on_receive(nullptr);
  ASSERT_TRUE(here->send(kHere, kThere, crypto::Bytes{1}));
  loop.settle();
  EXPECT_TRUE(got.empty());
}

TEST(UdpTunnelPort, TakesABoundedNumberOfDatagramsInASecond) {
  async::TestLoop loop;
  const auto port = free_port();
  UdpTunnelPort here(loop.group(), loop.executor(), loop.clock(), port);
  UdpTunnelPort there(loop.group(), loop.executor(), loop.clock(), port);
  std::size_t taken = 0;
  there.on_receive([&](const Datagram&) { ++taken; });
  ASSERT_TRUE(here.listen_at({kHere}));
  ASSERT_TRUE(there.listen_at({kThere}));
  // The clock stands still: however long this lasts, no second passes.
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 100; ++j)
      (void)here.send(kHere, kThere, crypto::Bytes{1});
    loop.settle();
  }
  EXPECT_GE(taken, 500U);
  EXPECT_LE(taken, 501U);
  loop.advance(1s);
  EXPECT_GT(taken, 501U) << "it goes on";
  loop.group().stop();
  loop.settle();
}

}  // namespace
}  // namespace fabric::gateway
