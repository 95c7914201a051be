#include <fabric/api/fabric_rules.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace fabric::api {
namespace {

Fabric fabric_of(std::string_view spec) {
  auto read = json::decode<FabricSpec>(spec);
  EXPECT_TRUE(read) << spec << ": " << read.error().context;
  Fabric fabric;
  fabric.metadata.name = "f";
  fabric.metadata.ns = "default";
  if (read) fabric.spec = *std::move(read);
  return fabric;
}

std::string join_with(std::string_view more) {
  return fmt::format(R"({{"joinConfig":{{"clusterID":"a"{}}}}})", more);
}

std::string broker_with(std::string_view inner) {
  return fmt::format(R"({{"brokerConfig":{{{}}}}})", inner);
}

TEST(ChosenRoles, FollowTheActionOrElseTheBlocks) {
  const std::pair<const char*, Roles> rows[] = {
      {R"({"brokerConfig":{}})", {.broker = true, .join = false, .cloud_prepare = false}},
      {R"({"joinConfig":{"clusterID":"a"},"cloudPrepareConfig":{}})",
       {.broker = false, .join = true, .cloud_prepare = true}},
      {R"({"brokerConfig":{},"joinConfig":{"clusterID":"a"}})", {.broker = true, .join = true, .cloud_prepare = false}},
      {R"({"action":"join","brokerConfig":{},"joinConfig":{"clusterID":"a"}})",
       {.broker = false, .join = true, .cloud_prepare = false}},
      {R"({"action":"broker","brokerConfig":{}})", {.broker = true, .join = false, .cloud_prepare = false}},
  };
  for (const auto& [spec, roles] : rows)
    EXPECT_EQ(chosen_roles(fabric_of(spec).spec), roles) << spec;
  EXPECT_EQ(describe(Roles{.broker = true, .join = true, .cloud_prepare = false}), "all");
  EXPECT_EQ(describe(Roles{}), "");
}

struct Row {
  std::string spec;
  std::string path;  ///< Of the only error; empty when none is expected.
};

TEST(Validate, NamesTheFieldOfEachError) {
  const Row rows[] = {
      {"{}", "spec"},
      {R"({"action":"join","brokerConfig":{}})", "spec.action"},
      {R"({"action":"all","joinConfig":{"clusterID":"a"}})", "spec.action"},
      {broker_with(""), ""},
      {broker_with(R"("globalnetCIDRRange":"242.0.0.1/8")"), "spec.brokerConfig.globalnetCIDRRange"},
      {broker_with(R"("globalnetCIDRRange":"fd00::/8")"), "spec.brokerConfig.globalnetCIDRRange"},
      {broker_with(R"("defaultGlobalnetClusterSize":0)"), "spec.brokerConfig.defaultGlobalnetClusterSize"},
      {broker_with(R"("publicAPIServerURL":"http://x")"), "spec.brokerConfig.publicAPIServerURL"},
      {broker_with(R"("defaultCustomDomains":["ok","x_y"])"), "spec.brokerConfig.defaultCustomDomains[1]"},
      {broker_with(R"("pskNumber":4294967295)"), ""},
      {broker_with(R"("pskNumber":0)"), "spec.brokerConfig.pskNumber"},
      {broker_with(R"("pskNumber":4294967296)"), "spec.brokerConfig.pskNumber"},
      {join_with(""), ""},
      {R"({"joinConfig":{"clusterID":"A.b"}})", "spec.joinConfig.clusterID"},
      {join_with(R"(,"nattPort":1)"), ""},
      {join_with(R"(,"nattPort":65535)"), ""},
      {join_with(R"(,"nattPort":0)"), "spec.joinConfig.nattPort"},
      {join_with(R"(,"nattPort":65536)"), "spec.joinConfig.nattPort"},
      {join_with(R"(,"ikePort":-1)"), "spec.joinConfig.ikePort"},
      {join_with(R"(,"clusterCIDR":"10.0.0.0/16, fd00::/48","serviceCIDR":"10.1.0.0/16")"), ""},
      {join_with(R"(,"clusterCIDR":"10.0.0.1/16")"), "spec.joinConfig.clusterCIDR"},
      {join_with(R"(,"clusterCIDR":"10.0.0.0/8","serviceCIDR":"10.1.0.0/16")"), "spec.joinConfig.serviceCIDR"},
      {join_with(R"(,"globalnetCIDR":"x")"), "spec.joinConfig.globalnetCIDR"},
      {join_with(R"(,"globalnetClusterSize":-1)"), "spec.joinConfig.globalnetClusterSize"},
      {join_with(R"(,"healthCheckInterval":3600)"), ""},
      {join_with(R"(,"healthCheckInterval":0)"), "spec.joinConfig.healthCheckInterval"},
      {join_with(R"(,"healthCheckInterval":3601)"), "spec.joinConfig.healthCheckInterval"},
      {join_with(R"(,"healthCheckMaxPacketLossCount":0)"), "spec.joinConfig.healthCheckMaxPacketLossCount"},
      {join_with(R"(,"rekeyInterval":"1m")"), ""},
      {join_with(R"(,"rekeyInterval":"12h")"), ""},
      {join_with(R"(,"rekeyInterval":"59s")"), "spec.joinConfig.rekeyInterval"},
      {join_with(R"(,"rekeyInterval":"12h1s")"), "spec.joinConfig.rekeyInterval"},
      {join_with(R"(,"rekeyInterval":"soon")"), "spec.joinConfig.rekeyInterval"},
      {join_with(R"(,"rekeyPackets":1000,"rekeyBytes":1048576)"), ""},
      {join_with(R"(,"rekeyPackets":999)"), "spec.joinConfig.rekeyPackets"},
      {join_with(R"(,"rekeyBytes":1125899906842625)"), "spec.joinConfig.rekeyBytes"},
      {join_with(R"(,"cipherSuites":["chacha20-poly1305","aes-256-gcm"])"), ""},
      {join_with(R"(,"cipherSuites":["aes-256-gcm","des"])"), "spec.joinConfig.cipherSuites[1]"},
      {join_with(R"(,"cipherSuites":["aes-256-gcm","aes-256-gcm"])"), "spec.joinConfig.cipherSuites[1]"},
      {join_with(R"(,"cableDriver":"carrier-pigeon")"), "spec.joinConfig.cableDriver"},
      {join_with(R"(,"imageOverrideArr":["a=b","a="])"), "spec.joinConfig.imageOverrideArr[1]"},
      {join_with(R"(,"customDomains":[""])"), "spec.joinConfig.customDomains[0]"},
      {join_with(R"(,"nodeElasticIPs":{"n1":"1.2.3"})"), R"(spec.joinConfig.nodeElasticIPs["n1"])"},
      {join_with(R"(,"nodeElasticIPs":{"n1":"127.0.0.1"})"), R"(spec.joinConfig.nodeElasticIPs["n1"])"},
      {join_with(R"(,"brokerInfoConfigMap":{"namespace":"a.b"})"), "spec.joinConfig.brokerInfoConfigMap.namespace"},
      {join_with(R"(,"corednsCustomConfigMap":"a/B")"), "spec.joinConfig.corednsCustomConfigMap"},
      {R"({"cloudPrepareConfig":{"credentialsSecret":"xxx"}})", ""},
      {R"({"cloudPrepareConfig":{"credentialsSecret":[1]}})", "spec.cloudPrepareConfig.credentialsSecret"},
      {R"({"cloudPrepareConfig":{"aws":{"gateways":-1}}})", "spec.cloudPrepareConfig.aws.gateways"},
  };
  for (const auto& row : rows) {
    std::vector<FieldError> errors = validate(fabric_of(row.spec));
    std::erase_if(errors, [](const FieldError& finding) { return finding.severity != Severity::error; });
    ASSERT_EQ(errors.size(), row.path.empty() ? 0U : 1U)
        << row.spec << (errors.empty() ? "" : ": " + errors.front().to_string());
    if (errors.empty()) continue;
    EXPECT_EQ(errors.front().path, row.path) << row.spec;
    EXPECT_FALSE(errors.front().message.empty()) << row.spec;
    EXPECT_FALSE(errors.front().remedy.empty()) << row.spec;
  }
}

TEST(Validate, RoundsTheOldTypingErrorUpWithAWarning) {
  const auto fabric =
      fabric_of(broker_with(R"("defaultGlobalnetClusterSize":65336,"globalnetCIDRRange":"242.0.0.0/16")"));
  const auto findings = validate(fabric);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].to_string(),
            "spec.brokerConfig.defaultGlobalnetClusterSize 65336: is no power of two and is rounded up to 65536; write "
            "65536");
  const auto settings = effective(*fabric.spec.broker_config);
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->globalnet_cluster_size, 65536U);
}

TEST(Validate, ComparesTheGlobalnetSizeWithTheRangeOnlyWhenGlobalnetIsOn) {
  const auto broker = [](const char* enabled, int size) {
    return fabric_of(broker_with(
        fmt::format(R"("globalnetEnable":{},"globalnetCIDRRange":"242.0.0.0/16","defaultGlobalnetClusterSize":{})",
                    enabled, size)));
  };
  EXPECT_FALSE(has_errors(validate(broker("false", 65536))));
  EXPECT_FALSE(has_errors(validate(broker("true", 32768))));
  EXPECT_TRUE(has_errors(validate(broker("true", 32769))));
  EXPECT_TRUE(has_errors(validate(broker("true", 65536))));
  EXPECT_TRUE(
      has_errors(validate(fabric_of(broker_with(R"("globalnetEnable":true,"globalnetCIDRRange":"242.0.0.0/16")")))));
}

TEST(Validate, WarnsAboutABlockThatTheActionLeavesOut) {
  const auto findings = validate(fabric_of(R"({"action":"broker","brokerConfig":{},"joinConfig":{"clusterID":"a"}})"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].path, "spec.joinConfig");
  EXPECT_FALSE(has_errors(findings));
}

TEST(Summarize, NamesTheObjectTheFieldTheValueAndTheRemedy) {
  const auto fabric = fabric_of(join_with(R"(,"nattPort":0,"ikePort":0)"));
  EXPECT_EQ(summarize(fabric, validate(fabric)),
            "Fabric default/f: spec.joinConfig.nattPort 0: is out of range; use 1..65535 (and 1 more)");
  EXPECT_EQ(summarize(fabric, {}), "");
}

TEST(Effective, AppliesTheDefaultsOfABroker) {
  const auto settings = effective(BrokerConfig{});
  ASSERT_TRUE(settings) << settings.error().context;
  EXPECT_TRUE(settings->connectivity);
  EXPECT_TRUE(settings->service_discovery);
  EXPECT_FALSE(settings->globalnet);
  EXPECT_EQ(settings->globalnet_range.to_string(), "242.0.0.0/8");
  EXPECT_EQ(settings->globalnet_cluster_size, 65536U);
  EXPECT_FALSE(settings->public_api_server_url);
}

TEST(Effective, AppliesTheDefaultsOfAMember) {
  JoinConfig config;
  config.cluster_id = "a";
  const auto settings = effective(config);
  ASSERT_TRUE(settings) << settings.error().context;
  EXPECT_EQ(settings->cluster_id, ClusterId("a"));
  EXPECT_EQ(settings->broker_info_name, "submariner-broker-info");
  EXPECT_EQ(settings->broker_info_namespace, "submariner-k8s-broker");
  EXPECT_TRUE(settings->cluster_cidrs.empty());
  EXPECT_EQ(settings->natt_port, 4500);
  EXPECT_TRUE(settings->nat_traversal);
  EXPECT_TRUE(settings->label_gateway);
  EXPECT_EQ(settings->cable_driver, "xfrm");
  EXPECT_TRUE(settings->health_check.enabled);
  EXPECT_EQ(settings->health_check.interval, std::chrono::seconds(1));
  EXPECT_EQ(settings->health_check.max_packet_loss, 5U);
  EXPECT_EQ(settings->rekey_interval, std::chrono::hours(1));
}

TEST(Effective, ParsesWhatIsSet) {
  const auto fabric = fabric_of(join_with(
      R"(,"clusterCIDR":"10.0.0.0/16,fd00::/48","serviceCIDR":"","rekeyInterval":"90m","cableDriver":"libreswan",)"
      R"("imageOverrideArr":["submariner-gateway=r/i:v=1"],"nodeElasticIPs":{"n1":"203.0.113.7"},"natTraversal":false)"));
  const auto settings = effective(*fabric.spec.join_config);
  ASSERT_TRUE(settings) << settings.error().context;
  EXPECT_EQ(net::join(settings->cluster_cidrs), "10.0.0.0/16, fd00::/48");
  EXPECT_TRUE(settings->service_cidrs.empty());
  EXPECT_EQ(settings->rekey_interval, std::chrono::minutes(90));
  EXPECT_EQ(settings->cable_driver, "xfrm");
  EXPECT_EQ(settings->image_overrides.at("submariner-gateway"), "r/i:v=1");
  EXPECT_EQ(settings->node_elastic_ips.at(NodeName("n1")).to_string(), "203.0.113.7");
  EXPECT_FALSE(settings->nat_traversal);
}

TEST(Effective, RefusesWhatValidateRefuses) {
  JoinConfig config;
  config.cluster_id = "Not.One";
  const auto settings = effective(config);
  ASSERT_FALSE(settings);
  EXPECT_EQ(settings.error().code, Errc::invalid);
  EXPECT_TRUE(settings.error().context.starts_with("spec.joinConfig.clusterID Not.One: ")) << settings.error().context;
}

std::vector<std::string> unserved(std::string_view spec) {
  std::vector<std::string> out;
  for (const auto& field : unserved_fields(fabric_of(spec).spec)) {
    EXPECT_FALSE(field.effect.empty()) << field.path;
    out.push_back(field.path + "=" + field.value);
  }
  return out;
}

TEST(UnservedFields, AreEmptyForFieldsAtRest) {
  EXPECT_TRUE(unserved(R"({"brokerConfig":{}})").empty());
  EXPECT_TRUE(
      unserved(broker_with(R"("globalnetEnable":false,"globalnetCIDRRange":"242.0.0.0/16","connectivityEnabled":true)"))
          .empty());
  EXPECT_TRUE(
      unserved(join_with(R"(,"forceUDPEncaps":false,"globalnetClusterSize":0,"globalnetEnabled":true,"ikePort":500,)"
                         R"("loadBalancerEnabled":false,"natTraversal":true,"preferredServer":false,"cableDriver":"",)"
                         R"("corednsCustomConfigMap":"")"))
          .empty());
}

TEST(UnservedFields, NameEachFieldThatAsksForMore) {
  EXPECT_EQ(unserved(broker_with(R"("globalnetEnable":true,"defaultCustomDomains":["a","b"])")),
            (std::vector<std::string>{"spec.brokerConfig.globalnetEnable=true",
                                      "spec.brokerConfig.defaultCustomDomains=a,b"}));
  EXPECT_EQ(unserved(join_with(R"(,"loadBalancerEnabled":true,"cableDriver":"wireguard","ikePort":501)")),
            (std::vector<std::string>{"spec.joinConfig.ikePort=501", "spec.joinConfig.loadBalancerEnabled=true",
                                      "spec.joinConfig.cableDriver=wireguard"}));
  EXPECT_EQ(unserved(R"({"cloudPrepareConfig":{}})"), std::vector<std::string>{"spec.cloudPrepareConfig="});
}

}  // namespace
}  // namespace fabric::api
