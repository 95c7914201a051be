#include <fabric/async/testing.hpp>
#include <fabric/async/timeout.hpp>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <unistd.h>

#include <sys/wait.h>

#include "build.hpp"
#include "network.hpp"
#include "real_kernel.hpp"

namespace fabric::kernel {
namespace {

using testing::HasSubstr;

namespace contract_tests {
using namespace contract;
INSTANTIATE_TEST_SUITE_P(Host, PolicyContract, testing::Values(real_kernel()), name_of);
}  // namespace contract_tests

class XfrmHost : public test::NetworkTest {
 protected:
  std::unique_ptr<XfrmDriver> driver = XfrmDriver::open().value();
};

TEST_F(XfrmHost, SetsHashThresholdsOfPolicies) {
  for (int i = 0; i < 2; ++i) {
    const auto done = driver->set_policy_hash_thresholds();
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  const auto text = test::output_of("ip -s -s xfrm policy count");
  EXPECT_THAT(text, HasSubstr("SPD IPv4 thresholds: local 0 remote 16"));
  EXPECT_THAT(text, HasSubstr("SPD IPv6 thresholds: local 0 remote 48"));
}

TEST_F(XfrmHost, FindsPoliciesOfEveryLengthWhenTheyAreHashed) {
  using namespace netstate;
  ASSERT_TRUE(driver->set_policy_hash_thresholds().has_value());
  State desired;
  for (const auto* remote : {"10.2.0.0/16", "10.96.0.0/12", "10.5.6.0/24", "10.5.6.7/32"}) {
    desired.policies[netstate::test::policy_key(Direction::out, "10.1.0.0/16", remote)] =
        netstate::test::esp("192.0.2.1", "192.0.2.2", 7);
    desired.policies[netstate::test::policy_key(Direction::out, "0.0.0.0/0", remote)] = netstate::test::block();
  }
  test::converge(*driver, desired);
  EXPECT_EQ(test::observed(*driver), desired);
  EXPECT_EQ(test::converge(*driver, desired), 0U);
  test::converge(*driver, {});
  EXPECT_EQ(test::observed(*driver), State{});
}

TEST_F(XfrmHost, NamesTheRemedyWhenTheKernelHasNoEsp) {
  using namespace netstate;
  const Step step{Phase::inbound_sas, Verb::add,
                  SaObject{netstate::test::sa_key("192.0.2.1", 0x1000), netstate::test::sa("192.0.2.2", 7)}};
  const auto results = driver->apply(std::span(&step, 1));
  if (results.front().has_value()) {
    EXPECT_EQ(test::observed(*driver).sas.size(), 1U) << "this kernel has ESP";
    return;
  }
  EXPECT_EQ(results.front().error().code, Errc::unsupported);
  EXPECT_THAT(results.front().error().message(), HasSubstr("modprobe -a esp4 esp6"));
}

TEST_F(XfrmHost, AppliesThousandsOfPolicies) {
  using namespace netstate;
  State desired;
  for (int i = 0; i < 3000; ++i) {
    const auto remote = fmt::format("10.{}.{}.0/24", 100 + i / 250, i % 250);
    desired.policies[netstate::test::policy_key(Direction::out, "10.1.0.0/16", remote)] =
        netstate::test::esp("192.0.2.1", "192.0.2.2", 7);
  }
  EXPECT_EQ(test::converge(*driver, desired), 3000U);
  EXPECT_EQ(test::observed(*driver), desired);
}

TEST_F(XfrmHost, NeedsThePrivilege) {
  const auto pid = ::fork();
  if (pid == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const netstate::Step step{
        netstate::Phase::block_policies, netstate::Verb::add,
        netstate::PolicyObject{netstate::test::policy_key(netstate::Direction::out, "10.1.0.0/16", "10.2.0.0/16"),
                               netstate::test::block()}};
    auto unprivileged = XfrmDriver::open();
    if (!unprivileged) ::_exit(3);
    const auto results = (*unprivileged)->apply(std::span(&step, 1));
    const bool right = !results.front() && results.front().error().code == Errc::forbidden &&
                       results.front().error().message().find("CAP_NET_ADMIN") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(XfrmStat, ReadsNamesAndNumbers) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("xfrm_stat.{}", ::getpid());
  std::ofstream(file) << "XfrmInError                     0\nXfrmInNoStates          \t18446744073709551615\n";
  const auto counters = read_xfrm_stat(file);
  std::filesystem::remove(file);
  ASSERT_TRUE(counters.has_value());
  EXPECT_EQ(*counters, (std::map<std::string, std::uint64_t>{{"XfrmInError", 0}, {"XfrmInNoStates", ~0ULL}}));
}

TEST(XfrmStat, SaysThatTheKernelKeepsNone) {
  EXPECT_EQ(read_xfrm_stat("/nonexistent/xfrm_stat").error().code, Errc::unsupported);
}

TEST_F(XfrmHost, TellsWhenAPacketMeetsNoSa) {
  using namespace netstate;
  const auto peer = make_peer();
  test::run("ip addr add 10.1.0.1/32 dev lo; ip route add 10.2.0.0/16 dev eth0 src 10.1.0.1");
  async::TestLoop loop;
  const auto events = open_sa_events(loop.executor(), {.acquire = true}).value();
  State desired;
  desired.policies[netstate::test::policy_key(Direction::out, "10.1.0.0/16", "10.2.0.0/16")] =
      netstate::test::esp("192.0.2.1", "192.0.2.2", 7);
  test::converge(*driver, desired);
  test::UdpSocket("10.1.0.1").send("10.2.0.1", 7000);
  const auto event = loop.run_blocking(async::with_timeout(events->next(), std::chrono::seconds(5)));
  ASSERT_TRUE(event.has_value()) << event.error().message();
  EXPECT_EQ(event->kind, SaEvent::Kind::acquire);
  EXPECT_EQ(event->reqid, Reqid(kReqidBase | 7));
  EXPECT_EQ(event->key.daddr, test::ip("192.0.2.2"));
  EXPECT_TRUE(test::observed(*driver).sas.empty()) << "a larval state is no SA";
}

TEST_F(XfrmHost, WaitingForEventsCanBeCancelled) {
  async::TestLoop loop;
  auto events = open_sa_events(loop.executor()).value();
  std::optional<Result<SaEvent>> event;
  const auto wait = [](SaEvents& stream, std::optional<Result<SaEvent>>& into) -> async::Task<void> {
    into.emplace(co_await stream.next());
  };
  loop.group().spawn("events", wait(*events, event));
  loop.settle();
  EXPECT_FALSE(event.has_value());
  loop.group().stop();
  loop.settle();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->error().code, Errc::cancelled);
}

}  // namespace
}  // namespace fabric::kernel
