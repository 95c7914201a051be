#include <fabric/api/fabric.hpp>
#include <fabric/api/fabric_rules.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/yaml/yaml.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace fabric::api {
namespace {

std::vector<json::Value> documents(const std::string& file) {
  std::ifstream stream(std::string(FABRIC_CRD_DIR) + "/" + file);
  std::stringstream text;
  text << stream.rdbuf();
  auto parsed = yaml::parse_all(text.str());
  EXPECT_TRUE(parsed) << file << ": " << parsed.error().context;
  return parsed ? *std::move(parsed) : std::vector<json::Value>{};
}

Fabric read_spec(const std::string& text) {
  auto fabric = json::decode<Fabric>(text);
  EXPECT_TRUE(fabric) << text;
  return fabric ? *std::move(fabric) : Fabric{};
}

// The schema of one kind's CRD.
const json::Value* find_crd(const std::vector<json::Value>& crds, const Gvk& gvk) {
  for (const auto& crd : crds) {
    if (crd.string_at({"spec", "names", "kind"}) != gvk.kind) continue;
    EXPECT_EQ(crd.string_at({"metadata", "name"}), fmt::format("{}.{}", gvk.plural, gvk.group));
    EXPECT_EQ(crd.string_at({"spec", "group"}), gvk.group);
    EXPECT_EQ(crd.string_at({"spec", "names", "plural"}), gvk.plural);
    EXPECT_EQ(crd.string_at({"spec", "scope"}), gvk.namespaced ? "Namespaced" : "Cluster");
    EXPECT_EQ(crd.string_at({"spec", "versions", "0", "name"}), gvk.version);
    return crd.at({"spec", "versions", "0", "schema", "openAPIV3Schema"});
  }
  ADD_FAILURE() << "no CRD for " << gvk.kind;
  return nullptr;
}

struct Paths {
  std::set<std::string> all;
  std::set<std::string> open;  ///< Objects whose members the CRD does not list.
};

void collect(const json::Value& schema, const std::string& prefix, Paths& out) {
  if (const json::Value* items = schema.find("items")) return collect(*items, prefix + "[]", out);
  const json::Value* properties = schema.find("properties");
  if (properties == nullptr && schema.find("x-kubernetes-preserve-unknown-fields") != nullptr) out.open.insert(prefix);
  if (properties == nullptr) return;
  for (const auto& [name, member] : *properties->if_object()) {
    const std::string path = prefix.empty() ? name : prefix + "." + name;
    if (path == "apiVersion" || path == "kind" || path == "metadata") continue;
    out.all.insert(path);
    collect(member, path, out);
  }
}

template <class T>
void expect_same_fields(const std::vector<json::Value>& crds) {
  const json::Value* schema = find_crd(crds, T::kGvk);
  ASSERT_NE(schema, nullptr);
  Paths crd;
  collect(*schema, "", crd);
  std::set<std::string> ours;
  for (const auto& path : json::schema_paths<T>()) {
    const bool below_open =
        std::ranges::any_of(crd.open, [&](const auto& open) { return path.starts_with(open + "."); });
    if (!path.starts_with("metadata") && !below_open) ours.insert(path);
  }
  EXPECT_EQ(crd.all, ours) << T::kGvk.kind;
}

TEST(Crd, HasExactlyTheFieldsOfTheFabricSchema) {
  expect_same_fields<Fabric>(documents("fabric.yaml"));
}

TEST(Crd, HasExactlyTheFieldsOfTheSubmarinerSchemas) {
  const auto crds = documents("submariner.yaml");
  expect_same_fields<Cluster>(crds);
  expect_same_fields<Endpoint>(crds);
  expect_same_fields<Gateway>(crds);
  expect_same_fields<RouteAgent>(crds);
}

// Every object level of a written value has what the CRD requires there.
void expect_required(const json::Value& schema, const json::Value& value, const std::string& path) {
  if (const json::Value* required = schema.find("required"); required != nullptr && value.is_object()) {
    for (const auto& name : *required->if_array()) {
      EXPECT_NE(value.find(*name.if_string()), nullptr) << path << "." << *name.if_string();
    }
  }
  const json::Value* properties = schema.find("properties");
  if (properties == nullptr || !value.is_object()) return;
  for (const auto& [name, member] : *properties->if_object()) {
    if (const json::Value* inner = value.find(name)) expect_required(member, *inner, path + "." + name);
  }
}

TEST(Crd, IsSatisfiedByObjectsWithOnlyInitialValues) {
  const auto crds = documents("submariner.yaml");
  expect_required(*find_crd(crds, Cluster::kGvk), to_object(Cluster{}), "Cluster");
  expect_required(*find_crd(crds, Endpoint::kGvk), to_object(Endpoint{}), "Endpoint");
  expect_required(*find_crd(crds, Gateway::kGvk), to_object(Gateway{}), "Gateway");
}

TEST(Crd, NamesTheEnumsOfTheSchema) {
  const auto crds = documents("fabric.yaml");
  const json::Value* schema = find_crd(crds, Fabric::kGvk);
  ASSERT_NE(schema, nullptr);
  const auto expect_enum = [&](std::initializer_list<std::string_view> path, const auto& names) {
    const json::Value* listed = schema->at(path);
    ASSERT_NE(listed, nullptr);
    json::Array expected;
    for (const auto& entry : names)
      expected.emplace_back(entry.second);
    EXPECT_EQ(*listed, json::Value(expected));
  };
  expect_enum({"properties", "spec", "properties", "action", "enum"}, json::EnumNames<Action>::names);
  expect_enum({"properties", "status", "properties", "phase", "enum"}, json::EnumNames<FabricPhase>::names);
  expect_enum({"properties", "status", "properties", "pskRotation", "properties", "phase", "enum"},
              json::EnumNames<PskPhase>::names);
}

TEST(Crd, HasTheBoundsThatValidateHas) {
  const auto crds = documents("fabric.yaml");
  const json::Value* schema = find_crd(crds, Fabric::kGvk);
  ASSERT_NE(schema, nullptr);
  const auto accepted = [](std::string_view field, std::int64_t value) {
    const auto fabric =
        read_spec(fmt::format(R"({{"spec":{{"joinConfig":{{"clusterID":"a","{}":{}}}}}}})", field, value));
    return !has_errors(validate(fabric));
  };
  for (const std::string_view field : {"nattPort", "ikePort", "healthCheckInterval", "healthCheckMaxPacketLossCount",
                                       "globalnetClusterSize", "rekeyPackets", "rekeyBytes"}) {
    const json::Value* member = schema->at({"properties", "spec", "properties", "joinConfig", "properties", field});
    ASSERT_NE(member, nullptr) << field;
    const auto minimum = json::get<std::int64_t>(*member, {"minimum"});
    const auto maximum = json::get<std::int64_t>(*member, {"maximum"});
    ASSERT_TRUE(minimum && maximum) << field;
    EXPECT_TRUE(accepted(field, *minimum)) << field;
    EXPECT_TRUE(accepted(field, *maximum)) << field;
    EXPECT_FALSE(accepted(field, *minimum - 1)) << field;
    EXPECT_FALSE(accepted(field, *maximum + 1)) << field;
  }
}

TEST(Samples, DecodeWithoutErrors) {
  for (const char* file : {"broker.yaml", "join.yaml", "join-cloud.yaml"}) {
    const auto docs = documents(std::string("samples/") + file);
    ASSERT_EQ(docs.size(), 1U) << file;
    const auto fabric = from_object<Fabric>(docs.front());
    ASSERT_TRUE(fabric) << file << ": " << fabric.error().context;
    EXPECT_FALSE(has_errors(validate(*fabric))) << file << ": " << summarize(*fabric, validate(*fabric));
  }
}

}  // namespace
}  // namespace fabric::api
