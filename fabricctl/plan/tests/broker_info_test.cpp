#include <fabric/api/names.hpp>
#include <fabric/broker/broker_info.hpp>
#include <fabric/ctl/broker_info.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::ctl {
namespace {

namespace names = api::names;
using testing::HasSubstr;
using testing::Not;

api::ConfigMap stored() {
  broker::BrokerInfo info;
  info.url = "https://192.0.2.1:6443";
  info.client.secret_name = "client";
  info.client.ns = std::string(names::kBrokerNamespace);
  info.client.ca_pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n";
  info.client.token = Secret::from_text("token");
  info.psk.psk = Secret::from_text(std::string(48, 'k'));
  api::ConfigMap out;
  out.metadata.ns = std::string(names::kBrokerNamespace);
  out.metadata.name = std::string(names::kBrokerInfo);
  out.metadata.uid = "1234";
  out.metadata.resource_version = "99";
  out.metadata.annotations["somebody/else"] = "x";
  out.metadata.labels = {{"operator.tkestack.io/fabric-name", "hub"},
                         {"operator.tkestack.io/fabric-namespace", "default"},
                         {"somebody/else", "x"}};
  out.data["brokerInfo"] = broker::write_broker_info(info);
  return out;
}

TEST(BrokerInfoManifest, IsWhatAPersonWouldWrite) {
  const api::ConfigMap config_map = stored();
  const auto manifest = broker_info_manifest(config_map);
  ASSERT_TRUE(manifest) << manifest.error().message();
  EXPECT_EQ(manifest->yaml,
            "# Holds the pre-shared key of all clusters and a token: keep it as you keep a key.\n"
            "# On the joining cluster: kubectl apply -f THIS FILE\n"
            "apiVersion: v1\n"
            "kind: Namespace\n"
            "metadata:\n"
            "  name: submariner-k8s-broker\n"
            "---\n"
            "apiVersion: v1\n"
            "kind: ConfigMap\n"
            "metadata:\n"
            "  name: submariner-broker-info\n"
            "  namespace: submariner-k8s-broker\n"
            "  labels:\n"
            "    \"operator.tkestack.io/fabric-name\": \"hub\"\n"
            "    \"operator.tkestack.io/fabric-namespace\": \"default\"\n"
            "data:\n"
            "  brokerInfo: \"" +
                config_map.data.at("brokerInfo") + "\"\n");
  EXPECT_TRUE(manifest->warnings.empty());
}

TEST(BrokerInfoManifest, RefusesWhatNobodyCouldJoinWithAndQuotesNoSecret) {
  api::ConfigMap absent = stored();
  absent.data.clear();
  EXPECT_THAT(broker_info_manifest(absent).error().message(),
              HasSubstr("ConfigMap submariner-k8s-broker/submariner-broker-info: data.brokerInfo is absent"));
  api::ConfigMap broken = stored();
  broken.data["brokerInfo"] = "secret-stuff!";
  const auto refused = broker_info_manifest(broken);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid);
  EXPECT_THAT(refused.error().message(), HasSubstr("submariner-broker-info"));
  EXPECT_THAT(refused.error().message(), Not(HasSubstr("secret-stuff")));
}

}  // namespace
}  // namespace fabric::ctl
