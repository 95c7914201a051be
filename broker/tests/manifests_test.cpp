#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fabric::broker {
namespace {

using json::Value;
using testing::HasSubstr;
using testing::Not;

const FabricRef kFabric{"default", "broker"};

const Value& find(const std::vector<Value>& objects, std::string_view kind, std::string_view name) {
  static const Value kNone;
  const auto found = std::ranges::find_if(objects, [&](const Value& object) {
    return object.string_at({"kind"}) == kind && object.string_at({"metadata", "name"}) == name;
  });
  EXPECT_NE(found, objects.end()) << kind << " " << name;
  return found == objects.end() ? kNone : *found;
}

TEST(BrokerManifests, HoldTheCustomResourceDefinitions) {
  const auto crds = submariner_crds();
  for (const std::string_view name : {"clusters.submariner.io", "endpoints.submariner.io", "gateways.submariner.io"}) {
    EXPECT_EQ(find(crds, "CustomResourceDefinition", name).string_at({"spec", "group"}), "submariner.io");
  }
}

TEST(BrokerManifests, LetTheJoiningAccountOnlyAskAndReadAnswers) {
  const auto rules = [](const std::vector<std::string>& asking) {
    return json::write(*find(broker_manifests(kFabric, asking), "Role", "submariner-k8s-broker-client").find("rules"));
  };
  EXPECT_EQ(rules({}), R"([{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]}])");
  EXPECT_EQ(rules({"a", "b"}),
            R"([{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]},)"
            R"({"apiGroups":[""],"resourceNames":["fabric-member-a","fabric-member-b"],"resources":["configmaps"],)"
            R"("verbs":["get"]}])");
}

TEST(BrokerManifests, LeaveTheChartItsLabelOfTheNamespace) {
  const auto objects = broker_manifests(kFabric);
  const Value& ns = find(objects, "Namespace", names::kBrokerNamespace);
  EXPECT_EQ(ns.string_at({"metadata", "labels", "app.kubernetes.io/managed-by"}), "");
  EXPECT_EQ(ns.string_at({"metadata", "labels", "submariner.io/broker"}), "true");
}

TEST(BrokerManifests, GiveMembersNoSecretsAndNoConfigMaps) {
  const auto objects = broker_manifests(kFabric);
  const std::string rules = json::write(*find(objects, "Role", "submariner-k8s-broker-cluster").find("rules"));
  EXPECT_THAT(rules, Not(HasSubstr("secrets")));
  EXPECT_THAT(rules, Not(HasSubstr("configmaps")));
  EXPECT_THAT(rules, Not(HasSubstr("*")));
}

TEST(BrokerManifests, HaveNoWildcardsOutsideOfApiVersions) {
  for (Value object : broker_manifests(kFabric)) {
    if (object.find("rules") == nullptr) continue;
    EXPECT_THAT(json::write(*object.find("rules")), Not(HasSubstr("*"))) << json::write(object);
  }
}

TEST(BrokerManifests, BindEveryPolicyAndCarryTheFabric) {
  const auto objects = broker_manifests(kFabric);
  for (const Value& object : objects) {
    EXPECT_EQ(object.string_at({"metadata", "labels", "operator.tkestack.io/fabric-name"}), "broker");
    if (object.string_at({"kind"}) != "ValidatingAdmissionPolicy") continue;
    const auto name = object.string_at({"metadata", "name"});
    EXPECT_EQ(find(objects, "ValidatingAdmissionPolicyBinding", name).string_at({"spec", "policyName"}), name);
  }
}

TEST(BrokerManifests, NeverPutThePskOutsideOfItsSecretAndBrokerInfo) {
  for (const Value& object : broker_manifests(kFabric))
    EXPECT_THAT(json::write(object), Not(HasSubstr("psk")));
  crypto::PskBundle bundle;
  bundle.psk = Secret::from_text("k");
  const Value secret = psk_secret(kFabric, "submariner-operator", bundle);
  EXPECT_EQ(json::write(*secret.find("data")), R"({"psk":"aw=="})");
  EXPECT_EQ(secret.string_at({"metadata", "namespace"}), "submariner-operator");
}

TEST(BrokerManifests, WriteGlobalnetInfoWithTheQuotesOfSubmariner) {
  const Value info = globalnet_info(kFabric, {"242.0.0.0/8", 65536});
  EXPECT_EQ(info.string_at({"data", "globalnetCidrRange"}), "\"242.0.0.0/8\"");
  EXPECT_EQ(info.string_at({"data", "globalnetClusterSize"}), "65536");
  EXPECT_EQ(info.at({"data", "clusterinfo"}), nullptr);
}

TEST(PskSecret, GivesBackWhatItHolds) {
  crypto::PskBundle bundle;
  bundle.number = 3;
  bundle.psk = Secret::from_text(std::string(48, 'n'));
  bundle.previous = Secret::from_text(std::string(48, 'p'));
  Value object = psk_secret(kFabric, "submariner-operator", bundle);
  const auto read = read_psk_secret(*api::from_object<api::SecretObject>(object));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->equals(bundle));
  object["data"]["number"] = "dHdv";  // "two"
  const auto broken = read_psk_secret(*api::from_object<api::SecretObject>(object));
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(),
              HasSubstr("Secret submariner-operator/submariner-ipsec-psk: key number: the number of a PSK is"));
}

TEST(MemberManifests, LetAMemberReadItsOwnAnswerOnly) {
  const auto objects = member_manifests("a");
  EXPECT_EQ(json::write(*find(objects, "Role", "cluster-a-own-answer").find("rules")),
            R"([{"apiGroups":[""],"resourceNames":["fabric-member-a"],"resources":["configmaps"],)"
            R"("verbs":["get","list","watch"]}])");
  const Value& binding = find(objects, "RoleBinding", "cluster-a-own-answer");
  EXPECT_EQ(binding.string_at({"roleRef", "name"}), "cluster-a-own-answer");
  EXPECT_EQ(binding.string_at({"subjects", "0", "name"}), "cluster-a");
}

TEST(MemberManifests, BindTheAccountOfTheMemberToTheMemberRole) {
  const auto objects = member_manifests("a");
  const Value& binding = find(objects, "RoleBinding", "cluster-a-submariner-k8s-broker-cluster");
  EXPECT_EQ(binding.string_at({"roleRef", "name"}), "submariner-k8s-broker-cluster");
  EXPECT_EQ(binding.string_at({"subjects", "0", "name"}), "cluster-a");
  EXPECT_EQ(find(objects, "Secret", "cluster-a-token").string_at({"type"}), "kubernetes.io/service-account-token");
}

}  // namespace
}  // namespace fabric::broker
