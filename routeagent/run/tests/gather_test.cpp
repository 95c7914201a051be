#include <fabric/routeagent/gather.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace fabric::routeagent {
namespace {

template <class T>
std::shared_ptr<std::map<kube::ObjectKey, std::shared_ptr<const T>>> snapshot(std::vector<T> objects) {
  auto map = std::make_shared<std::map<kube::ObjectKey, std::shared_ptr<const T>>>();
  for (T& object : objects) {
    const kube::ObjectKey key{object.metadata.ns, object.metadata.name};
    map->emplace(key, std::make_shared<const T>(std::move(object)));
  }
  return map;
}

api::Node node(std::string name, std::string address) {
  api::Node n;
  n.metadata.name = std::move(name);
  n.spec.pod_cidrs = {"10.1.0.0/24", "fd10:1::/64"};
  n.status.addresses = {{"InternalIP", "fd20:1::11"}, {"InternalIP", std::move(address)}};
  n.status.conditions = {{.type = "Ready", .status = api::ConditionStatus::yes}};
  return n;
}

api::Endpoint endpoint(std::string cluster, std::string host, std::vector<std::string> subnets) {
  api::Endpoint e;
  e.metadata.ns = "submariner-operator";
  e.metadata.name = cluster + "-" + host;
  e.spec.cluster_id = std::move(cluster);
  e.spec.hostname = std::move(host);
  e.spec.subnets = std::move(subnets);
  return e;
}

struct World {
  Options options{.node = "a-n1", .cluster_id = "a"};
  std::vector<api::Node> nodes{node("a-n1", "172.20.1.11")};
  std::vector<api::Endpoint> endpoints{endpoint("a", "a-n1", {"10.1.0.0/16"}),
                                       endpoint("b", "b-n1", {"10.2.0.0/16", "10.102.0.0/16"})};
  std::vector<api::Cluster> clusters;
  std::vector<api::Gateway> gateways;

  World() {
    api::Cluster own;
    own.metadata.ns = "submariner-operator";
    own.metadata.name = "a";
    own.spec = {.cluster_id = "a", .service_cidr = {"10.101.0.0/16"}, .cluster_cidr = {"10.1.0.0/16"}};
    clusters.push_back(own);
    api::Gateway gateway;
    gateway.metadata.ns = "submariner-operator";
    gateway.metadata.name = "a-n1";
    gateway.status.connections = {
        {.status = api::ConnectionStatus::connected, .endpoint = endpoints[1].spec, .using_ip = "172.20.2.11"}};
    gateways.push_back(gateway);
  }

  Objects objects() const {
    return {snapshot(nodes), snapshot(nodes), snapshot(endpoints), snapshot(clusters), snapshot(gateways)};
  }

  Result<Inputs> gather() const { return routeagent::gather(options, objects(), {}, {}); }
};

TEST(Gather, TakesPrefixesOfOthersFromEndpointsAndOursFromTheCluster) {
  const auto in = World().gather();
  ASSERT_TRUE(in) << in.error().message();
  EXPECT_EQ(in->node_address.to_string(), "172.20.1.11") << "IPv4 before IPv6";
  EXPECT_EQ(net::join(in->local_prefixes), "10.101.0.0/16, 10.1.0.0/16");
  ASSERT_EQ(in->remote_prefixes.size(), 1U);
  EXPECT_EQ(net::join(in->remote_prefixes.at("b")), "10.2.0.0/16, 10.102.0.0/16");
  ASSERT_EQ(in->gateways.size(), 1U);
  EXPECT_TRUE(in->gateways[0].ready);
}

TEST(Gather, GatewayWithoutServingAgentIsNotReady) {
  World world;
  world.gateways[0].status.status_failure = "no ESP in this kernel";
  EXPECT_FALSE(world.gather()->gateways[0].ready);
  world.gateways.clear();
  EXPECT_FALSE(world.gather()->gateways[0].ready);
}

TEST(Gather, NodeThatIsNotReadyIsNoGateway) {
  World world;
  world.nodes[0].status.conditions[0].status = api::ConditionStatus::no;
  EXPECT_FALSE(world.gather()->gateways[0].ready);
}

TEST(Gather, SaysWhatIsMissing) {
  World world;
  world.clusters.clear();
  EXPECT_EQ(world.gather().error().message(), "there is no Cluster submariner-operator/a yet; the operator makes it");
  world = World();
  world.nodes.clear();
  EXPECT_EQ(world.gather().error().message(), "there is no Node 'a-n1'");
  world = World();
  world.nodes[0].status.addresses.clear();
  EXPECT_EQ(world.gather().error().code, Errc::unavailable);
}

TEST(Gather, UnreadablePrefixOfAnotherClusterHarmsOnlyItself) {
  World world;
  world.endpoints[1].spec.subnets = {"not a prefix", "10.2.0.0/16"};
  EXPECT_EQ(net::join(world.gather()->remote_prefixes.at("b")), "10.2.0.0/16");
}

TEST(Gather, LeavesRoomForTheWorstPathInUse) {
  World world;
  EXPECT_FALSE(world.gather()->encapsulation.udp);
  world.gateways[0].status.connections[0].using_nat = true;
  world.gateways[0].status.connections[0].using_ip = "fd20:2::11";
  EXPECT_TRUE(world.gather()->encapsulation.udp);
  EXPECT_TRUE(world.gather()->encapsulation.outer_ipv6);
}

TEST(Gather, StatusShowsTheConnectionsOfTheChosenGateway) {
  const World world;
  const auto rows = remote_endpoints(world.options, world.objects(), "a-n1");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].spec.cluster_id, "b");
  EXPECT_EQ(rows[0].status, api::ConnectionStatus::connected);
  EXPECT_TRUE(remote_endpoints(world.options, world.objects(), "other").empty());
}

}  // namespace
}  // namespace fabric::routeagent
