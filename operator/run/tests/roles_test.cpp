#include <fabric/api/names.hpp>
#include <fabric/api/service_cidr.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/operator/broker_role.hpp>
#include <fabric/operator/join_role.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::operators {
namespace {

namespace names = api::names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::string_view kHubUrl = "https://192.0.2.1:6443";

api::Fabric fabric(std::string name) {
  api::Fabric out;
  out.metadata.ns = "default";
  out.metadata.name = std::move(name);
  out.metadata.generation = 1;
  return out;
}

const Step& last(const RoleOutcome& outcome) {
  return outcome.steps.back();
}

const Step* find(const RoleOutcome& outcome, std::string_view type) {
  for (const Step& step : outcome.steps) {
    if (step.type == type) return &step;
  }
  return nullptr;
}

/// A broker cluster and its operator.
class Hub {
 public:
  explicit Hub(async::TestLoop& loop)
      : loop_(loop), server(loop.executor(), loop.clock()), client_(server.client(metrics_)) {
    fabric_.spec.broker_config = api::BrokerConfig{};
    fabric_.spec.broker_config->public_api_server_url = std::string(kHubUrl);
  }

  RoleOutcome reconcile() {
    RoleOutcome outcome = *loop_.run(wrapped());
    fill_tokens();
    return outcome;
  }

  /// Until tokens are there and requests are answered.
  void settle() {
    for (int i = 0; i < 4; ++i)
      static_cast<void>(reconcile());
  }

  std::string psk() {
    return server.find(kube::resource_of<api::SecretObject>(), key(names::kPskSecret))->string_at({"data", "psk"});
  }

  api::ConfigMap info() { return *server.find<api::ConfigMap>(key(names::kBrokerInfo)); }

  static kube::ObjectKey key(std::string_view name) {
    return {std::string(names::kBrokerNamespace), std::string(name)};
  }

  RoleOutcome uninstall() {
    return *loop_.run([](Hub& hub) -> Task<Result<RoleOutcome>> {
      co_return co_await uninstall_broker(hub.env, hub.fabric_);
    }(*this));
  }

 private:
  Task<Result<RoleOutcome>> wrapped() { co_return co_await reconcile_broker(env, fabric_, status); }

  /// What kube-controller-manager does: writes a token into each token Secret.
  void fill_tokens() {
    const kube::ResourceId secrets = kube::resource_of<api::SecretObject>();
    for (const kube::ObjectKey& each : server.keys(secrets)) {
      json::Value object = *server.find(secrets, each);
      if (object.string_at({"type"}) != names::kTokenSecretType || object.at({"data", "token"}) != nullptr) continue;
      object["data"] =
          json::Object{{"token", json::encode_base64("token-of-" + each.name)},
                       {"ca.crt", json::encode_base64(std::string_view("-----BEGIN CERTIFICATE-----\nx\n"))},
                       {"namespace", json::encode_base64(each.ns)}};
      server.put(secrets, std::move(object));
    }
  }

  async::TestLoop& loop_;
  telemetry::Registry metrics_;
  api::Fabric fabric_ = fabric("broker");

 public:
  kube::fake::FakeApiServer server;
  api::FabricStatus status;

 private:
  std::unique_ptr<kube::Client> client_;
  crypto::DeterministicEntropy entropy_{1};

 public:
  Environment env{.client = *client_, .entropy = entropy_, .clock = loop_.clock(), .connect_broker = {}};
};

/// A cluster that joins, and its operator. Reaches the hub under the URL of broker-info only.
class Member {
 public:
  Member(async::TestLoop& loop, Hub& hub, std::string id, std::string pods, std::uint64_t seed)
      : loop_(loop),
        hub_(hub),
        id_(std::move(id)),
        server(loop.executor(), loop.clock()),
        client_(server.client(metrics_)),
        entropy_(seed) {
    fabric_.spec.join_config = api::JoinConfig{};
    fabric_.spec.join_config->cluster_id = id_;
    fabric_.spec.join_config->service_cidr = "10." + std::to_string(100 + seed) + ".0.0/16";
    api::Node node;
    node.metadata.name = id_ + "-n1";
    node.spec.pod_cidrs = {std::move(pods)};
    node.status.conditions = {{.type = "Ready",
                               .status = api::ConditionStatus::yes,
                               .observed_generation = {},
                               .last_transition_time = {},
                               .reason = "",
                               .message = ""}};
    server.put(node);
  }

  void copy_info() {
    api::ConfigMap info = hub_.info();
    info.metadata.resource_version.clear();
    info.metadata.uid.clear();
    server.put(info);
  }

  void set_info(std::string text) {
    api::ConfigMap info;
    info.metadata.ns = names::kBrokerNamespace;
    info.metadata.name = names::kBrokerInfo;
    info.data.emplace(names::kBrokerInfoKey, std::move(text));
    server.put(info);
  }

  RoleOutcome reconcile() { return *loop_.run(wrapped()); }

  /// Both operators, until the broker has answered.
  RoleOutcome join() {
    for (int i = 0; i < 4; ++i) {
      static_cast<void>(reconcile());
      static_cast<void>(hub_.reconcile());
    }
    return reconcile();
  }

  Observed observe() {
    Observed out;
    collect(out.nodes);
    collect(out.daemonsets);
    collect(out.gateways);
    collect(out.route_agents);
    collect(out.clusters);
    return out;
  }

  RoleOutcome uninstall() { return *loop_.run(wrapped_uninstall()); }

  api::Fabric& spec() { return fabric_; }

  static kube::ObjectKey key(std::string_view name) {
    return {std::string(names::kOperatorNamespace), std::string(name)};
  }

 private:
  Task<Result<RoleOutcome>> wrapped() { co_return co_await role->reconcile(fabric_, observe(), status); }

  Task<Result<RoleOutcome>> wrapped_uninstall() { co_return co_await role->uninstall(fabric_, observe()); }

  template <class T>
  void collect(std::vector<T>& out) {
    for (const kube::ObjectKey& each : server.keys(kube::resource_of<T>()))
      out.push_back(*server.find<T>(each));
  }

  Result<kube::Connection> connect(const BrokerAccess& access) {
    if (access.url != kHubUrl) return fail(Errc::unavailable, "connect {}: connection refused", access.url);
    tokens.emplace_back(access.token.reveal_text());
    return kube::Connection{nullptr, hub_.server.client(metrics_)};
  }

  async::TestLoop& loop_;
  Hub& hub_;
  std::string id_;
  telemetry::Registry metrics_;
  api::Fabric fabric_ = fabric("join");

 public:
  kube::fake::FakeApiServer server;
  api::FabricStatus status;
  std::vector<std::string> tokens;  ///< With which the hub was approached.

 private:
  std::unique_ptr<kube::Client> client_;
  crypto::DeterministicEntropy entropy_;

 public:
  Environment env{.client = *client_,
                  .entropy = entropy_,
                  .clock = loop_.clock(),
                  .connect_broker = [this](BrokerAccess access) { return connect(access); },
                  .ns = std::string(names::kOperatorNamespace),
                  .images = {.image = "fabric/fabric:0.1.0"}};
  std::unique_ptr<JoinRole> role = std::make_unique<JoinRole>(env);

  /// A new process: what was published is not remembered.
  void restart() { role = std::make_unique<JoinRole>(env); }
};

class Roles : public testing::Test {
 protected:
  async::TestLoop loop;
  Hub hub{loop};
};

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
  EXPECT_FALSE(a.server.find(kube::resource_of<api::SecretObject>(), Member::key(names::kBrokerSecret)));
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

class BadInputs : public Roles, public testing::WithParamInterface<BadInput> {};

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
    testing::Values(
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
                     if (request.url.target.find("fabric-member-a") == std::string::npos) return std::nullopt;
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
