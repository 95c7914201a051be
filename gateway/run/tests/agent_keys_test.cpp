#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mounted_psks.hpp"
#include "site.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MountedPsks;
using testing::psk_text;
using testing::Site;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Two gateways that have a tunnel, and a mounted PSK each.
class AgentKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto& [site, mounted] : sides()) {
      mounted->mount({{"psk", psk_text(1)}});
      site->secrets = mounted->root();
      site->start();
    }
    loop.advance(60s);
    ASSERT_NO_FATAL_FAILURE(expect_tunnel());
  }

  void TearDown() override {
    for (auto& [site, mounted] : sides()) {
      EXPECT_THAT(site->kernel.installed_twice, IsEmpty());
      site->stop();
    }
  }

  std::array<std::pair<Site*, MountedPsks*>, 2> sides() { return {std::pair(&a, &psks_a), std::pair(&b, &psks_b)}; }

  /// Whatever one end sends with is there at the other end, and both send.
  void expect_tunnel() {
    for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      ASSERT_GE(from->inbound(), 1U);
      ASSERT_GE(from->all() - from->inbound(), 1U);
      for (const auto& [key, sa] : from->kernel.ours.sas)
        EXPECT_TRUE(key.daddr == from->address() || to->kernel.ours.sas.contains(key)) << to->address().to_string();
    }
  }

  /// As expect_tunnel(), after each second.
  void pass_without_a_gap(std::chrono::seconds time) {
    for (; time > 0s; time -= 1s) {
      loop.advance(1s);
      ASSERT_NO_FATAL_FAILURE(expect_tunnel());
    }
  }

  static std::vector<std::string> psks_of(const Site& site) {
    return site.gateway().status.keys->generations.back().psk_ids;
  }

  void annotate(Site& site, const std::string& value) {
    auto gateway = site.server.find<api::Gateway>({std::string(testing::kLocalNamespace), "n1"});
    ASSERT_TRUE(gateway);
    gateway->metadata.annotations[std::string(api::names::kRekeyAnnotation)] = value;
    site.server.put(*gateway);
  }

  async::TestLoop loop;
  kube::fake::FakeApiServer broker{loop.executor(), loop.clock()};
  Site a{loop, broker, "a", 1};
  Site b{loop, broker, "b", 2};
  MountedPsks psks_a{"a"};
  MountedPsks psks_b{"b"};
};

TEST_F(AgentKeysTest, ARotationOfPsksLosesNothingAtAnyMoment) {
  psks_a.mount({{"psk", psk_text(2)}, {"number", "2"}, {"previous", psk_text(1)}});
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(150s));
  EXPECT_THAT(psks_of(a), SizeIs(2)) << "the first goes ahead";
  psks_b.mount({{"psk", psk_text(2)}, {"number", "2"}, {"previous", psk_text(1)}});
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(150s));
  EXPECT_THAT(psks_of(b), SizeIs(2));
  psks_b.mount({{"psk", psk_text(2)}, {"number", "2"}});
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(150s));
  psks_a.mount({{"psk", psk_text(2)}, {"number", "2"}});
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(150s));
  for (const auto* site : {&a, &b}) {
    EXPECT_THAT(psks_of(*site), ::testing::ElementsAre(StartsWith("2:")));
    EXPECT_EQ(site->gateway().status.keys->generations.back().reason, "psk_changed");
    EXPECT_EQ(site->gateway().status.keys->rekeys, 2);
    EXPECT_THAT(site->gateway().status.keys->rejected, IsEmpty());
  }
}

TEST_F(AgentKeysTest, AnAnnouncementByAPskThatIsNotHereYetIsTakenWhenThePskComes) {
  // Out of order: b has no way to verify what a says until its Secret follows.
  psks_a.mount({{"psk", psk_text(2)}, {"number", "2"}});
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(60s));
  EXPECT_THAT(b.gateway().status.keys->rejected,
              Contains(::testing::Field(&api::RejectedRecord::reason, "unknown_psk")));
  psks_b.mount({{"psk", psk_text(2)}, {"number", "2"}, {"previous", psk_text(1)}});
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(240s));
  for (const auto* site : {&a, &b})
    EXPECT_THAT(psks_of(*site), Contains(StartsWith("2:")));
}

TEST_F(AgentKeysTest, ABrokenFolderKeepsTheOldPsksAndIsSaid) {
  struct Row {
    std::string name;
    std::map<std::string, std::string> files;
  };

  for (const auto& row :
       {Row{"too short", {{"psk", "short"}}}, Row{"a number that is none", {{"psk", psk_text(2)}, {"number", "two"}}},
        Row{"no psk", {{"number", "2"}}},
        Row{"the same twice", {{"psk", psk_text(1)}, {"number", "2"}, {"previous", psk_text(1)}}}}) {
    SCOPED_TRACE(row.name);
    psks_a.mount(row.files);
    ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(40s));
    ASSERT_NE(a.gateway().metadata.annotation(kPskFailureAnnotation), nullptr);
    EXPECT_THAT(*a.gateway().metadata.annotation(kPskFailureAnnotation), HasSubstr("psk"));
    EXPECT_THAT(psks_of(a), ::testing::ElementsAre(StartsWith("1:")));
    EXPECT_TRUE(a.health().ready()) << a.health().report();
  }
  psks_a.mount({{"psk", psk_text(1)}});
  loop.advance(60s);
  EXPECT_EQ(a.gateway().metadata.annotation(kPskFailureAnnotation), nullptr);
  EXPECT_EQ(a.gateway().status.keys->rekeys, 0);
}

TEST_F(AgentKeysTest, ARekeyTouchesSasOnly) {
  const std::array from{a.kernel.history.size(), b.kernel.history.size()};
  annotate(a, "now");
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(150s));
  ASSERT_EQ(a.gateway().status.keys->rekeys, 1);
  for (const auto& [site, begin] : {std::pair(&a, from[0]), std::pair(&b, from[1])}) {
    ASSERT_GT(site->kernel.history.size(), begin);
    for (std::size_t i = begin; i < site->kernel.history.size(); ++i) {
      const auto& step = site->kernel.history[i];
      EXPECT_TRUE(std::holds_alternative<netstate::SaObject>(step.object)) << netstate::describe(step);
    }
  }
}

TEST_F(AgentKeysTest, ABrokerThatDoesNotAnswerHoldsUpNeitherTheKernelNorLocalObjects) {
  broker.set_silent(true);
  const auto asked = broker.writes();
  auto cluster = a.server.find<api::Cluster>({std::string(testing::kLocalNamespace), "a"});
  ASSERT_TRUE(cluster);
  cluster->spec.service_cidr.emplace_back("10.200.0.0/16");
  a.server.put(*cluster);
  loop.advance(3s);
  ASSERT_GT(broker.writes(), asked) << "a request is open, and no answer comes";
  a.kernel.ours.sas.clear();
  loop.advance(3s);
  EXPECT_GE(a.inbound(), 1U);
  EXPECT_EQ(a.gateway().status.keys->generations.back().reason, "sa_lost");
  broker.set_silent(false);
  loop.advance(60s);
  expect_tunnel();
}

TEST_F(AgentKeysTest, SasThatAreLostWhileANewGenerationIsOnItsWayComeBack) {
  broker.set_silent(true);
  loop.advance(60s);
  annotate(a, "now");
  loop.advance(3s);
  ASSERT_THAT(a.gateway().status.keys->generations, SizeIs(2));
  a.kernel.ours.sas.clear();
  loop.advance(3s);
  broker.set_silent(false);
  loop.advance(90s);
  expect_tunnel();
}

TEST_F(AgentKeysTest, ACommandDrawsNewKeysOnceForEachValue) {
  annotate(a, "2026-11-21T17:00:00Z");
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(150s));
  EXPECT_EQ(a.gateway().status.keys->rekeys, 1);
  EXPECT_EQ(a.gateway().status.keys->generations.back().reason, "requested");
  EXPECT_THAT(a.metrics().render(), HasSubstr("fabric_rekeys_total{reason=\"requested\"} 1\n"));
  annotate(a, "2026-11-21T17:00:00Z");
  loop.advance(150s);
  EXPECT_EQ(a.gateway().status.keys->rekeys, 1) << "the same value";
  annotate(a, "again");
  loop.advance(150s);
  EXPECT_EQ(a.gateway().status.keys->rekeys, 2);
  a.start();
  loop.advance(150s);
  EXPECT_EQ(a.gateway().status.keys->rekeys, 0) << "a start serves the command that it finds";
  expect_tunnel();
}

TEST_F(AgentKeysTest, AFlushByHandIsMendedWithNewKeysAndBlocksFirst) {
  loop.advance(60s);
  const auto before = a.kernel.ours.sas;
  const auto done = a.kernel.history.size();
  a.kernel.ours.sas.clear();
  a.kernel.ours.policies.clear();
  loop.advance(5s);
  expect_tunnel();
  for (const auto& [key, sa] : before)
    EXPECT_FALSE(a.kernel.ours.sas.contains(key));
  std::optional<netstate::Phase> last;
  for (auto step = a.kernel.history.begin() + static_cast<std::ptrdiff_t>(done); step != a.kernel.history.end();
       ++step) {
    if (!std::holds_alternative<netstate::PolicyObject>(step->object)) continue;
    EXPECT_LE(last.value_or(netstate::Phase::block_policies), step->phase) << netstate::describe(*step);
    last = step->phase;
  }
  ASSERT_TRUE(last);
  EXPECT_EQ(a.gateway().status.keys->generations.back().reason, "sa_lost");
}

TEST_F(AgentKeysTest, ABrokerThatWentBackInTimeChangesNothingAndIsToldAnew) {
  const auto endpoints = broker.keys(kube::resource_of<api::Endpoint>());
  std::vector<api::Endpoint> old;
  for (const auto& key : endpoints)
    old.push_back(*broker.find<api::Endpoint>(key));
  annotate(a, "now");
  annotate(b, "now");
  loop.advance(150s);
  const auto sas = a.kernel.ours.sas;
  for (const auto& endpoint : old)
    broker.put(endpoint);
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(30s));
  for (const auto& [key, sa] : sas)
    EXPECT_TRUE(a.kernel.ours.sas.contains(key));
  EXPECT_THAT(a.gateway().status.keys->rejected,
              Contains(::testing::Field(&api::RejectedRecord::reason, "stale_generation")));
  for (const auto& endpoint : old) {
    const auto now = broker.find<api::Endpoint>({endpoint.metadata.ns, endpoint.metadata.name});
    EXPECT_NE(now->spec.backend_config, endpoint.spec.backend_config) << "our own is published again";
  }
  // A database that never knew them.
  for (const auto& key : endpoints)
    broker.erase(kube::resource_of<api::Endpoint>(), key);
  ASSERT_NO_FATAL_FAILURE(pass_without_a_gap(30s));
  EXPECT_THAT(broker.keys(kube::resource_of<api::Endpoint>()), SizeIs(2));
  EXPECT_EQ(a.kernel.ours.sas.size(), sas.size());
}

}  // namespace
}  // namespace fabric::gateway
