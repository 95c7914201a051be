#include <fabric/api/apps.hpp>
#include <fabric/api/core.hpp>
#include <fabric/api/event.hpp>
#include <fabric/api/lease.hpp>
#include <fabric/api/service_cidr.hpp>

#include <gtest/gtest.h>

#include <type_traits>

namespace fabric::api {
namespace {

template <class T>
T read(std::string_view text) {
  auto object = json::decode<T>(text);
  EXPECT_TRUE(object) << object.error().context;
  return object ? *std::move(object) : T{};
}

TEST(Node, GivesItsAddressesPrefixesAndReadiness) {
  const auto node = read<Node>(
      R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/control-plane":""}},"spec":{"podCIDR":"10.244.1.0/24",)"
      R"("podCIDRs":["10.244.1.0/24","fd00:244:1::/64","oops"],"taints":[{"key":"k","effect":"NoSchedule"}]},"status":)"
      R"({"addresses":[{"type":"Hostname","address":"n"},{"type":"InternalIP","address":"192.0.2.1"},)"
      R"({"type":"InternalIP","address":"2001:db8::1"}],"conditions":[{"type":"Ready","status":"True",)"
      R"("lastHeartbeatTime":"2024-01-01T00:00:00Z"}],"nodeInfo":{"kernelVersion":"6.1"}}})");
  EXPECT_TRUE(is_ready(node));
  EXPECT_TRUE(is_control_plane(node));
  ASSERT_EQ(addresses(node, "InternalIP").size(), 2U);
  EXPECT_EQ(addresses(node, "InternalIP")[1].to_string(), "2001:db8::1");
  EXPECT_TRUE(addresses(node, "ExternalIP").empty());
  EXPECT_EQ(net::join(pod_cidrs(node)), "10.244.1.0/24, fd00:244:1::/64");
  EXPECT_EQ(net::join(pod_cidrs(read<Node>(R"({"spec":{"podCIDR":"10.1.0.0/24"}})"))), "10.1.0.0/24");
  EXPECT_FALSE(is_ready(Node{}));
}

TEST(Secret, HoldsItsDataAsSecrets) {
  static_assert(!std::is_copy_assignable_v<Secret>);
  const std::string text = R"({"data":{"psk":"c2VjcmV0"},"metadata":{"name":"s"},"type":"Opaque"})";
  const auto secret = read<SecretObject>(text);
  ASSERT_NE(secret.find("psk"), nullptr);
  EXPECT_EQ(secret.find("psk")->reveal_text(), "secret");
  EXPECT_EQ(secret.find("other"), nullptr);
  EXPECT_EQ(json::encode(secret.duplicate()), text);
}

TEST(Service, ReadsPortsByNumberAndByName) {
  const auto service = read<Service>(
      R"({"spec":{"clusterIP":"None","clusterIPs":["None"],"ports":[{"port":80,"targetPort":"http"},{"port":81,"targetPort":8081}]}})");
  ASSERT_EQ(service.spec.ports.size(), 2U);
  EXPECT_EQ(service.spec.ports[0].target_port->to_string(), "http");
  EXPECT_EQ(service.spec.ports[1].target_port->to_string(), "8081");
}

TEST(Pod, GivesWhatNetworkDiscoveryReads) {
  const auto pod = read<Pod>(
      R"({"spec":{"nodeName":"n","hostNetwork":true,"containers":[{"name":"c","command":["kube-apiserver"],)"
      R"("args":["--service-cluster-ip-range=10.96.0.0/16"],"env":[{"name":"E","valueFrom":{"fieldRef":{}}}]}]},)"
      R"("status":{"phase":"Running","podIPs":[{"ip":"10.0.0.1"}]}})");
  EXPECT_TRUE(pod.spec.host_network);
  ASSERT_EQ(pod.spec.containers.size(), 1U);
  EXPECT_EQ(pod.spec.containers[0].args[0], "--service-cluster-ip-range=10.96.0.0/16");
  EXPECT_EQ(pod.status.pod_ips[0].ip, "10.0.0.1");
}

TEST(DaemonSet, IsRolledOutWhenTheNewestSpecIsReadyEverywhere) {
  DaemonSet set;
  set.metadata.generation = 2;
  set.status = {.observed_generation = 2,
                .current_number_scheduled = 3,
                .desired_number_scheduled = 3,
                .updated_number_scheduled = 3,
                .number_ready = 3,
                .number_available = 3,
                .number_unavailable = 0,
                .number_misscheduled = 0};
  EXPECT_TRUE(is_rolled_out(set));
  DaemonSet stale = set;
  stale.status.observed_generation = 1;
  EXPECT_FALSE(is_rolled_out(stale));
  DaemonSet old_pods = set;
  old_pods.status.updated_number_scheduled = 2;
  EXPECT_FALSE(is_rolled_out(old_pods));
  DaemonSet unready = set;
  unready.status.number_ready = 2;
  EXPECT_FALSE(is_rolled_out(unready));
}

TEST(Lease, KeepsMicrosecondsAndWritesAReleasedHolder) {
  const std::string text = R"({"metadata":{"name":"l"},"spec":{"holderIdentity":"","leaseDurationSeconds":15,)"
                           R"("renewTime":"2024-02-29T12:34:56.000789Z"}})";
  EXPECT_EQ(json::encode(read<Lease>(text)), text);
}

TEST(Event, NamesWhatItIsAbout) {
  Node node;
  node.metadata.name = "n";
  node.metadata.uid = "u";
  Event event;
  event.event_time = json::MicroTime(std::chrono::microseconds(1));
  event.regarding = reference_to(node);
  EXPECT_EQ(
      json::encode(event),
      R"({"eventTime":"1970-01-01T00:00:00.000001Z","regarding":{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}})");
}

TEST(ServiceCidr, ListsItsPrefixes) {
  EXPECT_EQ(read<ServiceCidr>(R"({"spec":{"cidrs":["10.96.0.0/16"]}})").spec.cidrs.at(0), "10.96.0.0/16");
}

}  // namespace
}  // namespace fabric::api
