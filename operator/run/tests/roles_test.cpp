#include <fabric/api/service_cidr.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clusters.hpp"

namespace fabric::operators {
namespace {

using namespace fabric::operators::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(Roles, TheBrokerIsReadyOnceItsTokenIsThere) {
  EXPECT_EQ(last(hub.reconcile()).state, StepState::failing);
  EXPECT_EQ(last(hub.reconcile()).state, StepState::done);
  EXPECT_EQ(hub.status.broker_url, kHubUrl);
  EXPECT_EQ(hub.info().metadata.labels.at("operator.tkestack.io/fabric-name"), "broker");
}

TEST_F(Roles, ThePskIsTheSameAfterAThousandReconciles) {
  hub.settle();
  const std::string psk = hub.psk();
  const std::string info = hub.info().data.at("brokerInfo");
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(last(hub.reconcile()).state, StepState::done);
  EXPECT_EQ(hub.psk(), psk);
  EXPECT_EQ(hub.info().data.at("brokerInfo"), info);
}

TEST_F(Roles, ADeletedPskSecretIsRestoredFromBrokerInfo) {
  hub.settle();
  const std::string psk = hub.psk();
  hub.server.erase(kube::resource_of<api::SecretObject>(), Hub::key(names::kPskSecret));
  hub.settle();
  EXPECT_EQ(hub.psk(), psk);
}

TEST_F(Roles, ABrokenPskSecretIsNeverOverwritten) {
  json::Value secret =
      json::Object{{"metadata", json::Object{{"name", names::kPskSecret}, {"namespace", names::kBrokerNamespace}}},
                   {"data", json::Object{{"psk", ""}}}};
  hub.server.put(kube::resource_of<api::SecretObject>(), secret);
  const RoleOutcome outcome = hub.reconcile();
  EXPECT_EQ(last(outcome).state, StepState::stalled);
  EXPECT_THAT(last(outcome).message,
              HasSubstr("Secret submariner-k8s-broker/submariner-ipsec-psk: key psk is missing or empty"));
  EXPECT_EQ(hub.psk(), "");
}

TEST_F(Roles, TwoClustersJoinThroughTheBroker) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  Member b(loop, hub, "b", "10.2.0.0/24", 2);
  a.copy_info();
  b.copy_info();
  const RoleOutcome joined = a.join();
  ASSERT_NE(find(joined, kJoined), nullptr);
  EXPECT_EQ(find(joined, kJoined)->state, StepState::done) << find(joined, kJoined)->message;
  EXPECT_EQ(find(b.join(), kJoined)->state, StepState::done);
  hub.settle();
  EXPECT_THAT(hub.status.joined_clusters, ElementsAre("a", "b"));
  EXPECT_EQ(a.tokens.back(), "token-of-cluster-a-token");
  EXPECT_EQ(b.tokens.back(), "token-of-cluster-b-token");
  EXPECT_EQ(a.status.psk_ids, b.status.psk_ids);
  EXPECT_TRUE(a.server.find<api::DaemonSet>(Member::key(names::kGatewayName)).has_value());
  EXPECT_TRUE(a.server.find<api::DaemonSet>(Member::key(names::kRouteAgentName)).has_value());
  EXPECT_EQ(*a.server.find<api::Node>({"", "a-n1"})->metadata.label(names::kGatewayLabel), "true");
  for (const auto& each : hub.server.keys(kube::resource_of<api::ConfigMap>()))
    EXPECT_THAT(each.name, Not(HasSubstr("fabric-join-")));
}

TEST_F(Roles, AJoinedClusterAtRestWritesNothingNew) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  const auto version = [&] {
    return a.server.find<api::DaemonSet>(Member::key(names::kGatewayName))->metadata.resource_version;
  };
  const std::string before = version();
  const std::size_t hub_requests = hub.server.requests().size();
  for (int i = 0; i < 10; ++i)
    static_cast<void>(a.reconcile());
  EXPECT_EQ(version(), before);
  EXPECT_EQ(hub.server.requests().size(), hub_requests);
}

TEST_F(Roles, NoSecretStandsInAnyStatusOrOutsideOfSecretsAndBrokerInfo) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  const std::string token = json::encode_base64(std::string_view("token-of-cluster-a-token"));
  for (const std::string& secret : {hub.psk(), token, std::string("token-of-cluster-a-token")}) {
    EXPECT_THAT(json::encode(a.status), Not(HasSubstr(secret)));
    EXPECT_THAT(json::encode(hub.status), Not(HasSubstr(secret)));
    for (const Agent agent : kAgents) {
      const auto* daemonset = a.server.find(kube::resource_of<api::DaemonSet>(), Member::key(name_of(agent)));
      EXPECT_THAT(json::write(*daemonset), Not(HasSubstr(secret)));
    }
  }
}

TEST_F(Roles, OverlappingPrefixesAreRefusedWithBothNamesAndMendThemselves) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  Member b(loop, hub, "b", "10.1.0.0/16", 2);
  a.copy_info();
  b.copy_info();
  static_cast<void>(a.join());
  const RoleOutcome refused = b.join();
  const Step& step = last(refused);
  EXPECT_EQ(step.type, kJoined);
  EXPECT_EQ(step.state, StepState::stalled);
  EXPECT_THAT(step.message, HasSubstr("pod prefix 10.1.0.0/16 of cluster 'b'"));
  EXPECT_THAT(step.message, HasSubstr("pod prefix 10.1.0.0/24 of cluster 'a'"));
  EXPECT_GT(refused.requeue, Duration::zero());
  EXPECT_FALSE(hub.server.find<api::Cluster>(Hub::key("b")).has_value());
  b.spec().spec.join_config->cluster_cidr = "10.2.0.0/16";
  EXPECT_EQ(find(b.reconcile(), kJoined)->state, StepState::done);
}

TEST_F(Roles, ATakenClusterIdIsRefusedUntilItIsFree) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  Member thief(loop, hub, "a", "10.2.0.0/24", 2);
  a.copy_info();
  thief.copy_info();
  static_cast<void>(a.join());
  static_cast<void>(thief.reconcile());
  static_cast<void>(hub.reconcile());
  const RoleOutcome refused = thief.reconcile();
  EXPECT_EQ(last(refused).state, StepState::stalled);
  EXPECT_THAT(last(refused).message, HasSubstr("cluster id 'a' is taken"));
  EXPECT_EQ(find(a.reconcile(), kJoined)->state, StepState::done);
  hub.server.erase(kube::resource_of<api::ConfigMap>(), Hub::key("fabric-member-a"));
  hub.server.erase(kube::resource_of<api::Cluster>(), Hub::key("a"));
  EXPECT_EQ(find(thief.join(), kJoined)->state, StepState::done);
}

TEST_F(Roles, AMemberWhoseTokenWasTakenAwayJoinsAgain) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  a.restart();
  bool deny = true;
  hub.server.intercept([&](const http::Request& request) -> std::optional<Result<http::Response>> {
    if (!deny || request.url.target.find("/clusters") == std::string::npos) return std::nullopt;
    http::Response response;
    response.status = 401;
    return Result<http::Response>(response);
  });
  const RoleOutcome denied = a.reconcile();
  EXPECT_THAT(last(denied).message, HasSubstr("copy the ConfigMap from the broker again"));
  EXPECT_EQ(a.server.find<api::SecretObject>(Member::key(names::kBrokerSecret))->find("token"), nullptr);
  deny = false;
  EXPECT_EQ(find(a.join(), kJoined)->state, StepState::done);
}

struct BadInput {
  std::string name;
  void (*damage)(Hub&, Member&);
  std::string step;
  std::string says;
  void (*mend)(Hub&, Member&);
  bool retried = true;  ///< False where only a change of the Fabric itself mends it.
};

void PrintTo(const BadInput& input, std::ostream* out) {
  *out << input.name;
}

class BadInputs : public Roles, public ::testing::WithParamInterface<BadInput> {};

TEST_P(BadInputs, AreNamedAndMendThemselves) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  GetParam().damage(hub, a);
  const RoleOutcome bad = a.join();
  EXPECT_EQ(last(bad).type, GetParam().step);
  EXPECT_NE(last(bad).state, StepState::done);
  EXPECT_THAT(last(bad).message, HasSubstr(GetParam().says));
  EXPECT_EQ(bad.requeue > Duration::zero(), GetParam().retried);
  GetParam().mend(hub, a);
  const RoleOutcome good = a.join();
  ASSERT_NE(find(good, kJoined), nullptr) << last(good).message;
  EXPECT_EQ(find(good, kJoined)->state, StepState::done) << find(good, kJoined)->message;
}

/// broker-info with one text of its JSON replaced.
std::string altered(Hub& hub, std::string_view from, std::string_view to) {
  const auto bytes = *json::decode_base64(hub.info().data.at("brokerInfo"));
  std::string text(bytes.begin(), bytes.end());
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  text.replace(at, from.size(), to);
  return json::encode_base64(text, json::Base64Alphabet::url);
}

void copy_again(Hub&, Member& member) {
  member.copy_info();
}

INSTANTIATE_TEST_SUITE_P(
    Roles, BadInputs,
    ::testing::Values(
        BadInput{
            "AbsentConfigMap",
            [](Hub&, Member& m) { m.server.erase(kube::resource_of<api::ConfigMap>(), Hub::key(names::kBrokerInfo)); },
            "BrokerInfoRead", "ConfigMap submariner-k8s-broker/submariner-broker-info does not exist: copy it",
            copy_again},
        BadInput{"AbsentKey",
                 [](Hub&, Member& m) {
                   auto info = *m.server.find<api::ConfigMap>(Hub::key(names::kBrokerInfo));
                   info.data.clear();
                   m.server.put(info);
                 },
                 "BrokerInfoRead", "key brokerInfo is missing", copy_again},
        BadInput{"BrokenBase64", [](Hub&, Member& m) { m.set_info("%%%"); }, "BrokerInfoRead",
                 "brokerInfo is not base64", copy_again},
        BadInput{"BrokenJson",
                 [](Hub&, Member& m) { m.set_info(json::encode_base64(std::string_view("{\"brokerURL\":"))); },
                 "BrokerInfoRead", "holds no JSON", copy_again},
        BadInput{"MissingPsk", [](Hub& h, Member& m) { m.set_info(altered(h, "\"psk\":", "\"pks\":")); },
                 "BrokerInfoRead", "ipsecPSK.data.psk is missing", copy_again},
        BadInput{"UnreachableBroker", [](Hub& h, Member& m) { m.set_info(altered(h, "192.0.2.1", "192.0.2.9")); },
                 "Joined", "check that brokerURL is reachable", copy_again},
        BadInput{"BrokerDown", [](Hub& h, Member&) { h.server.set_unreachable(true); }, "Joined",
                 "broker https://192.0.2.1:6443", [](Hub& h, Member&) { h.server.set_unreachable(false); }},
        BadInput{"TokenWithoutRights",
                 [](Hub& h, Member&) {
                   h.server.intercept([](const http::Request& request) -> std::optional<Result<http::Response>> {
                     const bool asks = request.method == http::Method::post &&
                                       request.url.target.find("/configmaps") != std::string::npos;
                     if (!asks) return std::nullopt;
                     http::Response response;
                     response.status = 403;
                     return Result<http::Response>(response);
                   });
                 },
                 "Joined", "the token in broker-info lacks rights", [](Hub& h, Member&) { h.server.intercept({}); }},
        BadInput{"WrongClusterId", [](Hub&, Member& m) { m.spec().spec.join_config->cluster_id = "Not_A_Label"; },
                 "BrokerInfoRead", "clusterID", [](Hub&, Member& m) { m.spec().spec.join_config->cluster_id = "a"; },
                 false},
        BadInput{"BadConfiguredCidr", [](Hub&, Member& m) { m.spec().spec.join_config->cluster_cidr = "10.1.0.1/16"; },
                 "BrokerInfoRead", "clusterCIDR",
                 [](Hub&, Member& m) { m.spec().spec.join_config->cluster_cidr.reset(); }, false},
        BadInput{"NoPodPrefixes",
                 [](Hub&, Member& m) {
                   auto node = *m.server.find<api::Node>({"", "a-n1"});
                   node.spec.pod_cidrs.clear();
                   m.server.put(node);
                 },
                 "NetworkDiscovered", "set spec.joinConfig.clusterCIDR",
                 [](Hub&, Member& m) { m.spec().spec.join_config->cluster_cidr = "10.1.0.0/16"; }}),
    [](const auto& test) { return test.param.name; });

/// Says what an agent says on a node when it is done.
template <class T>
void acknowledge(Member& member, std::string_view component, std::string_view token) {
  T object;
  object.metadata.ns = names::kOperatorNamespace;
  object.metadata.name = "a-n1";
  object.metadata.annotations.emplace(names::kCleanedAnnotation, fmt::format("{}@{}", component, token));
  member.server.put(object);
}

bool uninstalls(Member& member, std::string_view daemonset) {
  const auto* object = member.server.find(kube::resource_of<api::DaemonSet>(), Member::key(daemonset));
  return object != nullptr && json::write(*object).contains("--uninstall=1");
}

api::Endpoint endpoint_of(std::string_view cluster, std::string_view node, std::string_view ns) {
  api::Endpoint endpoint;
  endpoint.metadata.ns = ns;
  endpoint.metadata.name = fmt::format("{}-{}", cluster, node);
  endpoint.spec.cluster_id = cluster;
  endpoint.spec.hostname = node;
  return endpoint;
}

TEST_F(Roles, AGatewayWhoseNodeIsNoneAnyMoreIsForgottenEverywhere) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  for (const auto* node : {"a-n1", "a-n2"}) {
    api::Gateway gateway;
    gateway.metadata.ns = names::kOperatorNamespace;
    gateway.metadata.name = node;
    a.server.put(gateway);
    a.server.put(endpoint_of("a", node, names::kOperatorNamespace));
    hub.server.put(endpoint_of("a", node, names::kBrokerNamespace));
  }
  hub.server.put(endpoint_of("b", "a-n2", names::kBrokerNamespace));

  hub.server.set_unreachable(true);
  const RoleOutcome waiting = a.reconcile();
  EXPECT_EQ(find(waiting, kGatewaysChosen)->state, StepState::working);
  EXPECT_THAT(find(waiting, kGatewaysChosen)->message, HasSubstr("node 'a-n2' is no gateway any more"));
  EXPECT_NE(find(waiting, kAgentsReady), nullptr) << "the rest goes on";
  EXPECT_TRUE(a.server.find<api::Gateway>(Member::key("a-n2")).has_value()) << "so that it is tried again";

  hub.server.set_unreachable(false);
  const RoleOutcome outcome = a.reconcile();
  EXPECT_EQ(find(outcome, kGatewaysChosen)->state, StepState::done) << find(outcome, kGatewaysChosen)->message;
  EXPECT_THAT(outcome.events, Contains(HasSubstr("node 'a-n2' is no gateway any more")));
  EXPECT_FALSE(a.server.find<api::Gateway>(Member::key("a-n2")).has_value());
  EXPECT_FALSE(a.server.find<api::Endpoint>(Member::key("a-a-n2")).has_value());
  EXPECT_FALSE(hub.server.find<api::Endpoint>(Hub::key("a-a-n2")).has_value());
  EXPECT_TRUE(a.server.find<api::Gateway>(Member::key("a-n1")).has_value());
  EXPECT_TRUE(hub.server.find<api::Endpoint>(Hub::key("a-a-n1")).has_value());
  EXPECT_TRUE(hub.server.find<api::Endpoint>(Hub::key("b-a-n2")).has_value()) << "of another cluster";
}

TEST_F(Roles, UninstallWaitsForRouteAgentsThenGatewaysThenRemovesEverything) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());

  EXPECT_THAT(last(a.uninstall()).message, HasSubstr("submariner-routeagent has cleaned node a-n1"));
  EXPECT_TRUE(uninstalls(a, names::kRouteAgentName));
  EXPECT_FALSE(uninstalls(a, names::kGatewayName));
  acknowledge<api::RouteAgent>(a, names::kRouteAgentName, "0");  // of an earlier uninstall
  EXPECT_EQ(last(a.uninstall()).state, StepState::working);
  acknowledge<api::RouteAgent>(a, names::kRouteAgentName, "1");
  EXPECT_THAT(last(a.uninstall()).message, HasSubstr("submariner-gateway has cleaned node a-n1"));
  EXPECT_TRUE(uninstalls(a, names::kGatewayName));
  EXPECT_TRUE(hub.server.find<api::Cluster>(Hub::key("a")).has_value());
  acknowledge<api::Gateway>(a, names::kGatewayName, "1");
  EXPECT_EQ(last(a.uninstall()).state, StepState::done);

  EXPECT_FALSE(hub.server.find<api::Cluster>(Hub::key("a")).has_value());
  EXPECT_THAT(a.server.keys(kube::resource_of<api::DaemonSet>()), IsEmpty());
  EXPECT_THAT(a.server.keys(kube::resource_of<api::SecretObject>()), IsEmpty());
  EXPECT_THAT(a.server.keys(kube::resource_of<api::Cluster>()), IsEmpty());
  EXPECT_THAT(a.server.keys(kube::resource_of<api::Gateway>()), IsEmpty());
  EXPECT_EQ(a.server.find<api::Node>({"", "a-n1"})->metadata.label(names::kGatewayLabel), nullptr);
  hub.settle();
  EXPECT_FALSE(hub.server.find<api::ServiceAccount>(Hub::key("cluster-a")).has_value());
  EXPECT_FALSE(hub.server.find<api::ConfigMap>(Hub::key("fabric-member-a")).has_value());
  EXPECT_EQ(last(a.uninstall()).state, StepState::done) << "a second run finds nothing to do";
}

TEST_F(Roles, UninstallDoesNotWaitForeverForABrokerThatIsGone) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  a.spec().metadata.deletion_timestamp = loop.clock().now();
  static_cast<void>(a.uninstall());
  acknowledge<api::RouteAgent>(a, names::kRouteAgentName, "1");
  acknowledge<api::Gateway>(a, names::kGatewayName, "1");
  hub.server.set_unreachable(true);
  EXPECT_EQ(last(a.uninstall()).state, StepState::working);
  loop.advance(std::chrono::seconds(61));
  const RoleOutcome left = a.uninstall();
  EXPECT_EQ(last(left).state, StepState::done);
  EXPECT_THAT(left.events, ElementsAre(HasSubstr("delete Cluster 'a'")));
}

TEST_F(Roles, UninstallGoesOnWithoutANodeThatIsDownAndNamesIt) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  auto down = *a.server.find<api::Node>({"", "a-n1"});
  down.metadata = {};
  down.metadata.name = "a-n2";
  down.status.conditions.front().status = api::ConditionStatus::unknown;
  a.server.put(down);
  a.spec().metadata.deletion_timestamp = loop.clock().now();
  acknowledge<api::RouteAgent>(a, names::kRouteAgentName, "1");
  acknowledge<api::Gateway>(a, names::kGatewayName, "1");
  EXPECT_THAT(last(a.uninstall()).message, HasSubstr("has cleaned node a-n2; repair a node that is down"));
  loop.advance(std::chrono::seconds(299));
  EXPECT_EQ(last(a.uninstall()).state, StepState::working);
  loop.advance(std::chrono::seconds(1));
  const RoleOutcome left = a.uninstall();
  EXPECT_EQ(last(left).state, StepState::done);
  EXPECT_THAT(left.warnings, ElementsAre(HasSubstr("node 'a-n2' was not Ready for 300 s")));
  EXPECT_THAT(a.server.keys(kube::resource_of<api::DaemonSet>()), IsEmpty());
}

TEST_F(Roles, UninstallWaitsForANodeThatIsUp) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  a.spec().metadata.deletion_timestamp = loop.clock().now();
  loop.advance(std::chrono::hours(1));
  EXPECT_THAT(last(a.uninstall()).message, HasSubstr("has cleaned node a-n1"));
}

TEST_F(Roles, ALabelThatAUserSetStays) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  auto node = *a.server.find<api::Node>({"", "a-n1"});
  node.metadata.labels.emplace(names::kGatewayLabel, "true");
  a.server.put(node);
  a.copy_info();
  static_cast<void>(a.join());
  static_cast<void>(a.uninstall());
  acknowledge<api::RouteAgent>(a, names::kRouteAgentName, "1");
  static_cast<void>(a.uninstall());
  acknowledge<api::Gateway>(a, names::kGatewayName, "1");
  EXPECT_EQ(last(a.uninstall()).state, StepState::done);
  EXPECT_NE(a.server.find<api::Node>({"", "a-n1"})->metadata.label(names::kGatewayLabel), nullptr);
}

TEST_F(Roles, TheBrokerStaysWhileAMemberIsLeft) {
  hub.settle();
  Member a(loop, hub, "a", "10.1.0.0/24", 1);
  a.copy_info();
  static_cast<void>(a.join());
  const RoleOutcome waiting = hub.uninstall();
  EXPECT_EQ(last(waiting).state, StepState::working);
  EXPECT_THAT(last(waiting).message, HasSubstr("while clusters a are joined"));
  hub.server.erase(kube::resource_of<api::Cluster>(), Hub::key("a"));
  EXPECT_EQ(last(hub.uninstall()).state, StepState::done);
  EXPECT_FALSE(hub.server.find<api::ConfigMap>(Hub::key(names::kBrokerInfo)).has_value());
  EXPECT_EQ(hub.server.find(kube::resource_of<api::SecretObject>(), Hub::key(names::kPskSecret)), nullptr);
}

TEST_F(Roles, TheUrlComesFromClusterInfoOrTheEndpointsOfTheApiServer) {
  const auto url = [&] { return loop.run(public_api_server_url(hub.env.client, "")); };
  EXPECT_THAT(url().error().message(), HasSubstr("set spec.brokerConfig.publicAPIServerURL"));
  json::Value slice =
      json::Object{{"metadata", json::Object{{"name", "kubernetes"},
                                             {"namespace", "default"},
                                             {"labels", json::Object{{"kubernetes.io/service-name", "kubernetes"}}}}},
                   {"endpoints", json::array(json::Object{{"addresses", json::array("192.0.2.7")}})},
                   {"ports", json::array(json::Object{{"name", "https"}, {"port", 6443}})}};
  hub.server.put({"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true}, slice);
  EXPECT_EQ(*url(), "https://192.0.2.7:6443");
  api::ConfigMap info;
  info.metadata.ns = "kube-public";
  info.metadata.name = "cluster-info";
  info.data.emplace("kubeconfig", "clusters:\n- cluster:\n    server: https://api.example:6443\n  name: \"\"\n");
  hub.server.put(info);
  EXPECT_EQ(*url(), "https://api.example:6443");
}

}  // namespace
}  // namespace fabric::operators
