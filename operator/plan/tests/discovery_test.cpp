#include <fabric/operator/discovery.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::operators {
namespace {

using testing::HasSubstr;

DiscoveryFacts lab_facts() {
  DiscoveryFacts facts;
  facts.fabric = "default/join";
  facts.service_cidrs = {{"kubernetes", {"10.96.0.0/16", "fd00:96::/112"}}};
  facts.nodes = {{"a-1", {"10.1.0.0/24", "fd01::/64"}}, {"a-2", {"10.1.1.0/24", "fd01:0:0:1::/64"}}};
  return facts;
}

TEST(Discovery, ReadsServiceCidrObjectsAndNodePrefixesWhenTheControlPlaneIsOutside) {
  const Discovery found = discover(lab_facts());
  EXPECT_EQ(net::join(found.pods.prefixes), "10.1.0.0/23, fd01::/63");
  EXPECT_EQ(found.pods.source, "spec.podCIDRs of 2 nodes");
  EXPECT_EQ(net::join(found.services.prefixes), "10.96.0.0/16, fd00:96::/112");
  EXPECT_EQ(found.services.source, "ServiceCIDR kubernetes");
  EXPECT_THAT(found.findings, testing::IsEmpty());
  EXPECT_EQ(found.network_plugin, "generic");
}

TEST(Discovery, KeepsNodePrefixesApartWhenTheyAreNotHalvesOfOne) {
  DiscoveryFacts facts = lab_facts();
  facts.nodes = {{"a-1", {"10.1.1.0/24"}}, {"a-2", {"10.1.2.0/24"}}};
  EXPECT_EQ(net::join(discover(facts).pods.prefixes), "10.1.1.0/24, 10.1.2.0/24");
}

TEST(Discovery, PrefersTheConfiguredPrefixesAndReportsWhatIsOutside) {
  DiscoveryFacts facts = lab_facts();
  facts.configured_pod_cidr = "10.1.0.0/24";
  const Discovery found = discover(facts);
  EXPECT_EQ(found.pods.source, "spec.joinConfig.clusterCIDR");
  ASSERT_EQ(found.findings.size(), 3U);
  EXPECT_EQ(found.findings[1].reason, "SourcesDisagree");
  EXPECT_THAT(found.findings[1].message, HasSubstr("10.1.1.0/24, which is outside 10.1.0.0/24"));
  EXPECT_EQ(first_blocking(found.findings), nullptr);
}

struct SourceCase {
  std::string name;
  void (*change)(DiscoveryFacts&);
  std::string pods;
  std::string source;
};

class PodSource : public testing::TestWithParam<SourceCase> {};

TEST_P(PodSource, WinsOverTheNodes) {
  DiscoveryFacts facts = lab_facts();
  GetParam().change(facts);
  const Discovery found = discover(facts);
  EXPECT_EQ(net::join(found.pods.prefixes), GetParam().pods);
  EXPECT_EQ(found.pods.source, GetParam().source);
}

INSTANTIATE_TEST_SUITE_P(
    Discovery, PodSource,
    testing::Values(
        SourceCase{"ControllerManagerFlag",
                   [](DiscoveryFacts& f) {
                     f.components = {{"kube-controller-manager-cp",
                                      "kube-controller-manager",
                                      {"kube-controller-manager", "--cluster-cidr=10.1.0.0/16,fd01::/48", "--v=2"}}};
                   },
                   "10.1.0.0/16, fd01::/48", "pod kube-system/kube-controller-manager-cp --cluster-cidr"},
        SourceCase{"FlagWithSeparateValue",
                   [](DiscoveryFacts& f) {
                     f.components = {{"kube-proxy-x", "kube-proxy", {"--cluster-cidr", "10.1.0.0/16"}}};
                   },
                   "10.1.0.0/16", "pod kube-system/kube-proxy-x --cluster-cidr"},
        SourceCase{"Kubeadm",
                   [](DiscoveryFacts& f) {
                     f.kubeadm_configuration = "networking:\n  dnsDomain: cluster.local\n  podSubnet: 10.1.0.0/16\n";
                   },
                   "10.1.0.0/16", "ConfigMap kube-system/kubeadm-config podSubnet"},
        SourceCase{"KubeProxyConfigMap",
                   [](DiscoveryFacts& f) { f.kube_proxy_configuration = "kind: X\nclusterCIDR: \"10.1.0.0/16\"\n"; },
                   "10.1.0.0/16", "ConfigMap kube-system/kube-proxy clusterCIDR"}),
    [](const auto& test) { return test.param.name; });

TEST(Discovery, IgnoresAnEmptyKubeProxyClusterCidr) {
  DiscoveryFacts facts = lab_facts();
  facts.kube_proxy_configuration = "clusterCIDR: \"\"\n";
  EXPECT_EQ(discover(facts).pods.source, "spec.podCIDRs of 2 nodes");
}

TEST(Discovery, UsesTheApiServerFlagWhenThereAreNoServiceCidrObjects) {
  DiscoveryFacts facts = lab_facts();
  facts.service_cidrs.clear();
  facts.components = {{"kube-apiserver-cp", "kube-apiserver", {"--service-cluster-ip-range=10.96.0.0/12"}}};
  EXPECT_EQ(net::join(discover(facts).services.prefixes), "10.96.0.0/12");
}

TEST(Discovery, SaysWhichFieldToSetWhenNothingIsFound) {
  const Discovery found = discover({.fabric = "default/join"});
  ASSERT_EQ(found.findings.size(), 2U);
  EXPECT_THAT(found.findings[0].message, HasSubstr("set spec.joinConfig.clusterCIDR"));
  EXPECT_THAT(found.findings[1].message, HasSubstr("set spec.joinConfig.serviceCIDR"));
  EXPECT_NE(first_blocking(found.findings), nullptr);
}

TEST(Discovery, RefusesAConfiguredPrefixThatDoesNotParse) {
  DiscoveryFacts facts = lab_facts();
  facts.configured_service_cidr = "10.96.0.1/16";
  const Discovery found = discover(facts);
  ASSERT_NE(first_blocking(found.findings), nullptr);
  EXPECT_THAT(first_blocking(found.findings)->message, HasSubstr("spec.joinConfig.serviceCIDR '10.96.0.1/16'"));
}

TEST(Discovery, RefusesPodAndServicePrefixesThatOverlap) {
  DiscoveryFacts facts = lab_facts();
  facts.configured_pod_cidr = "10.96.128.0/17";
  const Discovery found = discover(facts);
  ASSERT_NE(first_blocking(found.findings), nullptr);
  EXPECT_EQ(first_blocking(found.findings)->reason, "CIDRsOverlap");
}

TEST(Discovery, NamesTheNetworkPluginByItsDaemonSet) {
  DiscoveryFacts facts = lab_facts();
  facts.daemonsets = {"kube-system/kube-proxy", "kube-flannel/kube-flannel-ds"};
  EXPECT_EQ(discover(facts).network_plugin, "flannel");
  facts.daemonsets = {"kube-system/calico-node", "kube-system/canal"};
  EXPECT_EQ(discover(facts).network_plugin, "canal");
}

TEST(MergeAdjacent, JoinsHalvesUpwardsAndNothingElse) {
  const auto list = [](std::string_view text) { return *net::parse_cidr_list(text); };
  EXPECT_EQ(net::join(merge_adjacent(list("10.0.0.0/24,10.0.1.0/24,10.0.2.0/24,10.0.3.0/24"))), "10.0.0.0/22");
  EXPECT_EQ(net::join(merge_adjacent(list("10.0.1.0/24,10.0.2.0/24"))), "10.0.1.0/24, 10.0.2.0/24");
  EXPECT_EQ(net::join(merge_adjacent(list("0.0.0.0/1,128.0.0.0/1"))), "0.0.0.0/0");
}

}  // namespace
}  // namespace fabric::operators
