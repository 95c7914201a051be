#include <fabric/api/names.hpp>
#include <fabric/gateway/announcements.hpp>
#include <fabric/gateway/path.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using crypto::Generation;
using crypto::Reject;

const TimePoint kNow(1'000'000s);
const crypto::GatewayId kOwner{"b", "node-1"};

/// A peer that announces.
class Announcer {
 public:
  Announcer() : identity_(*crypto::Ed25519KeyPair::from_seed(Secret(32))) {
    EXPECT_TRUE(psks_.add(*crypto::Psk::make(1, Secret(48))));
  }

  std::map<std::string, std::string> config(std::vector<std::uint64_t> generations, std::uint64_t counter,
                                            std::uint8_t instance = 1, std::uint8_t state_instance = 0) const {
    std::vector<crypto::AnnouncedKey> keys;
    for (const auto generation : generations) {
      crypto::KeyRecord record;
      record.cluster_set = "fabric";
      record.owner = kOwner;
      record.instance = crypto::InstanceId({instance});
      record.generation = Generation(generation);
      record.suites = {1};
      record.not_after = kNow + 1h;
      keys.push_back(*sign(record, psks_, identity_));
    }
    crypto::StateRecord state;
    state.cluster_set = "fabric";
    state.owner = kOwner;
    state.instance = crypto::InstanceId({state_instance == 0 ? instance : state_instance});
    state.counter = counter;
    state.leaving = leaving;
    return write_backend_config(keys, *sign(state, psks_, identity_));
  }

  crypto::Checked<void> show(Peers& peers, const std::map<std::string, std::string>& config) const {
    const auto raw = read_backend_config(config);
    if (!raw) return std::unexpected(raw.error());
    return accept(peers, *raw, psks_,
                  {.cluster_set = "fabric", .owner = &kOwner, .identity = &identity_.public_key, .now = kNow});
  }

  bool leaving = false;

 private:
  crypto::PskSet psks_;
  crypto::Ed25519KeyPair identity_;
};

TEST(Announcements, AreReadAsTheyWereWritten) {
  const Announcer announcer;
  Peers peers;
  ASSERT_TRUE(announcer.show(peers, announcer.config({5, 6}, 1)));
  const auto& peer = peers.at(kOwner);
  ASSERT_EQ(peer.keys.size(), 2U);
  EXPECT_EQ(peer.keys[1].record.generation, Generation(6));
  EXPECT_EQ(peer.state.record.counter, 1U);
}

TEST(Announcements, NeverGoBack) {
  const Announcer announcer;
  Peers peers;
  ASSERT_TRUE(announcer.show(peers, announcer.config({5, 6}, 10)));
  const auto before = peers;

  struct Row {
    std::string_view name;
    std::map<std::string, std::string> config;
    std::optional<Reject> reject;
  };

  for (const auto& row : {Row{"an older generation", announcer.config({5}, 11), Reject::stale_generation},
                          Row{"an older state", announcer.config({6}, 9), Reject::stale_generation},
                          Row{"state of another instance", announcer.config({6}, 11, 1, 2), Reject::mixed_instances},
                          Row{"descending generations", announcer.config({7, 6}, 11), Reject::mixed_instances},
                          Row{"the same generation twice", announcer.config({6, 6}, 11), Reject::mixed_instances},
                          Row{"three records", announcer.config({5, 6, 7}, 11), Reject::oversized}}) {
    SCOPED_TRACE(row.name);
    const auto shown = announcer.show(peers, row.config);
    ASSERT_FALSE(shown);
    EXPECT_EQ(shown.error(), row.reject);
    EXPECT_EQ(peers, before);
  }
  EXPECT_TRUE(announcer.show(peers, announcer.config({6}, 11)));
  EXPECT_TRUE(announcer.show(peers, announcer.config({9}, 12, 2))) << "a restart";
}

TEST(Announcements, MissingOrBrokenFieldsAreMalformed) {
  const Announcer announcer;
  Peers peers;
  auto config = announcer.config({5}, 1);
  config.erase(std::string(api::names::kStateConfig));
  EXPECT_EQ(announcer.show(peers, config).error(), Reject::malformed);
  config = announcer.config({5}, 1);
  config[std::string(api::names::kKeysConfig)] += ",";
  EXPECT_EQ(announcer.show(peers, config).error(), Reject::malformed);
  config[std::string(api::names::kKeysConfig)] = "%%%";
  EXPECT_EQ(announcer.show(peers, config).error(), Reject::malformed);
  EXPECT_TRUE(peers.empty());
}

TEST(Announcements, ADeletedPeerStaysUntilTheHardLifetimeUnlessItLeft) {
  Announcer announcer;
  Peers peers;
  ASSERT_TRUE(announcer.show(peers, announcer.config({5}, 1)));
  mark_deleted(peers, kOwner, kNow);
  mark_deleted(peers, kOwner, kNow + 1h);
  forget_gone(peers, kNow + 23h, 24h);
  EXPECT_EQ(peers.size(), 1U);
  forget_gone(peers, kNow + 24h, 24h);
  EXPECT_TRUE(peers.empty());
  announcer.leaving = true;
  ASSERT_TRUE(announcer.show(peers, announcer.config({5}, 2)));
  forget_gone(peers, kNow, 24h);
  EXPECT_EQ(peers.size(), 1U) << "its Endpoint is still there";
  mark_deleted(peers, kOwner, kNow);
  forget_gone(peers, kNow, 24h);
  EXPECT_TRUE(peers.empty());
}

TEST(Announcements, APeerThatIsShownAgainIsNotDeleted) {
  const Announcer announcer;
  Peers peers;
  ASSERT_TRUE(announcer.show(peers, announcer.config({5}, 1)));
  mark_deleted(peers, kOwner, kNow);
  ASSERT_TRUE(announcer.show(peers, announcer.config({5}, 1)));
  EXPECT_FALSE(peers.at(kOwner).deleted);
}

TEST(ChoosePath, FollowsNatAndFamily) {
  const auto private4 = net::IpAddress::v4(10, 0, 0, 2);
  const auto public4 = net::IpAddress::v4(198, 51, 100, 2);
  const auto private6 = *net::IpAddress::parse("fd00::2");
  const LocalEnd local{.addresses = {*net::IpAddress::parse("fd00::1"), net::IpAddress::v4(10, 0, 0, 1)}};
  crypto::StateRecord remote;
  remote.private_addresses = {private6, private4};
  remote.public_addresses = {public4};
  remote.natt_port = 4501;
  EXPECT_EQ(choose_path(local, remote), (Path{local.addresses[1], private4, std::nullopt}));
  remote.nat = true;
  EXPECT_EQ(choose_path(local, remote),
            (Path{local.addresses[1], public4, netstate::UdpEncap{.sport = 4500, .dport = 4501}}));
  remote.public_addresses.clear();
  EXPECT_EQ(choose_path(local, remote)->remote, private4);
  remote.nat = false;
  remote.private_addresses = {private6};
  EXPECT_EQ(choose_path(local, remote), (Path{local.addresses[0], private6, std::nullopt}));
  auto behind_nat = local;
  behind_nat.nat = true;
  EXPECT_TRUE(choose_path(behind_nat, remote)->encap);
  remote.private_addresses = {private4};
  EXPECT_FALSE(choose_path({.addresses = {local.addresses[0]}}, remote));
}

}  // namespace
}  // namespace fabric::gateway
