#include <fabric/operator/agents.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::operators {
namespace {

using json::Value;
using testing::HasSubstr;
using testing::Not;

AgentPlan sample() {
  AgentPlan plan;
  plan.fabric = "default.join";
  plan.ns = "submariner-operator";
  plan.settings.cluster_id = api::ClusterId("a");
  plan.defaults.image = "fabric/fabric:0.1.0";
  return plan;
}

const Value& pod(const Value& daemonset) {
  return *daemonset.at({"spec", "template", "spec"});
}

const Value& container(const Value& daemonset) {
  return *pod(daemonset).at({"containers", "0"});
}

class EveryAgent : public testing::TestWithParam<Agent> {};

INSTANTIATE_TEST_SUITE_P(Agents, EveryAgent, testing::ValuesIn(kAgents),
                         [](const auto& test) { return test.param == Agent::gateway ? "Gateway" : "RouteAgent"; });

TEST_P(EveryAgent, HasOnlyTheCapabilitiesThatItNeeds) {
  const Value daemonset = agent_daemonset(GetParam(), sample());
  const Value& security = *container(daemonset).find("securityContext");
  EXPECT_EQ(json::write(*security.find("capabilities")), R"({"add":["NET_ADMIN","NET_RAW"],"drop":["ALL"]})");
  EXPECT_EQ(*security.find("readOnlyRootFilesystem"), Value(true));
  EXPECT_EQ(*security.find("allowPrivilegeEscalation"), Value(false));
  EXPECT_EQ(security.string_at({"seccompProfile", "type"}), "RuntimeDefault");
}

TEST_P(EveryAgent, RunsOnTheHostNetworkOfEveryNodeThatTheSelectorTakes) {
  const Value daemonset = agent_daemonset(GetParam(), sample());
  EXPECT_EQ(*pod(daemonset).find("hostNetwork"), Value(true));
  EXPECT_EQ(json::write(*pod(daemonset).find("tolerations")), R"([{"operator":"Exists"}])");
  EXPECT_EQ(pod(daemonset).string_at({"priorityClassName"}), "system-node-critical");
  const Value* gateway = pod(daemonset).at({"nodeSelector", "submariner.io/gateway"});
  EXPECT_EQ(gateway != nullptr, GetParam() == Agent::gateway);
}

TEST_P(EveryAgent, SelectsThePodsThatItsTemplateMakes) {
  const Value daemonset = agent_daemonset(GetParam(), sample());
  EXPECT_EQ(daemonset.string_at({"spec", "selector", "matchLabels", "app"}),
            daemonset.string_at({"spec", "template", "metadata", "labels", "app"}));
}

TEST_P(EveryAgent, MountsEveryVolumeThatItDeclares) {
  const Value daemonset = agent_daemonset(GetParam(), sample());
  const auto& volumes = *pod(daemonset).find("volumes")->if_array();
  const auto& mounts = *container(daemonset).find("volumeMounts")->if_array();
  ASSERT_EQ(volumes.size(), mounts.size());
  for (std::size_t i = 0; i < volumes.size(); ++i)
    EXPECT_EQ(volumes[i].string_at({"name"}), mounts[i].string_at({"name"}));
}

TEST_P(EveryAgent, RollsOutAnUninstallEverywhereAtOnce) {
  AgentPlan plan = sample();
  plan.uninstall_gateway = plan.uninstall_route_agent = "7";
  const Value daemonset = agent_daemonset(GetParam(), plan);
  EXPECT_THAT(json::write(*container(daemonset).find("args")), HasSubstr("--uninstall=7"));
  EXPECT_EQ(daemonset.string_at({"spec", "updateStrategy", "rollingUpdate", "maxUnavailable"}), "100%");
}

TEST(Agents, TheRouteAgentGetsNoSecret) {
  const Value daemonset = agent_daemonset(Agent::route_agent, sample());
  EXPECT_THAT(json::write(daemonset), Not(HasSubstr("secretName")));
}

TEST(Agents, OnlyTheRouteAgentIsUninstalledFirst) {
  AgentPlan plan = sample();
  plan.uninstall_route_agent = "7";
  EXPECT_THAT(json::write(agent_daemonset(Agent::gateway, plan)), Not(HasSubstr("--uninstall")));
}

TEST(Agents, SettingsBecomeArguments) {
  AgentPlan plan = sample();
  plan.settings.natt_port = 4501;
  plan.settings.force_udp_encaps = true;
  plan.settings.ipsec_debug = true;
  const std::string gateway = json::write(*container(agent_daemonset(Agent::gateway, plan)).find("args"));
  EXPECT_THAT(gateway, HasSubstr("\"--natt-port=4501\""));
  EXPECT_THAT(gateway, HasSubstr("\"--force-udp-encaps\""));
  EXPECT_THAT(gateway, HasSubstr("\"--log-level=debug\""));
  const std::string route_agent = json::write(*container(agent_daemonset(Agent::route_agent, plan)).find("args"));
  EXPECT_THAT(route_agent, Not(HasSubstr("--log-level")));
}

TEST_P(EveryAgent, ServesProbesAndMetricsOnThePortOfItsInstallation) {
  AgentPlan plan = sample();
  plan.defaults.gateway_metrics_port = plan.defaults.route_agent_metrics_port = 9900;
  const Value daemonset = agent_daemonset(GetParam(), plan);
  EXPECT_THAT(json::write(*container(daemonset).find("args")), HasSubstr("\"--listen-port=9900\""));
  for (const auto* path : {"livenessProbe", "readinessProbe"})
    EXPECT_EQ(*container(daemonset).at({path, "httpGet", "port"}), Value(9900));
  EXPECT_EQ(*container(daemonset).at({"ports", "0", "hostPort"}), Value(9900));
}

TEST_P(EveryAgent, ItsPortIsNoneThatTheNodeGivesAway) {
  constexpr int kFirstNodePort = 30000;
  const Value daemonset = agent_daemonset(GetParam(), sample());
  const Value* port = container(daemonset).at({"ports", "0", "hostPort"});
  ASSERT_TRUE(port != nullptr && port->if_int64() != nullptr);
  EXPECT_LT(*port->if_int64(), kFirstNodePort);
}

TEST(Agents, RekeyLimitsAndExtraFlagsGoToTheGatewayOnlyWhenTheyAreSet) {
  AgentPlan plan = sample();
  const auto args = [&](Agent agent) { return json::write(*container(agent_daemonset(agent, plan)).find("args")); };
  EXPECT_THAT(args(Agent::gateway), Not(HasSubstr("--rekey-packets")));
  EXPECT_THAT(args(Agent::gateway), Not(HasSubstr("--cipher-suites")));
  plan.settings.rekey_packets = 1000;
  plan.settings.rekey_bytes = 1048576;
  plan.settings.cipher_suites = {"chacha20-poly1305", "aes-256-gcm"};
  plan.defaults.gateway_extra_args = {"--min-drain=5"};
  EXPECT_THAT(args(Agent::gateway), HasSubstr("\"--rekey-packets=1000\",\"--rekey-bytes=1048576\","
                                              "\"--cipher-suites=chacha20-poly1305,aes-256-gcm\",\"--min-drain=5\"]"));
  EXPECT_THAT(args(Agent::route_agent), Not(HasSubstr("--min-drain")));
}

TEST(Agents, ChangedSecretsRestartTheGateways) {
  AgentPlan plan = sample();
  plan.secrets_fingerprint = "one";
  const Value before = agent_daemonset(Agent::gateway, plan);
  const Value before_route = agent_daemonset(Agent::route_agent, plan);
  plan.secrets_fingerprint = "two";
  EXPECT_NE(agent_daemonset(Agent::gateway, plan), before);
  EXPECT_EQ(agent_daemonset(Agent::route_agent, plan), before_route);
}

TEST(AgentRbac, HasNoWildcardsNoSecretsAndNoPods) {
  for (const Value& object : agent_rbac(sample())) {
    const Value* rules = object.find("rules");
    if (rules == nullptr) continue;
    for (const std::string_view forbidden : {"*", "secrets", "pods", "escalate", "bind", "impersonate"}) {
      EXPECT_THAT(json::write(*rules), Not(HasSubstr(fmt::format("\"{}\"", forbidden)))) << json::write(object);
    }
  }
}

TEST(Agents, TheirNamespaceGetsOnlyTheLabelThatTheHostNetworkNeeds) {
  EXPECT_EQ(
      json::write(agent_namespace(sample())),
      R"({"apiVersion":"v1","kind":"Namespace","metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"},)"
      R"("name":"submariner-operator"}})");
}

TEST(AgentRbac, EverythingThatIsMadeIsDeletedToo) {
  std::size_t matched = 0;
  const auto deleted = agent_objects_to_delete(sample());
  std::vector<Value> made = agent_rbac(sample());
  for (const Agent agent : kAgents)
    made.push_back(agent_daemonset(agent, sample()));
  for (const Value& object : made) {
    for (const Value& gone : deleted) {
      matched += gone.find("kind")->if_string() != nullptr && *gone.find("kind") == *object.find("kind") &&
                         *gone.find("metadata") == *object.find("metadata")
                     ? 1U
                     : 0U;
    }
  }
  EXPECT_EQ(matched, made.size());
  EXPECT_EQ(deleted.size(), made.size());
}

struct ImageCase {
  std::string name;
  std::optional<std::string> repository;
  std::optional<std::string> version;
  std::string image;
  std::string expected;
};

class Image : public testing::TestWithParam<ImageCase> {};

INSTANTIATE_TEST_SUITE_P(
    Agents, Image,
    testing::Values(ImageCase{"Default", {}, {}, "fabric/fabric:0.1.0", "fabric/fabric:0.1.0"},
                    ImageCase{"Digest", {}, {}, "fabric/fabric@sha256:ab", "fabric/fabric@sha256:ab"},
                    ImageCase{"Repository",
                              "registry.example:5000/team",
                              {},
                              "fabric/fabric:0.1.0",
                              "registry.example:5000/team/fabric:0.1.0"},
                    ImageCase{"Version", {}, "0.2.0", "localhost:5000/fabric:0.1.0", "localhost:5000/fabric:0.2.0"},
                    ImageCase{"Both", "example/x", "9", "fabric", "example/x/fabric:9"},
                    ImageCase{"NoTag", {}, "0.2.0", "localhost:5000/fabric", "localhost:5000/fabric:0.2.0"}),
    [](const auto& test) { return test.param.name; });

TEST_P(Image, IsPutTogether) {
  api::JoinSettings settings;
  settings.repository = GetParam().repository;
  settings.image_version = GetParam().version;
  EXPECT_EQ(image_of(Agent::gateway, settings, GetParam().image), GetParam().expected);
}

TEST(Image, AnOverrideOfTheComponentWins) {
  api::JoinSettings settings;
  settings.image_overrides.emplace("submariner-gateway", "mine:1");
  EXPECT_EQ(image_of(Agent::gateway, settings, "fabric/fabric:0.1.0"), "mine:1");
  EXPECT_EQ(image_of(Agent::route_agent, settings, "fabric/fabric:0.1.0"), "fabric/fabric:0.1.0");
}

}  // namespace
}  // namespace fabric::operators
