#include <fabric/kube/request.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fabric::kube {
namespace {

const ResourceId kPods{"", "v1", "Pod", "pods", true};
const ResourceId kDaemonSets{"apps", "v1", "DaemonSet", "daemonsets", true};
const ResourceId kNodes{"", "v1", "Node", "nodes", false};

struct Row {
  std::string name;
  ApiRequest request;
  http::Method method;
  std::string target;
  std::string content_type;
  std::string body;
};

class Requests : public testing::TestWithParam<Row> {};

TEST_P(Requests, HaveMethodTargetAndBody) {
  const Row& row = GetParam();
  EXPECT_EQ(row.request.method, row.method);
  EXPECT_EQ(row.request.target(), row.target);
  EXPECT_EQ(row.request.content_type, row.content_type);
  EXPECT_EQ(row.request.body, row.body);
}

const json::Value kBody = json::Object{{"a", 1}};

std::vector<Row> rows() {
  using enum http::Method;
  const ObjectKey pod{"ns", "p"};
  RemoveOptions exact{Propagation::foreground, "u-1", "42"};
  return {
      {"get", get_request(kPods, pod), get, "/api/v1/namespaces/ns/pods/p", "", ""},
      {"get_cluster_scoped", get_request(kNodes, {"ignored", "n"}), get, "/api/v1/nodes/n", "", ""},
      {"names_are_encoded", get_request(kPods, {"a/b", "../c?d"}), get, "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd", "",
       ""},
      {"list_of_a_group", list_request(kDaemonSets, {"ns", "", ""}, {500, ""}), get,
       "/apis/apps/v1/namespaces/ns/daemonsets?limit=500", "", ""},
      {"list_everywhere", list_request(kPods, {}, {0, ""}), get, "/api/v1/pods", "", ""},
      {"list_selected", list_request(kPods, {"", "a=b,c", "spec.nodeName=x"}, {10, "t/="}), get,
       "/api/v1/pods?labelSelector=a%3Db%2Cc&fieldSelector=spec.nodeName%3Dx&limit=10&continue=t%2F%3D", "", ""},
      {"watch", watch_request(kPods, {"ns", "a", ""}, {"7", std::chrono::seconds(300)}), get,
       "/api/v1/namespaces/ns/"
       "pods?labelSelector=a&watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300",
       "", ""},
      {"create", create_request(kPods, "ns", kBody), post, "/api/v1/namespaces/ns/pods", "application/json",
       R"({"a":1})"},
      {"update", update_request(kPods, pod, kBody), put, "/api/v1/namespaces/ns/pods/p", "application/json",
       R"({"a":1})"},
      {"update_status", update_request(kPods, pod, kBody, "status"), put, "/api/v1/namespaces/ns/pods/p/status",
       "application/json", R"({"a":1})"},
      {"apply", apply_request(kPods, pod, kBody, {"fabric-operator", true}), patch,
       "/api/v1/namespaces/ns/pods/p?fieldManager=fabric-operator&force=true", "application/apply-patch+yaml",
       R"({"a":1})"},
      {"apply_status", apply_request(kPods, pod, kBody, {"m", false}, "status"), patch,
       "/api/v1/namespaces/ns/pods/p/status?fieldManager=m&force=false", "application/apply-patch+yaml", R"({"a":1})"},
      {"merge_patch", patch_request(kPods, pod, PatchType::merge, kBody), patch, "/api/v1/namespaces/ns/pods/p",
       "application/merge-patch+json", R"({"a":1})"},
      {"json_patch", patch_request(kPods, pod, PatchType::json, json::array(kBody)), patch,
       "/api/v1/namespaces/ns/pods/p", "application/json-patch+json", R"([{"a":1}])"},
      {"remove", remove_request(kPods, pod, {}), del, "/api/v1/namespaces/ns/pods/p", "application/json",
       R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})"},
      {"remove_exactly", remove_request(kPods, pod, exact), del, "/api/v1/namespaces/ns/pods/p", "application/json",
       R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"42","uid":"u-1"},)"
       R"("propagationPolicy":"Foreground"})"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, Requests, testing::ValuesIn(rows()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fabric::kube
