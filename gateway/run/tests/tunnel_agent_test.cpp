#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "site.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using testing::FakeNetwork;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Site;

/// Sites whose datagrams travel over the SAs in their fake kernels, as packets do, beside one packet in a second each
/// way. The kernel sends with the SA that was added last; a packet whose SA the other end lacks is lost.
class TunnelAgentTest : public ::testing::Test {
 protected:
  TunnelAgentTest() {
    network.passes = [this](const auto& from, const auto& to) {
      return records_pass(from, to) && carry(site_at(from), site_at(to)) == Fate::arrived;
    };
    for (auto* site : all) {
      site->network = &network;
      site->rekey_interval = 10min;
    }
  }

  void TearDown() override {
    for (auto* site : all) {
      EXPECT_THAT(site->kernel.installed_twice, IsEmpty()) << site->id();
      site->stop();
    }
  }

  enum class Fate : std::uint8_t { arrived, lost, not_sent };

  /// 10.N.0.1 is the address of site N in the pod network.
  Site& site_at(const net::IpAddress& address) { return *all.at(address.bytes()[1] - 1U); }

  static const netstate::SaKey* newest_outbound(const Site& from, const Site& to) {
    const auto& history = from.kernel.history;
    for (auto step = history.rbegin(); step != history.rend(); ++step) {
      const auto* sa = std::get_if<netstate::SaObject>(&step->object);
      if (sa != nullptr && step->verb == netstate::Verb::add && sa->key.daddr == to.address() &&
          from.kernel.ours.sas.contains(sa->key))
        return &sa->key;
    }
    return nullptr;
  }

  Fate carry(Site& from, Site& to) {
    const auto* key = newest_outbound(from, to);
    if (key == nullptr) return Fate::not_sent;
    from.kernel.count(*key, 1, 100);
    if (!to.kernel.ours.sas.contains(*key)) {
      ++lost;
      return Fate::lost;
    }
    to.kernel.count(*key, 1, 100);
    return Fate::arrived;
  }

  /// Time passes, with traffic between all sites.
  void run(Duration during) {
    for (Duration spent{}; spent < during; spent += 1s) {
      loop.advance(1s);
      for (auto* from : started) {
        for (auto* to : started) {
          if (from != to && carry(*from, *to) == Fate::not_sent) ++silent;
        }
      }
    }
  }

  void join(std::vector<Site*> sites) {
    for (auto* site : sites)
      site->start();
    loop.advance(30s);
    started = std::move(sites);
    run(30s);
    lost = silent = 0;
  }

  /// One SA each way for each pair, as between rotations.
  bool comes_to_rest(Duration limit) {
    const auto rests = [&](const Site* site) { return site->all() == 2 * (started.size() - 1); };
    for (Duration spent{}; spent < limit && !std::ranges::all_of(started, rests); spent += 10s)
      run(10s);
    return std::ranges::all_of(started, rests);
  }

  /// The sequence number of the newest generation in the Endpoint that a site published in its own cluster.
  static std::uint64_t generation(const Site& site) {
    for (const auto& key : site.server.keys(kube::resource_of<api::Endpoint>())) {
      const auto endpoint = site.server.find<api::Endpoint>(key);
      if (endpoint->spec.cluster_id != site.id()) continue;
      return crypto::generation_sequence(
          last_published({endpoint->spec.backend_config.begin(), endpoint->spec.backend_config.end()}).value());
    }
    return 0;
  }

  void expect_no_loss() {
    EXPECT_EQ(lost, 0U);
    EXPECT_EQ(silent, 0U) << "packets for which there was no SA";
  }

  /// Where a copy of another cluster's Endpoint and its original say the same.
  void expect_copies_follow(Site& at, const Site& of) {
    for (const auto& key : of.server.keys(kube::resource_of<api::Endpoint>())) {
      const auto original = of.server.find<api::Endpoint>(key);
      if (original->spec.cluster_id != of.id()) continue;
      const auto copy = at.server.find<api::Endpoint>(key);
      ASSERT_TRUE(copy) << key.name;
      EXPECT_EQ(copy->spec.backend_config.find(api::names::kKeysConfig)->second,
                original->spec.backend_config.find(api::names::kKeysConfig)->second);
    }
  }

  async::TestLoop loop;
  kube::fake::FakeApiServer broker{loop.executor(), loop.clock()};
  FakeNetwork network{loop.executor()};
  Site a{loop, broker, "a", 1};
  Site b{loop, broker, "b", 2};
  Site c{loop, broker, "c", 3};
  std::vector<Site*> all{&a, &b, &c};
  std::vector<Site*> started;
  std::function<bool(const net::IpAddress&, const net::IpAddress&)> records_pass = [](const auto&, const auto&) {
    return true;
  };
  std::size_t lost = 0;
  std::size_t silent = 0;
};

const net::IpAddress kPodAddressOfC = net::IpAddress::v4(10, 3, 0, 1);

TEST_F(TunnelAgentTest, KeysChangeTwiceWhileTheBrokerIsAwayAndNothingIsLost) {
  join({&a, &b});
  const auto before = a.kernel.ours.sas;
  broker.set_unreachable(true);
  run(24min);
  expect_no_loss();
  EXPECT_GE(generation(a), 3U);
  EXPECT_GE(generation(b), 3U);
  for (const auto& [key, sa] : before)
    EXPECT_FALSE(a.kernel.ours.sas.contains(key)) << "old keys are gone";
  EXPECT_TRUE(a.health().ready()) << a.health().report();
  expect_copies_follow(a, b);
  broker.set_unreachable(false);
  run(1min);
  EXPECT_TRUE(comes_to_rest(10min));
  expect_no_loss();
  for (const auto* site : {&a, &b}) {
    for (const auto& key : broker.keys(kube::resource_of<api::Endpoint>())) {
      const auto endpoint = broker.find<api::Endpoint>(key);
      if (endpoint->spec.cluster_id != site->id()) continue;
      EXPECT_EQ(
          crypto::generation_sequence(
              last_published({endpoint->spec.backend_config.begin(), endpoint->spec.backend_config.end()}).value()),
          generation(*site));
    }
  }
}

TEST_F(TunnelAgentTest, APeerThatTheTunnelDoesNotReachKeepsItsSasUntilTheBrokerIsBack) {
  join({&a, &b, &c});
  broker.set_unreachable(true);
  records_pass = [](const auto& from, const auto& to) { return from != kPodAddressOfC && to != kPodAddressOfC; };
  run(15min);
  expect_no_loss();
  EXPECT_GE(generation(a), 2U);
  broker.set_unreachable(false);
  run(1min);
  EXPECT_TRUE(comes_to_rest(10min));
  expect_no_loss();
}

TEST_F(TunnelAgentTest, ARestartWithoutABrokerFindsWhatCameThroughTheTunnelInTheCopies) {
  join({&a, &b});
  broker.set_unreachable(true);
  run(14min);
  ASSERT_GE(generation(a), 2U);
  expect_copies_follow(b, a);
  b.stop();
  started.clear();
  b.start();
  loop.advance(0s);
  started = {&a, &b};
  run(3min);
  expect_no_loss();
  const auto restarted = b.kernel.ours.sas;
  run(14min);
  expect_no_loss();
  for (const auto& [key, sa] : restarted)
    EXPECT_FALSE(b.kernel.ours.sas.contains(key)) << "the new instance rotates, too";
}

TEST_F(TunnelAgentTest, ARestartBehindStaleCopiesLearnsFromThePeer) {
  join({&a, &b});
  const auto endpoints = b.server.keys(kube::resource_of<api::Endpoint>());
  std::vector<api::Endpoint> old;
  for (const auto& key : endpoints)
    old.push_back(*b.server.find<api::Endpoint>(key));
  broker.set_unreachable(true);
  run(14min);
  ASSERT_GE(generation(a), 2U);
  b.stop();
  for (const auto& endpoint : old)
    b.server.put(endpoint);
  b.start();
  run(3min);
  expect_no_loss();
  expect_copies_follow(b, a);
}

TEST_F(TunnelAgentTest, NoiseOnThePortChangesNothing) {
  join({&a, &b});
  const auto steps = a.kernel.history.size();
  for (int i = 0; i < 1000; ++i) {
    network.inject(net::IpAddress::v4(10, 2, 0, 1), net::IpAddress::v4(10, 1, 0, 1),
                   crypto::Bytes(static_cast<std::size_t>(i), 0x42));
  }
  run(10s);
  EXPECT_EQ(a.kernel.history.size(), steps);
  EXPECT_THAT(a.metrics().render(), HasSubstr("fabric_records_rejected_total{reason=\"rate_limited\"} 980\n"));
  expect_no_loss();
}

}  // namespace
}  // namespace fabric::gateway
