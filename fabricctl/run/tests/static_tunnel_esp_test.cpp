#include <fabric/ctl/commands.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/ip.h>
#include <sys/socket.h>

#include "network.hpp"

namespace fabric::ctl {
namespace {

namespace test = kernel::test;
using testing::HasSubstr;
using testing::Not;

constexpr auto kHere = "192.0.2.1";
constexpr auto kThere = "192.0.2.2";
constexpr int kPings = 5;

/// IPv4 packets that the current namespace puts on the wire, by protocol.
class WireTap {
 public:
  WireTap() : fd_(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL))) { FABRIC_ASSERT(fd_ >= 0); }

  WireTap(const WireTap&) = delete;
  WireTap& operator=(const WireTap&) = delete;

  ~WireTap() { ::close(fd_); }

  std::map<int, int> sent() const {
    std::map<int, int> result;
    while (true) {
      iphdr header{};
      sockaddr_ll from{};
      socklen_t size = sizeof from;
      const auto got = ::recvfrom(fd_, &header, sizeof header, MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
      if (got < 0) return result;
      if (from.sll_pkttype == PACKET_OUTGOING && from.sll_hatype == 1 && ntohs(from.sll_protocol) == ETH_P_IP) {
        ++result[header.protocol];
      }
    }
  }

 private:
  int fd_;
};

/// The far end is made by hand as the instructions say that many follow; this end by the command.
class StaticTunnelTraffic : public test::NetworkTest, public testing::WithParamInterface<std::size_t> {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    peer = std::make_unique<test::Namespace>(make_peer());
    set_key(GetParam());
    test::run("ip addr add 10.0.0.1/32 dev lo; ip route add 10.0.1.0/24 via 192.0.2.2 src 10.0.0.1");
    command.tunnel = {.local = test::ip(kHere),
                      .remote = test::ip(kThere),
                      .local_prefix = test::cidr("10.0.0.0/24"),
                      .remote_prefix = test::cidr("10.0.1.0/24"),
                      .spi = netstate::Spi(186),
                      .reqid = netstate::Reqid(186)};
    command.key_file = "/run/key";
    command.acknowledged = true;
    there("ip addr add 10.0.1.1/32 dev lo; ip route add 10.0.0.0/24 via 192.0.2.1 src 10.0.1.1");
  }

  void set_key(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      key += fmt::format("{:02x}", 0x40 + i);
    std::ofstream("/run/key") << key << '\n';
    test::run("chmod 600 /run/key");
  }

  void there(const std::string& script) {
    peer->enter();
    test::run(script);
    home.enter();
  }

  void make_far_end() {
    there(
        fmt::format("ID=186; KEY=0x{}; NODE1=192.0.2.1; NODE2=192.0.2.2; "
                    "ip xfrm state add src $NODE2 dst $NODE1 proto esp spi $ID reqid $ID mode tunnel "
                    "aead 'rfc4106(gcm(aes))' $KEY 128; "
                    "ip xfrm state add src $NODE1 dst $NODE2 proto esp spi $ID reqid $ID mode tunnel "
                    "aead 'rfc4106(gcm(aes))' $KEY 128; "
                    "ip xfrm policy add src 10.0.1.0/24 dst 10.0.0.0/24 dir out "
                    "tmpl src $NODE2 dst $NODE1 proto esp reqid $ID mode tunnel; "
                    "ip xfrm policy add src 10.0.0.0/24 dst 10.0.1.0/24 dir fwd "
                    "tmpl src $NODE1 dst $NODE2 proto esp reqid $ID mode tunnel; "
                    "ip xfrm policy add src 10.0.0.0/24 dst 10.0.1.0/24 dir in "
                    "tmpl src $NODE1 dst $NODE2 proto esp reqid $ID mode tunnel",
                    key));
  }

  Result<Exit> run(bool up) {
    command.up = up;
    out.str("");
    err.str("");
    return static_tunnel(command, out, err);
  }

  static std::string kernel_state() { return test::output_of("ip xfrm state; ip xfrm policy"); }

  StaticTunnelCommand command;
  std::string key;
  std::unique_ptr<test::Namespace> peer;
  std::ostringstream out, err;
};

TEST_P(StaticTunnelTraffic, CarriesPingsBothWaysAndNothingInClear) {
  make_far_end();
  const auto up = run(true);
  ASSERT_TRUE(up) << up.error().message();
  ASSERT_EQ(*up, Exit::done) << err.str();
  EXPECT_THAT(err.str(), HasSubstr("*** WARNING ***"));
  EXPECT_THAT(out.str(), testing::AllOf(HasSubstr("ip_forward"), HasSubstr("masquerading"), HasSubstr("route")));
  EXPECT_THAT(out.str() + err.str(), Not(HasSubstr(key)));

  const WireTap here;
  peer->enter();
  const WireTap far;
  home.enter();
  const auto ping = [](const char* from, const char* to) {
    return fmt::format("ping -n -c {} -i 0.01 -W 5 -I {} {}", kPings, from, to);
  };
  test::run(ping("10.0.0.1", "10.0.1.1"));
  there(ping("10.0.1.1", "10.0.0.1"));
  const std::map<int, int> only_esp{{IPPROTO_ESP, 2 * kPings}};
  EXPECT_EQ(here.sent(), only_esp);
  EXPECT_EQ(far.sent(), only_esp);
}

TEST_P(StaticTunnelTraffic, DownLeavesNothing) {
  ASSERT_EQ(run(true), Exit::done) << err.str();
  const std::string state = test::output_of("ip xfrm state");
  EXPECT_THAT(state, testing::AllOf(HasSubstr("reqid 186"), HasSubstr("replay_window 1024"), Not(HasSubstr("esn\n"))));
  EXPECT_EQ(run(false), Exit::done);
  EXPECT_EQ(kernel_state(), "");
  EXPECT_EQ(run(false), Exit::not_done) << "there is nothing any more";
}

TEST_P(StaticTunnelTraffic, IsNeverInstalledTwice) {
  ASSERT_EQ(run(true), Exit::done) << err.str();
  const std::string before = kernel_state();
  EXPECT_EQ(run(true), Exit::not_done);
  EXPECT_THAT(err.str(), HasSubstr("SPI 186 exists already"));
  EXPECT_EQ(kernel_state(), before);
}

TEST_P(StaticTunnelTraffic, LeavesWhatOthersOwn) {
  const auto foreign_policy = "src 10.0.0.0/24 dst 10.0.1.0/24 dir out";
  test::run(fmt::format("ip xfrm policy add {} tmpl src {} dst {} proto esp reqid 9 mode tunnel", foreign_policy, kHere,
                        kThere));
  const std::string policy = kernel_state();
  EXPECT_EQ(run(true), Exit::not_done);
  EXPECT_EQ(kernel_state(), policy) << "the policies before it are undone";
  EXPECT_EQ(run(false).error().code, Errc::conflict);
  EXPECT_EQ(kernel_state(), policy);

  test::run(fmt::format("ip xfrm policy delete {}", foreign_policy));
  test::run(
      fmt::format("ip xfrm state add src {} dst {} proto esp spi 186 reqid 9 mode tunnel "
                  "aead 'rfc4106(gcm(aes))' 0x{} 128",
                  kHere, kThere, key));
  const std::string sa = kernel_state();
  EXPECT_EQ(run(true), Exit::not_done);
  EXPECT_EQ(run(false).error().code, Errc::conflict);
  EXPECT_EQ(kernel_state(), sa);
}

INSTANTIATE_TEST_SUITE_P(KeyBytes, StaticTunnelTraffic, testing::Values(20U, 36U));

}  // namespace
}  // namespace fabric::ctl
