#include <fabric/api/fabric.hpp>

#include <gtest/gtest.h>

namespace fabric::api {
namespace {

TEST(Fabric, RoundTripsEveryField) {
  const std::string text =
      R"({"metadata":{"name":"f","namespace":"default"},"spec":{"action":"all","brokerConfig":{"connectivityEnabled":false,)"
      R"("defaultCustomDomains":["a.b"],"defaultGlobalnetClusterSize":65336,"globalnetCIDRRange":"242.0.0.0/8",)"
      R"("globalnetEnable":false,"pskNumber":2,"publicAPIServerURL":"https://x","serviceDiscoveryEnabled":true},"cloudPrepareConfig":)"
      R"({"aws":{"gatewayInstance":"m5n.large","gateways":1},"azure":{"any":[1]},"credentialsSecret":{"name":"s"},)"
      R"("gcp":{},"infraID":"i","region":"r"},"joinConfig":{"brokerInfoConfigMap":{"name":"n","namespace":"m"},)"
      R"("cableDriver":"xfrm","cipherSuites":["aes-256-gcm"],"clusterCIDR":"10.0.0.0/16,fd00::/48","clusterID":"a","corednsCustomConfigMap":"x/y",)"
      R"("customDomains":["d"],"forceUDPEncaps":false,"globalnetCIDR":"","globalnetClusterSize":0,)"
      R"("globalnetEnabled":true,"healthCheckEnable":true,"healthCheckInterval":1,"healthCheckMaxPacketLossCount":5,)"
      R"("ikePort":500,"imageOverrideArr":["a=b"],"imageVersion":"v","ipsecDebug":false,"labelGateway":true,)"
      R"("loadBalancerEnabled":false,"natTraversal":true,"nattPort":4500,"nodeElasticIPs":{"n1":"203.0.113.7"},)"
      R"("preferredServer":false,"rekeyBytes":1048576,"rekeyInterval":"1h","rekeyPackets":1000,"repository":"r","serviceCIDR":"","submarinerDebug":false}},)"
      R"("status":{"action":"all","brokerURL":"u","clusterCIDRs":[{"cidr":"10.0.0.0/16","source":"s"}],"clusterID":"a",)"
      R"("connectionSummary":"1/1","connections":[{"cluster":"b","gateway":"n","rtt":"1ms","status":"connected",)"
      R"("usingIP":"192.0.2.1"}],"gateways":[{"haStatus":"active","node":"n1"}],"joinedClusters":["b"],)"
      R"("networkPlugin":"flannel","observedGeneration":2,"phase":"Running","pskIDs":["1"],)"
      R"("pskRotation":{"membersReady":1,"membersTotal":2,"number":2,"phase":"Rotating",)"
      R"("startedAt":"2026-11-21T16:00:00Z","waitingFor":["b"]},)"
      R"("serviceCIDRs":[{"cidr":"10.96.0.0/16","source":"t"}]}})";
  const auto fabric = json::decode<Fabric>(text);
  ASSERT_TRUE(fabric) << fabric.error().context;
  EXPECT_EQ(json::encode(*fabric), text);
}

TEST(Fabric, TellsAbsentFromEmptyBlocks) {
  const auto broker = json::decode<Fabric>(R"({"spec":{"brokerConfig":{}}})");
  ASSERT_TRUE(broker);
  EXPECT_TRUE(broker->spec.broker_config.has_value());
  EXPECT_FALSE(broker->spec.join_config.has_value());
  EXPECT_EQ(json::encode(*broker), R"({"spec":{"brokerConfig":{}}})");
}

TEST(SecretReference, IsANameOrAnObjectAndNeverUnreadable) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("xxx")", "xxx"}, {R"({"name":"yyy"})", "yyy"}, {R"({"nam":"y"})", R"({"nam":"y"})"}, {"[1]", "[1]"}};
  for (const auto& [text, name] : rows) {
    const auto config = json::decode<CloudPrepareConfig>(fmt::format(R"({{"credentialsSecret":{}}})", text));
    ASSERT_TRUE(config) << text;
    EXPECT_EQ(config->credentials_secret->name, name) << text;
  }
}

TEST(Fabric, NamesThePathOfAFieldOfTheWrongType) {
  const auto fabric = json::decode<Fabric>(R"({"spec":{"joinConfig":{"clusterID":"a","nattPort":"4500"}}})");
  ASSERT_FALSE(fabric);
  EXPECT_TRUE(fabric.error().context.starts_with("spec.joinConfig.nattPort: expected ")) << fabric.error().context;
}

}  // namespace
}  // namespace fabric::api
