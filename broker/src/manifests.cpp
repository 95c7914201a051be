#include <fabric/base/assert.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/json/base64.hpp>

#include <fmt/format.h>

#include <span>

namespace fabric::broker {

// NOLINTNEXTLINE(misc-use-internal-linkage): generated from crd/submariner.yaml into a source of its own.
std::span<const std::string_view> submariner_crd_documents();

namespace {

using json::Array;
using json::array;
using json::Object;
using json::Value;

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kRbacV1 = "rbac.authorization.k8s.io/v1";
constexpr std::string_view kAdmissionV1 = "admissionregistration.k8s.io/v1";

Object labels_of(const FabricRef& fabric) {
  Object labels{{"app.kubernetes.io/managed-by", names::kOperatorManager}};
  if (fabric.name.empty()) return labels;
  labels.emplace(names::kFabricNameLabel, fabric.name);
  labels.emplace(names::kFabricNamespaceLabel, fabric.ns);
  return labels;
}

Object metadata(const FabricRef& fabric, std::string_view name, std::string_view ns = names::kBrokerNamespace) {
  Object out{{"name", name}, {"labels", labels_of(fabric)}};
  if (!ns.empty()) out.emplace("namespace", ns);
  return out;
}

Value object(std::string_view api_version, std::string_view kind, Object meta) {
  return Object{{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(meta)}};
}

Value rule(std::string_view group, Array resources, Array verbs) {
  return Object{{"apiGroups", array(group)}, {"resources", std::move(resources)}, {"verbs", std::move(verbs)}};
}

Value role(const FabricRef& fabric, std::string_view name, Array rules) {
  Value out = object(kRbacV1, "Role", metadata(fabric, name));
  out["rules"] = std::move(rules);
  return out;
}

Value role_binding(const FabricRef& fabric, std::string_view name, std::string_view role_name,
                   std::string_view account) {
  Value out = object(kRbacV1, "RoleBinding", metadata(fabric, name));
  out["roleRef"] = Object{{"apiGroup", kRbac}, {"kind", "Role"}, {"name", role_name}};
  out["subjects"] =
      array(Object{{"kind", "ServiceAccount"}, {"name", account}, {"namespace", names::kBrokerNamespace}});
  return out;
}

Value token_secret(const FabricRef& fabric, std::string_view name, std::string_view account) {
  Value out = object("v1", "Secret", metadata(fabric, name));
  out["metadata"]["annotations"] = Object{{std::string(names::kTokenAccountAnnotation), account}};
  out["type"] = names::kTokenSecretType;
  return out;
}

/// What the two admission policies differ in.
struct Policy {
  std::string_view name;
  std::string_view group;
  Array resources;
  Array operations;
  std::string applies_to;  ///< CEL: whether the writer is one that this policy restricts.
  Array validations;
};

Value admission_policy(const FabricRef& fabric, Policy policy) {
  Value out = object(kAdmissionV1, "ValidatingAdmissionPolicy", metadata(fabric, policy.name, ""));
  out["spec"] =
      Object{{"failurePolicy", "Fail"},
             {"matchConstraints",
              Object{{"namespaceSelector",
                      Object{{"matchLabels", Object{{"kubernetes.io/metadata.name", names::kBrokerNamespace}}}}},
                     {"resourceRules", array(Object{{"apiGroups", array(policy.group)},
                                                    {"apiVersions", array("*")},
                                                    {"operations", std::move(policy.operations)},
                                                    {"resources", std::move(policy.resources)}})}}},
             {"matchConditions", array(Object{{"name", "writer"}, {"expression", policy.applies_to}})},
             {"validations", std::move(policy.validations)}};
  return out;
}

Value admission_binding(const FabricRef& fabric, std::string_view name) {
  Value out = object(kAdmissionV1, "ValidatingAdmissionPolicyBinding", metadata(fabric, name, ""));
  out["spec"] = Object{{"policyName", name}, {"validationActions", array("Deny")}};
  return out;
}

std::string account_user(std::string_view account) {
  return fmt::format("system:serviceaccount:{}:{}", names::kBrokerNamespace, account);
}

/// A member writes only records whose spec and name are its own; also on update and deletion, where the old object
/// counts too. RBAC cannot say this, since it knows no prefix of names.
Value member_policy(const FabricRef& fabric) {
  const std::string user = account_user(names::kMemberAccountPrefix);
  const auto own = [&](std::string_view which) {
    return fmt::format(
        "({0} == null || (request.userInfo.username == '{1}' + {0}.spec.cluster_id && "
        "({0}.metadata.name == {0}.spec.cluster_id || "
        "{0}.metadata.name.startsWith({0}.spec.cluster_id + '-submariner-cable-'))))",
        which, user);
  };
  const auto validation = [&](std::string_view which) {
    return Object{{"expression", own(which)},
                  {"reason", "Forbidden"},
                  {"messageExpression",
                   fmt::format("request.userInfo.username + ' may write only records whose spec.cluster_id is its "
                               "own cluster id and whose name is <id> or <id>-submariner-cable-...; {} has "
                               "another one'",
                               which == "object" ? "this object" : "the object there")}};
  };
  return admission_policy(
      fabric, {kMemberPolicy, names::kSubmarinerGroup, array("clusters", "endpoints"),
               array("CREATE", "UPDATE", "DELETE"), fmt::format("request.userInfo.username.startsWith('{}')", user),
               array(validation("object"), validation("oldObject"))});
}

/// Whoever holds broker-info may ask to join, and nothing else: without this, it could write the answers, too.
Value client_policy(const FabricRef& fabric) {
  return admission_policy(
      fabric,
      {kClientPolicy, "", array("configmaps"), array("CREATE", "UPDATE"),
       fmt::format("request.userInfo.username == '{}'", account_user(names::kBrokerClientAccount)),
       array(Object{{"expression", fmt::format("object.metadata.name.startsWith('{}')", names::kJoinRequestPrefix)},
                    {"reason", "Forbidden"},
                    {"message", fmt::format("this account may create only ConfigMaps {}<cluster id>",
                                            names::kJoinRequestPrefix)}})});
}

/// Get by name, no list: an answer can be opened only by who asked.
Value client_role(const FabricRef& fabric, const std::vector<std::string>& asking) {
  Array rules = array(rule("", array("configmaps"), array("create")));
  if (!asking.empty()) {
    Array answers;
    for (const std::string& id : asking)
      answers.emplace_back(member_answer_name(id));
    Value read = rule("", array("configmaps"), array("get"));
    read["resourceNames"] = std::move(answers);
    rules.push_back(std::move(read));
  }
  return role(fabric, kClientRole, std::move(rules));
}

Value config_map(const FabricRef& fabric, std::string_view name, Object data) {
  Value out = object("v1", "ConfigMap", metadata(fabric, name));
  out["data"] = std::move(data);
  return out;
}

Object object_of(const ConfigData& data) {
  return {data.begin(), data.end()};
}

}  // namespace

std::vector<Value> submariner_crds() {
  std::vector<Value> out;
  for (const std::string_view text : submariner_crd_documents()) {
    auto crd = json::parse(text);
    FABRIC_ASSERT(crd.has_value());  // Our own file, made at build time; a test parses it.
    out.push_back(*std::move(crd));
  }
  return out;
}

std::vector<Value> broker_manifests(const FabricRef& fabric, const std::vector<std::string>& asking) {
  std::vector<Value> out;
  Value ns = object("v1", "Namespace", metadata(fabric, names::kBrokerNamespace, ""));
  ns["metadata"]["labels"]["submariner.io/broker"] = "true";
  // The chart makes this namespace, too, and two owners of one field are a conflict for `helm upgrade`.
  ns["metadata"]["labels"].if_object()->erase("app.kubernetes.io/managed-by");
  out.push_back(std::move(ns));
  out.push_back(member_policy(fabric));
  out.push_back(admission_binding(fabric, kMemberPolicy));
  out.push_back(client_policy(fabric));
  out.push_back(admission_binding(fabric, kClientPolicy));
  out.push_back(object("v1", "ServiceAccount", metadata(fabric, names::kBrokerClientAccount)));
  out.push_back(client_role(fabric, asking));
  out.push_back(role_binding(fabric, kClientRole, kClientRole, names::kBrokerClientAccount));
  out.push_back(token_secret(fabric, kClientTokenSecret, names::kBrokerClientAccount));
  out.push_back(role(fabric, names::kMemberRole,
                     array(rule(names::kSubmarinerGroup, array("clusters", "endpoints"),
                                array("get", "list", "watch", "create", "update", "patch", "delete")))));
  return out;
}

Value psk_secret(const FabricRef& fabric, std::string_view ns, const crypto::PskBundle& psk) {
  Value out = object("v1", "Secret", metadata(fabric, names::kPskSecret, ns));
  out["type"] = "Opaque";
  out["data"] = psk_data(psk);
  return out;
}

Result<crypto::PskBundle> read_psk_secret(const api::SecretObject& secret) {
  const auto refuse = [&](std::string_view what) {
    return fail(Errc::invalid, "Secret {}/{}: {}: restore the one that members have, or delete the Secret",
                secret.metadata.ns, secret.metadata.name, what);
  };
  crypto::PskBundle bundle;
  const Secret* psk = secret.find(names::kPskKey);
  if (psk == nullptr || psk->empty()) return refuse(fmt::format("key {} is missing or empty", names::kPskKey));
  bundle.psk = psk->duplicate();
  if (const Secret* number = secret.find(names::kPskNumberKey)) {
    const auto parsed = crypto::parse_psk_number(number->reveal_text());
    if (!parsed) return refuse(fmt::format("key {}: {}", names::kPskNumberKey, parsed.error().message()));
    bundle.number = *parsed;
  }
  if (const Secret* previous = secret.find(names::kPskPreviousKey)) bundle.previous = previous->duplicate();
  if (const auto fits = crypto::make_psk_set(bundle); !fits) return refuse(fits.error().message());
  return bundle;
}

Value globalnet_info(const FabricRef& fabric, const GlobalnetOptions& options) {
  Value out = config_map(fabric, kGlobalnetInfo,
                         Object{{"globalnetEnabled", "true"},
                                // Submariner writes this one as a JSON literal, quotes included.
                                {"globalnetCidrRange", fmt::format("\"{}\"", options.cidr_range)},
                                {"globalnetClusterSize", std::to_string(options.cluster_size)}});
  out["metadata"]["labels"]["component"] = "submariner-globalnet";
  return out;
}

Value broker_info_config_map(const FabricRef& fabric, const BrokerInfo& info) {
  return config_map(fabric, names::kBrokerInfo, Object{{std::string(names::kBrokerInfoKey), write_broker_info(info)}});
}

std::vector<Value> member_manifests(std::string_view cluster_id) {
  const FabricRef none;
  const std::string account = member_account_name(cluster_id);
  std::vector<Value> out;
  out.push_back(object("v1", "ServiceAccount", metadata(none, account)));
  out.push_back(role_binding(none, member_binding_name(cluster_id), names::kMemberRole, account));
  // A watch of one object needs list, too; the name restricts all three to it.
  Value own_answer = rule("", array("configmaps"), array("get", "list", "watch"));
  own_answer["resourceNames"] = array(member_answer_name(cluster_id));
  out.push_back(role(none, member_answer_role_name(cluster_id), array(std::move(own_answer))));
  out.push_back(role_binding(none, member_answer_role_name(cluster_id), member_answer_role_name(cluster_id), account));
  out.push_back(token_secret(none, member_token_name(cluster_id), account));
  return out;
}

Value join_request_config_map(std::string_view cluster_id, const ConfigData& data) {
  return config_map({}, join_request_name(cluster_id), object_of(data));
}

Value member_answer_config_map(std::string_view cluster_id, const ConfigData& data) {
  return config_map({}, member_answer_name(cluster_id), object_of(data));
}

}  // namespace fabric::broker
