#include <fabric/gateway/membership.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "remote.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::Filled;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kLocalNamespace;
using testing::kNow;
using testing::Remote;

class MembershipTest : public ::testing::Test {
 protected:
  /// As the agent does on each pass.
  void read(TimePoint now = kNow) {
    membership.read_clusters(clusters.store);
    membership.read_endpoints(local_endpoints.store, now);
    membership.read_endpoints(endpoints.store, now);
    membership.note_absent({&endpoints.store}, now, 24h);
    membership.renew_pins(clusters.store);
  }

  bool knows(const Remote& remote) const { return membership.peers().contains(remote.id); }

  Remote b{"b", 1};
  crypto::PskSet psks = testing::one_psk();
  telemetry::Registry metrics;
  Filled<api::Cluster> clusters;
  Filled<api::Endpoint> endpoints;
  Filled<api::Endpoint> local_endpoints;
  Membership membership{"a", psks, metrics};
};

TEST_F(MembershipTest, BelievesAnAnnouncementOfAPinnedCluster) {
  clusters.fill({b.cluster()});
  endpoints.fill({b.endpoint()});
  read();
  EXPECT_TRUE(knows(b));
  EXPECT_THAT(membership.clusters(), ElementsAre("b"));
  ASSERT_NE(membership.endpoint_of(b.id), nullptr);
  EXPECT_EQ(membership.endpoint_of(b.id)->private_ip, "192.0.2.7");
  EXPECT_THAT(membership.refused(), IsEmpty());
}

TEST_F(MembershipTest, AnAnnouncementThatCameBeforeItsIdentityIsLookedAtAgain) {
  endpoints.fill({b.endpoint()});
  read();
  EXPECT_FALSE(knows(b));
  clusters.fill({b.cluster()});
  read();
  EXPECT_TRUE(knows(b));
  EXPECT_THAT(membership.refused(), IsEmpty());
}

TEST_F(MembershipTest, RefusesWhatIsNotProvedAndCountsIt) {
  Remote impostor("b", 2);
  clusters.fill({b.cluster()});
  endpoints.fill({impostor.endpoint()});
  read();
  read();
  EXPECT_FALSE(knows(b));
  EXPECT_THAT(membership.refused(), ElementsAre(std::pair("b-submariner-cable-b-192-0-2-7", "bad_signature")));
  EXPECT_THAT(metrics.render(), HasSubstr("fabric_records_rejected_total{reason=\"bad_signature\"} 1\n"))
      << "once for one announcement";
}

/// Every way in which an announcement can be wrong is refused, counted, shown, and changes nothing.
TEST_F(MembershipTest, EveryKindOfHostileRecordIsRefusedCountedAndShown) {
  using Change = std::function<void(api::Endpoint&)>;

  struct Row {
    std::string reason;
    Change change;
  };

  const auto field = [](api::Endpoint& endpoint, std::string_view name) -> std::string& {
    return endpoint.spec.backend_config.find(std::string(name))->second;
  };
  const auto flip = [&](std::size_t from_end, std::string_view name) {
    return [=](api::Endpoint& endpoint) {
      auto bytes = *crypto::from_base64(field(endpoint, name), crypto::kMaxStateRecord);
      bytes[bytes.size() - from_end] ^= 1U;
      field(endpoint, name) = crypto::to_base64(bytes);
    };
  };
  Remote again("b", 1);
  ASSERT_TRUE(again.ring.draw(kNow, 24h));
  Remote c("c", 5);
  Remote neighbour("b", 6, "n2");
  Remote other_instance("b", 8);
  auto restarted = *KeyRing::open(again.id, again.entropy, again.psks, again.identity, kNow, {});
  ASSERT_TRUE(restarted.draw(kNow, 24h));
  const std::vector<Row> rows{
      {"foreign_cluster_set",
       [&](auto& e) {
         auto state = *crypto::decode_state_record(
             *crypto::from_base64(field(e, api::names::kStateConfig), crypto::kMaxStateRecord));
         state.cluster_set = "another";
         field(e, api::names::kStateConfig) =
             crypto::to_base64(crypto::sign(std::move(state), again.psks, again.identity)->bytes);
       }},
      {"mixed_instances",
       [&](auto& e) {
         const auto keys = restarted.records({restarted.mine().back().generation});
         field(e, api::names::kKeysConfig) = crypto::to_base64(keys.front().bytes);
       }},
      {"bad_signature", flip(1, api::names::kStateConfig)},
      {"bad_mac", flip(65, api::names::kStateConfig)},
      {"malformed", [&](auto& e) { field(e, api::names::kStateConfig) = "%"; }},
      {"malformed", [&](auto& e) { e.spec.backend_config.clear(); }},
      {"oversized", [&](auto& e) { field(e, api::names::kKeysConfig) = "AAAA,AAAA,AAAA"; }},
      {"unsupported_version",
       [&](auto& e) {
         auto bytes = *crypto::from_base64(field(e, api::names::kStateConfig), crypto::kMaxStateRecord);
         *std::ranges::find(bytes, std::uint8_t{'1'}) = '2';
         field(e, api::names::kStateConfig) = crypto::to_base64(bytes);
       }},
      {"foreign_gateway", [&](auto& e) { e.spec.backend_config = c.endpoint().spec.backend_config; }},
      {"foreign_gateway", [&](auto& e) { e.spec.backend_config = neighbour.endpoint().spec.backend_config; }},
      {"unknown_identity", [&](auto& e) { e.spec = c.endpoint().spec; }},
      {"bad_signature", [&](auto& e) {
         field(e, api::names::kKeysConfig) =
             field(*std::make_unique<api::Endpoint>(other_instance.endpoint()), api::names::kKeysConfig);
       }}};
  clusters.fill({b.cluster()});
  endpoints.fill({again.endpoint()});
  read();
  ASSERT_TRUE(knows(b));
  const auto before = membership.peers();
  std::map<std::string, std::uint64_t> times;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    auto endpoint = again.endpoint();
    row.change(endpoint);
    endpoints.fill({endpoint});
    read();
    read();
    const auto line =
        fmt::format("fabric_records_rejected_total{{reason=\"{}\"}} {}\n", row.reason, ++times[row.reason]);
    EXPECT_THAT(metrics.render(), HasSubstr(line));
    const auto rejected = membership.rejected();
    EXPECT_TRUE(std::ranges::any_of(rejected, [&](const Rejected& one) {
      return one.endpoint == endpoint.metadata.name && to_string(one.reason) == row.reason &&
             one.count == times[row.reason];
    }));
    EXPECT_EQ(membership.peers().at(b.id).keys, before.at(b.id).keys);
    EXPECT_EQ(membership.peers().at(b.id).state, before.at(b.id).state);
    EXPECT_EQ(membership.peers().size(), 1U);
  }
}

TEST_F(MembershipTest, ARecordUnderTheNameOfAnotherGatewayIsRefused) {
  Remote c("c", 5);
  clusters.fill({b.cluster(), c.cluster()});
  endpoints.fill({b.endpoint()});
  read();
  auto endpoint = c.endpoint();
  endpoint.metadata.name = b.endpoint_name();
  endpoints.fill({endpoint});
  read();
  EXPECT_TRUE(knows(b));
  EXPECT_FALSE(knows(c));
  EXPECT_THAT(membership.rejected(), ElementsAre(Rejected{b.endpoint_name(), crypto::Reject::foreign_gateway, 1}));
}

TEST_F(MembershipTest, AnOlderOriginalIsShownAndAnExpiredRecordIsRefused) {
  clusters.fill({b.cluster()});
  const auto old = b.endpoint();
  ASSERT_TRUE(b.ring.draw(kNow, 24h));
  endpoints.fill({b.endpoint()});
  read();
  endpoints.fill({old});
  read();
  EXPECT_EQ(membership.peers().at(b.id).keys.size(), 2U);
  EXPECT_FALSE(membership.peers().at(b.id).deleted) << "it is still there";
  EXPECT_THAT(membership.rejected(), ElementsAre(Rejected{b.endpoint_name(), crypto::Reject::stale_generation, 1}));
  Membership fresh("a", psks, metrics);
  fresh.read_clusters(clusters.store);
  fresh.read_endpoints(endpoints.store, kNow + 25h);
  EXPECT_THAT(fresh.peers(), IsEmpty());
  EXPECT_THAT(fresh.rejected(), ElementsAre(Rejected{b.endpoint_name(), crypto::Reject::expired, 1}));
}

TEST_F(MembershipTest, WhatWasRefusedForWantOfAPskIsTakenWhenThePskCame) {
  psks = testing::one_psk(7);
  clusters.fill({b.cluster()});
  endpoints.fill({b.endpoint()});
  read();
  EXPECT_FALSE(knows(b));
  psks = testing::one_psk();
  membership.psks_changed();
  read();
  read();
  EXPECT_TRUE(knows(b));
  psks = testing::one_psk(7);
  membership.psks_changed();
  read();
  EXPECT_TRUE(knows(b)) << "a PSK that is gone takes nothing back";
  EXPECT_TRUE(membership.is_pinned("b"));
}

TEST_F(MembershipTest, RemembersABoundedNumberOfRefusals) {
  clusters.fill({b.cluster()});
  std::vector<api::Endpoint> forged;
  for (int i = 0; i < 50; ++i) {
    forged.push_back(b.endpoint());
    forged.back().metadata.name += fmt::format("-{}", i);
  }
  endpoints.fill(forged);
  read();
  EXPECT_THAT(membership.rejected(), ::testing::SizeIs(kMaxRejected));
}

TEST_F(MembershipTest, AClusterWithoutTheRightMacIsNotPinned) {
  auto cluster = b.cluster();
  cluster.metadata.annotations.find(api::names::kIdentityMacAnnotation)->second = std::string(43, 'A') + "=";
  clusters.fill({cluster});
  endpoints.fill({b.endpoint()});
  read();
  EXPECT_FALSE(membership.is_pinned("b"));
  EXPECT_FALSE(knows(b));
}

TEST_F(MembershipTest, APinnedIdentityIsNotReplaced) {
  Remote impostor("b", 2);
  clusters.fill({b.cluster()});
  endpoints.fill({b.endpoint()});
  read();
  clusters.fill({impostor.cluster()});
  endpoints.fill({impostor.endpoint()});
  read();
  EXPECT_EQ(membership.peers().at(b.id).state.record.instance, b.ring.instance());
}

TEST_F(MembershipTest, ACopyThatLagsBehindChangesNothing) {
  clusters.fill({b.cluster()});
  const auto old = b.endpoint(kLocalNamespace);
  ASSERT_TRUE(b.ring.draw(kNow, 24h));
  endpoints.fill({b.endpoint()});
  local_endpoints.fill({old});
  read();
  read();
  EXPECT_EQ(membership.peers().at(b.id).keys.size(), 2U);
  EXPECT_THAT(membership.refused(), IsEmpty()) << "a stale copy is no refusal to show";
}

TEST_F(MembershipTest, OwnEndpointsAreNoPeers) {
  Remote own("a", 3);
  clusters.fill({own.cluster()});
  endpoints.fill({own.endpoint()});
  read();
  EXPECT_THAT(membership.peers(), IsEmpty());
}

TEST_F(MembershipTest, APeerThatTheBrokerLostStaysForTheLifetimeOfItsSas) {
  clusters.fill({b.cluster()});
  endpoints.fill({b.endpoint()});
  read();
  endpoints.fill({});
  read(kNow + 1h);
  EXPECT_TRUE(knows(b));
  read(kNow + 24h);
  EXPECT_TRUE(knows(b)) << "counted from its disappearance";
  read(kNow + 25h);
  EXPECT_FALSE(knows(b));
  EXPECT_EQ(membership.endpoint_of(b.id), nullptr);
}

TEST_F(MembershipTest, APeerThatComesBackIsNotForgotten) {
  clusters.fill({b.cluster()});
  const auto endpoint = b.endpoint();
  endpoints.fill({endpoint});
  read();
  endpoints.fill({});
  read(kNow + 1h);
  endpoints.fill({endpoint});
  read(kNow + 2h);
  read(kNow + 40h);
  EXPECT_TRUE(knows(b));
}

TEST_F(MembershipTest, APeerThatSaidGoodByeGoesWithItsEndpoint) {
  clusters.fill({b.cluster()});
  b.leaving = true;
  endpoints.fill({b.endpoint()});
  read();
  EXPECT_TRUE(knows(b));
  endpoints.fill({});
  read();
  EXPECT_FALSE(knows(b));
}

TEST_F(MembershipTest, ACopyThatStandsDoesNotKeepAPeerThatTheBrokerLost) {
  clusters.fill({b.cluster()});
  const auto endpoint = b.endpoint();
  endpoints.fill({endpoint});
  auto copy = endpoint;
  copy.metadata.ns = kLocalNamespace;
  local_endpoints.fill({copy});
  read();
  endpoints.fill({});
  read(kNow + 1h);
  read(kNow + 2h);
  EXPECT_EQ(membership.peers().at(b.id).deleted, kNow + 1h);
  read(kNow + 25h);
  EXPECT_FALSE(knows(b));
}

TEST_F(MembershipTest, AClusterThatSaidGoodByeMayComeBackWithAnotherIdentity) {
  Remote again("b", 2);
  clusters.fill({b.cluster()});
  b.leaving = true;
  endpoints.fill({b.endpoint()});
  read();
  clusters.fill({});
  endpoints.fill({});
  read();
  ASSERT_FALSE(knows(b));
  clusters.fill({again.cluster()});
  endpoints.fill({again.endpoint()});
  read();
  read();
  ASSERT_TRUE(knows(again));
  EXPECT_EQ(membership.peers().at(again.id).state.record.instance, again.ring.instance());
  EXPECT_TRUE(membership.shows_pin(again.cluster()));
  EXPECT_FALSE(membership.shows_pin(b.cluster()));
}

TEST_F(MembershipTest, AGoodByeThatWasReplacedUnseenLetsTheClusterComeBack) {
  Remote again("b", 2);
  clusters.fill({b.cluster()});
  b.leaving = true;
  endpoints.fill({b.endpoint()});
  read();
  clusters.fill({again.cluster()});
  endpoints.fill({again.endpoint()});
  for (int pass = 0; pass < 3; ++pass)
    read();
  ASSERT_TRUE(knows(again));
  EXPECT_EQ(membership.peers().at(again.id).state.record.instance, again.ring.instance());
}

TEST_F(MembershipTest, AnotherIdentityIsCountedAndNotTakenWhileThePeerIsKnown) {
  Remote impostor("b", 2);
  clusters.fill({b.cluster()});
  endpoints.fill({b.endpoint()});
  read();
  clusters.fill({impostor.cluster()});
  endpoints.fill({impostor.endpoint()});
  read();
  read(kNow + 23h);
  EXPECT_TRUE(membership.shows_pin(b.cluster()));
  EXPECT_TRUE(knows(b));
  EXPECT_THAT(metrics.render(), HasSubstr("fabric_identities_refused_total 1\n")) << "once for one identity";
}

TEST_F(MembershipTest, AnotherIdentityWithoutTheRightMacNeverReplacesAPin) {
  Remote impostor("b", 2);
  clusters.fill({b.cluster()});
  read();
  auto cluster = impostor.cluster();
  cluster.metadata.annotations.find(api::names::kIdentityMacAnnotation)->second = std::string(43, 'A') + "=";
  clusters.fill({cluster});
  read();
  EXPECT_TRUE(membership.shows_pin(b.cluster()));
}

}  // namespace
}  // namespace fabric::gateway
