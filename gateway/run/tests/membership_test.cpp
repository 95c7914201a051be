#include <fabric/gateway/membership.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
