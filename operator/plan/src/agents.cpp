#include <fabric/api/names.hpp>
#include <fabric/operator/agents.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fabric::operators {
namespace {

namespace names = api::names;
using json::Array;
using json::array;
using json::Object;
using json::Value;

constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
constexpr std::string_view kRbacV1 = "rbac.authorization.k8s.io/v1";

Object metadata(const AgentPlan& plan, Agent agent, bool cluster_wide = false) {
  Object out{{"name", name_of(agent)},
             {"labels", Object{{"app", name_of(agent)},
                               {"app.kubernetes.io/part-of", "fabric"},
                               {"app.kubernetes.io/managed-by", names::kOperatorManager},
                               {"fabric.tkestack.io/owner", plan.fabric}}}};
  if (!cluster_wide) out.emplace("namespace", plan.ns);
  return out;
}

Value object(std::string_view api_version, std::string_view kind, Object meta) {
  return Object{{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(meta)}};
}

Value rule(std::string_view group, Array resources, Array verbs) {
  return Object{{"apiGroups", array(group)}, {"resources", std::move(resources)}, {"verbs", std::move(verbs)}};
}

Array read_verbs() {
  return array("get", "list", "watch");
}

Array write_verbs() {
  return array("get", "list", "watch", "create", "update", "patch", "delete");
}

/// What an agent does in its own namespace.
Array namespace_rules(Agent agent) {
  switch (agent) {
    case Agent::gateway:
      return array(rule(names::kSubmarinerGroup, array("clusters", "endpoints", "gateways"), write_verbs()),
                   rule("coordination.k8s.io", array("leases"), array("get", "create", "update", "patch")),
                   rule("events.k8s.io", array("events"), array("create", "patch")));
    case Agent::route_agent:
      return array(rule(names::kSubmarinerGroup, array("clusters", "endpoints", "gateways"), read_verbs()),
                   rule(names::kSubmarinerGroup, array("routeagents"), write_verbs()),
                   rule("events.k8s.io", array("events"), array("create", "patch")));
  }
  return {};
}

Value bound(const AgentPlan& plan, Agent agent, bool cluster_wide) {
  Value out = object(kRbacV1, cluster_wide ? "ClusterRoleBinding" : "RoleBinding", metadata(plan, agent, cluster_wide));
  out["roleRef"] =
      Object{{"apiGroup", kRbac}, {"kind", cluster_wide ? "ClusterRole" : "Role"}, {"name", name_of(agent)}};
  out["subjects"] = array(Object{{"kind", "ServiceAccount"}, {"name", name_of(agent)}, {"namespace", plan.ns}});
  return out;
}

const std::optional<std::string>& uninstall_of(Agent agent, const AgentPlan& plan) {
  return agent == Agent::gateway ? plan.uninstall_gateway : plan.uninstall_route_agent;
}

void add_gateway_arguments(const api::JoinSettings& settings, Array& out) {
  out.push_back(fmt::format("--nat-traversal={}", settings.nat_traversal));
  out.push_back(fmt::format("--preferred-server={}", settings.preferred_server));
  out.push_back(fmt::format("--health-check={}", settings.health_check.enabled));
  out.push_back(fmt::format("--health-check-interval={}", settings.health_check.interval.count()));
  out.push_back(fmt::format("--health-check-max-packet-loss={}", settings.health_check.max_packet_loss));
  out.push_back(fmt::format("--rekey-interval={}", settings.rekey_interval.count()));
  if (settings.rekey_packets) out.push_back(fmt::format("--rekey-packets={}", *settings.rekey_packets));
  if (settings.rekey_bytes) out.push_back(fmt::format("--rekey-bytes={}", *settings.rekey_bytes));
  if (!settings.cipher_suites.empty()) {
    out.push_back(fmt::format("--cipher-suites={}", fmt::join(settings.cipher_suites, ",")));
  }
  for (const auto& [node, address] : settings.node_elastic_ips) {
    out.push_back(fmt::format("--elastic-ip={}={}", node, address));
  }
}

std::uint16_t metrics_port_of(Agent agent, const AgentDefaults& defaults) {
  return agent == Agent::gateway ? defaults.gateway_metrics_port : defaults.route_agent_metrics_port;
}

Array arguments(Agent agent, const AgentPlan& plan) {
  const api::JoinSettings& settings = plan.settings;
  Array out = array(fmt::format("--namespace={}", plan.ns), fmt::format("--cluster-id={}", settings.cluster_id),
                    fmt::format("--natt-port={}", settings.natt_port),
                    fmt::format("--listen-port={}", metrics_port_of(agent, plan.defaults)));
  if (settings.force_udp_encaps) out.push_back("--force-udp-encaps");
  const bool debug = settings.debug || (agent == Agent::gateway && settings.ipsec_debug);
  if (debug) out.push_back("--log-level=debug");
  if (agent == Agent::gateway) add_gateway_arguments(settings, out);
  if (agent == Agent::gateway) {
    const auto& extra = plan.defaults.gateway_extra_args;
    out.insert(out.end(), extra.begin(), extra.end());
  }
  if (const auto& token = uninstall_of(agent, plan)) out.push_back(fmt::format("--uninstall={}", *token));
  return out;
}

struct Mount {
  std::string_view name;
  std::string_view path;
  bool read_only;
  Object source;
};

/// Secrets are files: they never stand in an environment, an argument or a log.
std::vector<Mount> mounts_of(Agent agent) {
  std::vector<Mount> out;
  out.push_back(
      {"state", "/run/fabric", false, {{"hostPath", Object{{"path", "/run/fabric"}, {"type", "DirectoryOrCreate"}}}}});
  const auto secret = [](std::string_view name) -> Object {
    // Optional, so that agents which only clean up start after the Secrets are gone. Mode 0400.
    return {{"secret", Object{{"secretName", name}, {"defaultMode", 256}, {"optional", true}}}};
  };
  if (agent == Agent::gateway) {
    out.push_back({"psk", "/run/secrets/fabric/psk", true, secret(names::kPskSecret)});
    out.push_back({"identity", "/run/secrets/fabric/identity", true, secret(names::kIdentitySecret)});
    out.push_back({"broker", "/run/secrets/fabric/broker", true, secret(names::kBrokerSecret)});
  } else {
    out.push_back({"xtables-lock",
                   "/run/xtables.lock",
                   false,
                   {{"hostPath", Object{{"path", "/run/xtables.lock"}, {"type", "FileOrCreate"}}}}});
    // A container's own /proc/sys is read-only, and nothing may be mounted below /proc.
    out.push_back({"sysctl",
                   "/host/proc/sys/net",
                   false,
                   {{"hostPath", Object{{"path", "/proc/sys/net"}, {"type", "Directory"}}}}});
  }
  return out;
}

Value probe(std::string_view path, std::uint16_t port, int period) {
  return Object{{"httpGet", Object{{"path", path}, {"port", port}}},
                {"periodSeconds", period},
                {"timeoutSeconds", 3},
                {"failureThreshold", 3}};
}

/// Root without its powers: netlink needs NET_ADMIN; the health check and libiptc open raw sockets. Where SELinux is
/// enforced, an ordinary container may not write the node's files that are mounted, such as /proc/sys.
Value security_context() {
  return Object{{"runAsUser", 0},
                {"runAsNonRoot", false},
                {"privileged", false},
                {"allowPrivilegeEscalation", false},
                {"readOnlyRootFilesystem", true},
                {"capabilities", Object{{"drop", array("ALL")}, {"add", array("NET_ADMIN", "NET_RAW")}}},
                {"seLinuxOptions", Object{{"type", "spc_t"}}},
                {"seccompProfile", Object{{"type", "RuntimeDefault"}}}};
}

Value container(Agent agent, const AgentPlan& plan) {
  const std::uint16_t port = metrics_port_of(agent, plan.defaults);
  Array mounts;
  for (const Mount& mount : mounts_of(agent)) {
    mounts.push_back(Object{{"name", mount.name}, {"mountPath", mount.path}, {"readOnly", mount.read_only}});
  }
  const std::string_view program = agent == Agent::gateway ? "/usr/bin/fabric-gateway" : "/usr/bin/fabric-routeagent";
  return Object{
      {"name", name_of(agent)},
      {"image", image_of(agent, plan.settings, plan.defaults.image)},
      {"imagePullPolicy", plan.defaults.pull_policy},
      {"command", array(program)},
      {"args", arguments(agent, plan)},
      {"env",
       array(
           Object{{"name", "NODE_NAME"},
                  {"valueFrom", Object{{"fieldRef", Object{{"apiVersion", "v1"}, {"fieldPath", "spec.nodeName"}}}}}},
           Object{{"name", "POD_NAME"},
                  {"valueFrom", Object{{"fieldRef", Object{{"apiVersion", "v1"}, {"fieldPath", "metadata.name"}}}}}})},
      {"ports", array(Object{{"name", "metrics"}, {"containerPort", port}, {"hostPort", port}, {"protocol", "TCP"}})},
      {"livenessProbe", probe("/healthz", port, 10)},
      {"readinessProbe", probe("/readyz", port, 2)},
      {"resources",
       Object{{"requests", Object{{"cpu", "20m"}, {"memory", "24Mi"}}}, {"limits", Object{{"memory", "128Mi"}}}}},
      {"securityContext", security_context()},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"volumeMounts", std::move(mounts)}};
}

Value pod_spec(Agent agent, const AgentPlan& plan) {
  Array volumes;
  for (Mount& mount : mounts_of(agent)) {
    Object volume = std::move(mount.source);
    volume.emplace("name", mount.name);
    volumes.push_back(std::move(volume));
  }
  Object selector{{"kubernetes.io/os", "linux"}};
  if (agent == Agent::gateway) selector.emplace(names::kGatewayLabel, names::kGatewayLabelValue);
  return Object{{"serviceAccountName", name_of(agent)},
                {"hostNetwork", true},
                {"dnsPolicy", "ClusterFirstWithHostNet"},
                {"priorityClassName", "system-node-critical"},
                {"terminationGracePeriodSeconds", 10},
                {"nodeSelector", std::move(selector)},
                {"tolerations", array(Object{{"operator", "Exists"}})},
                {"containers", array(container(agent, plan))},
                {"volumes", std::move(volumes)}};
}

Value update_strategy(Agent agent, const AgentPlan& plan) {
  // Restarting an agent moves no traffic, yet a bad version should not reach every node at once. An uninstall should.
  const Value unavailable = uninstall_of(agent, plan) ? Value("100%")
                            : agent == Agent::gateway ? Value(1)
                                                      : Value("10%");
  return Object{{"type", "RollingUpdate"}, {"rollingUpdate", Object{{"maxUnavailable", unavailable}}}};
}

}  // namespace

std::string_view name_of(Agent agent) {
  switch (agent) {
    case Agent::gateway:
      return names::kGatewayName;
    case Agent::route_agent:
      return names::kRouteAgentName;
  }
  return {};
}

std::string image_of(Agent agent, const api::JoinSettings& settings, const std::string& default_image) {
  const auto override_image = settings.image_overrides.find(name_of(agent));
  if (override_image != settings.image_overrides.end()) return override_image->second;
  if (!settings.repository && !settings.image_version) return default_image;
  // A colon after the last slash separates the tag; an earlier one belongs to the registry's port. A digest names one
  // image, so it does not survive another repository or version.
  std::string name = default_image.substr(0, default_image.find('@'));
  std::string tag = "latest";
  const auto slash = name.rfind('/');
  const auto colon = name.find(':', slash == std::string::npos ? 0 : slash);
  if (colon != std::string::npos) {
    tag = name.substr(colon + 1);
    name.resize(colon);
  }
  if (settings.repository) {
    const std::string base = slash == std::string::npos ? name : name.substr(slash + 1);
    name = fmt::format("{}/{}", *settings.repository, base);
  }
  return fmt::format("{}:{}", name, settings.image_version.value_or(tag));
}

Value agent_namespace(const AgentPlan& plan) {
  return object("v1", "Namespace",
                Object{{"name", plan.ns}, {"labels", Object{{"pod-security.kubernetes.io/enforce", "privileged"}}}});
}

std::vector<Value> agent_rbac(const AgentPlan& plan) {
  std::vector<Value> out;
  for (const Agent agent : kAgents) {
    out.push_back(object("v1", "ServiceAccount", metadata(plan, agent)));
    Value role = object(kRbacV1, "Role", metadata(plan, agent));
    role["rules"] = namespace_rules(agent);
    out.push_back(std::move(role));
    out.push_back(bound(plan, agent, false));
    Value cluster_role = object(kRbacV1, "ClusterRole", metadata(plan, agent, true));
    cluster_role["rules"] = array(rule("", array("nodes"), read_verbs()));
    out.push_back(std::move(cluster_role));
    out.push_back(bound(plan, agent, true));
  }
  return out;
}

Value agent_daemonset(Agent agent, const AgentPlan& plan) {
  const std::string_view name = name_of(agent);
  Value out = object("apps/v1", "DaemonSet", metadata(plan, agent));
  Object annotations;
  if (!plan.secrets_fingerprint.empty() && agent == Agent::gateway) {
    annotations.emplace("fabric.tkestack.io/secrets", plan.secrets_fingerprint);
  }
  annotations.emplace("kubectl.kubernetes.io/default-container", name);
  out["spec"] =
      Object{{"selector", Object{{"matchLabels", Object{{"app", name}}}}},
             {"updateStrategy", update_strategy(agent, plan)},
             {"template",
              Object{{"metadata", Object{{"labels", Object{{"app", name}, {"app.kubernetes.io/part-of", "fabric"}}},
                                         {"annotations", std::move(annotations)}}},
                     {"spec", pod_spec(agent, plan)}}}};
  return out;
}

std::vector<Value> agent_objects_to_delete(const AgentPlan& plan) {
  std::vector<Value> out;
  for (const Agent agent : kAgents) {
    out.push_back(object("apps/v1", "DaemonSet", metadata(plan, agent)));
    out.push_back(object(kRbacV1, "RoleBinding", metadata(plan, agent)));
    out.push_back(object(kRbacV1, "Role", metadata(plan, agent)));
    out.push_back(object(kRbacV1, "ClusterRoleBinding", metadata(plan, agent, true)));
    out.push_back(object(kRbacV1, "ClusterRole", metadata(plan, agent, true)));
    out.push_back(object("v1", "ServiceAccount", metadata(plan, agent)));
  }
  return out;
}

}  // namespace fabric::operators
