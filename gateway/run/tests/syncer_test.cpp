#include <fabric/async/testing.hpp>
#include <fabric/gateway/syncer.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remote.hpp"

namespace fabric::gateway {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using testing::Filled;
using ::testing::IsEmpty;
using testing::kLocalNamespace;
using testing::kNow;
using testing::Remote;
using ::testing::SizeIs;

class SyncerTest : public ::testing::Test {
 protected:
  void read() {
    membership.read_clusters(broker_clusters.store);
    membership.read_endpoints(broker_endpoints.store, kNow);
    membership.note_absent({&broker_endpoints.store}, kNow, 24h);
    membership.renew_pins(broker_clusters.store);
  }

  CopyPlan plan() {
    return plan_copies({.own_cluster = "a",
                        .ns = std::string(kLocalNamespace),
                        .broker_endpoints = broker_endpoints.store.snapshot(),
                        .broker_clusters = broker_clusters.store.snapshot(),
                        .local_endpoints = local_endpoints.store.snapshot(),
                        .local_clusters = local_clusters.store.snapshot(),
                        .membership = &membership,
                        .carried = carried});
  }

  /// What was planned becomes what is there.
  void carry_out(const CopyPlan& plan) {
    local_endpoints.fill(plan.endpoints);
    local_clusters.fill(plan.clusters);
  }

  Remote b{"b", 1};
  crypto::PskSet psks = testing::one_psk();
  telemetry::Registry metrics;
  Filled<api::Cluster> broker_clusters{{b.cluster()}};
  Filled<api::Endpoint> broker_endpoints{{b.endpoint()}};
  Filled<api::Cluster> local_clusters;
  Filled<api::Endpoint> local_endpoints;
  Membership membership{"a", psks, metrics};
  std::map<std::string, std::vector<net::Cidr>> carried{{"b", {*net::Cidr::parse("10.2.0.0/16")}}};
};

TEST_F(SyncerTest, CopiesAVerifiedGatewayAndItsCluster) {
  read();
  const auto copies = plan();
  ASSERT_THAT(copies.endpoints, SizeIs(1));
  const auto& endpoint = copies.endpoints[0];
  EXPECT_EQ(endpoint.metadata.name, "b-submariner-cable-b-192-0-2-7");
  EXPECT_EQ(endpoint.metadata.ns, kLocalNamespace);
  ASSERT_NE(endpoint.metadata.label(api::names::kClusterIdLabel), nullptr);
  EXPECT_EQ(*endpoint.metadata.label(api::names::kClusterIdLabel), "b");
  EXPECT_THAT(endpoint.spec.subnets, ElementsAre("10.2.0.0/16"));
  ASSERT_THAT(copies.clusters, SizeIs(1));
  EXPECT_NE(copies.clusters[0].metadata.annotation(api::names::kIdentityMacAnnotation), nullptr);
}

TEST_F(SyncerTest, ACopyIsAnnouncementEnoughWhenTheBrokerIsAway) {
  read();
  carry_out(plan());
  Membership later("a", psks, metrics);
  later.read_clusters(local_clusters.store);
  later.read_endpoints(local_endpoints.store, kNow);
  EXPECT_TRUE(later.peers().contains(b.id));
}

TEST_F(SyncerTest, WhatIsThereIsNotWrittenAgain) {
  read();
  carry_out(plan());
  const auto again = plan();
  EXPECT_THAT(again.endpoints, IsEmpty());
  EXPECT_THAT(again.clusters, IsEmpty());
  EXPECT_THAT(again.stale_endpoints, IsEmpty());
  EXPECT_THAT(again.stale_clusters, IsEmpty());
}

TEST_F(SyncerTest, LeavesOutPrefixesThatAreNotCarried) {
  read();
  carried.clear();
  const auto copies = plan();
  ASSERT_THAT(copies.endpoints, SizeIs(1));
  EXPECT_THAT(copies.endpoints[0].spec.subnets, IsEmpty());
}

TEST_F(SyncerTest, CopiesNothingThatIsNotVerified) {
  Remote impostor("b", 2);
  broker_endpoints.fill({impostor.endpoint()});
  read();
  EXPECT_THAT(plan().endpoints, IsEmpty());
}

TEST_F(SyncerTest, NothingOfARefusedAnnouncementReachesACopy) {
  const auto accepted = b.endpoint();
  broker_endpoints.fill({accepted});
  read();
  Remote impostor("b", 2);
  auto forged = impostor.endpoint();
  forged.spec.cable_name = "forged";
  forged.spec.private_ip = "203.0.113.66";
  broker_endpoints.fill({forged});
  read();
  const auto copies = plan();
  ASSERT_THAT(copies.endpoints, SizeIs(1));
  EXPECT_EQ(copies.endpoints[0].spec, accepted.spec);
}

TEST_F(SyncerTest, ReadableFieldsThatDifferFromTheRecordAreNotCopied) {
  auto endpoint = b.endpoint();
  endpoint.spec.private_ip = "203.0.113.66";
  endpoint.spec.health_check_ip = "203.0.113.67";
  broker_endpoints.fill({endpoint});
  read();
  const auto copies = plan();
  ASSERT_THAT(copies.endpoints, SizeIs(1));
  EXPECT_EQ(copies.endpoints[0].spec.private_ip, "192.0.2.7");
  EXPECT_EQ(copies.endpoints[0].spec.health_check_ip, "");
}

TEST_F(SyncerTest, AnEndpointThatIsNamedLikeOursDoesNotReplaceIt) {
  Remote own("a", 4);
  auto endpoint = own.endpoint(kLocalNamespace);
  endpoint.metadata.name = "b-submariner-cable-b-192-0-2-7";
  local_endpoints.fill({endpoint});
  read();
  EXPECT_THAT(plan().endpoints, IsEmpty());
}

TEST_F(SyncerTest, TheCopyOfAClusterFollowsAnIdentityThatWasTaken) {
  b.leaving = true;
  broker_endpoints.fill({b.endpoint()});
  read();
  carry_out(plan());
  broker_endpoints.fill({});
  Remote again("b", 2);
  broker_clusters.fill({again.cluster()});
  read();
  const auto copies = plan();
  ASSERT_THAT(copies.clusters, SizeIs(1));
  EXPECT_TRUE(membership.shows_pin(copies.clusters[0]));
}

TEST_F(SyncerTest, ABrokerThatLostItsObjectsIsNoReasonToForget) {
  read();
  carry_out(plan());
  broker_endpoints.fill({});
  broker_clusters.fill({});
  read();
  const auto copies = plan();
  EXPECT_THAT(copies.stale_endpoints, IsEmpty());
  EXPECT_THAT(copies.stale_clusters, IsEmpty());
}

TEST_F(SyncerTest, RemovesTheCopiesOfAClusterThatLeft) {
  b.leaving = true;
  broker_endpoints.fill({b.endpoint()});
  read();
  carry_out(plan());
  broker_endpoints.fill({});
  broker_clusters.fill({});
  read();
  const auto copies = plan();
  EXPECT_THAT(copies.stale_endpoints,
              ElementsAre(kube::ObjectKey{std::string(kLocalNamespace), "b-submariner-cable-b-192-0-2-7"}));
  EXPECT_THAT(copies.stale_clusters, ElementsAre(kube::ObjectKey{std::string(kLocalNamespace), "b"}));
}

TEST_F(SyncerTest, NeverTouchesWhatIsNoCopy) {
  Remote own("a", 4);
  auto endpoint = own.endpoint(kLocalNamespace);
  auto cluster = own.cluster(kLocalNamespace);
  auto unlabelled = b.endpoint(kLocalNamespace);
  local_endpoints.fill({endpoint, unlabelled});
  local_clusters.fill({cluster});
  broker_endpoints.fill({});
  broker_clusters.fill({});
  read();
  const auto copies = plan();
  EXPECT_THAT(copies.stale_endpoints, IsEmpty());
  EXPECT_THAT(copies.stale_clusters, IsEmpty());
}

TEST_F(SyncerTest, WritesAndRemovesAtTheApiServerAndReportsTheFirstError) {
  async::TestLoop loop;
  kube::fake::FakeApiServer server(loop.executor(), loop.clock());
  const auto client = server.client(metrics);
  read();
  EXPECT_TRUE(loop.run(write_copies(*client, plan())));
  const kube::ObjectKey key{std::string(kLocalNamespace), "b-submariner-cable-b-192-0-2-7"};
  ASSERT_TRUE(server.find<api::Endpoint>(key));
  CopyPlan removal;
  removal.stale_endpoints = {key, {key.ns, "gone-already"}};
  EXPECT_TRUE(loop.run(write_copies(*client, removal)));
  EXPECT_FALSE(server.find<api::Endpoint>(key));
  server.fail_next(1, 403);
  const auto failed = loop.run(write_copies(*client, plan()));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::forbidden);
  EXPECT_TRUE(server.find<api::Endpoint>(key)) << "the rest is tried all the same";
}

}  // namespace
}  // namespace fabric::gateway
