#include <fabric/api/fabric_rules.hpp>
#include <fabric/api/names.hpp>
#include <fabric/ctl/gateway_keys.hpp>
#include <fabric/ctl/psk_rotation.hpp>
#include <fabric/ctl/status_report.hpp>
#include <fabric/ctl/table.hpp>
#include <fabric/json/time.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace fabric::ctl {

namespace names = api::names;

namespace {

/// Conditions that are bad news when they are True; the operator writes no others of that kind.
constexpr std::array kBadNews{api::kReconciling, api::kStalled, std::string_view("UnsupportedFields")};

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string sourced(const std::vector<api::SourcedCidr>& cidrs) {
  std::vector<std::string> out;
  for (const api::SourcedCidr& each : cidrs)
    out.push_back(each.source.empty() ? each.cidr : fmt::format("{} (from {})", each.cidr, each.source));
  return joined(out);
}

std::string role_of(const api::Fabric& fabric) {
  const api::Roles roles = api::chosen_roles(fabric.spec);
  std::vector<std::string> out;
  if (roles.broker) out.emplace_back("broker");
  if (roles.join) out.emplace_back("member");
  if (roles.cloud_prepare) out.emplace_back("cloud");
  return out.empty() ? "no role" : joined(out);
}

std::string verdict_of(const api::Fabric& fabric) {
  if (fabric.metadata.is_deleting()) return "being deleted";
  if (is_ready(fabric)) return "Ready";
  const api::Condition* ready = api::find_condition(fabric.status.conditions, api::kReady);
  if (ready == nullptr) return "not Ready: no operator has looked at it yet";
  if (ready->status == api::ConditionStatus::yes) return "not Ready: the operator has not seen the latest spec yet";
  return "not Ready";
}

/// "  name          value" for each that has a value.
std::string facts(const api::Fabric& fabric) {
  const api::FabricStatus& status = fabric.status;
  const std::vector<std::pair<std::string_view, std::string>> all{
      {"cluster ID", status.cluster_id},
      {"broker", status.broker_url},
      {"pod prefixes", sourced(status.cluster_cidrs)},
      {"service prefixes", sourced(status.service_cidrs)},
      {"network plugin", status.network_plugin},
      {"members", joined(status.joined_clusters)},
      {"PSK IDs", joined(status.psk_ids)},
      {"PSK rotation", describe_rotation(fabric)},
      {"connections", status.connection_summary},
  };
  std::string out;
  for (const auto& [name, value] : all) {
    if (!value.empty()) out += fmt::format("  {:<17} {}\n", name, one_line(value));
  }
  return out;
}

std::string conditions(const api::Fabric& fabric, TimePoint now, bool verbose) {
  Table table{{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}, {}};
  for (const api::Condition& each : fabric.status.conditions) {
    if (is_fine(each) && !verbose) continue;
    table.rows.push_back({each.type, std::string(json::enum_name(each.status)), each.reason,
                          each.last_transition_time ? age(now, *each.last_transition_time) : "", each.message});
  }
  return render(table, 2);
}

std::size_t connected(const api::Gateway& gateway) {
  return static_cast<std::size_t>(
      std::ranges::count(gateway.status.connections, api::ConnectionStatus::connected, &api::Connection::status));
}

std::string gateways_section(const std::vector<api::Gateway>& gateways) {
  Table table{{"NODE", "HA", "CONNECTED", "PRIVATE IP", "PUBLIC IP", "VERSION", "FAILURE"}, {}};
  for (const api::Gateway& each : gateways) {
    const api::GatewayStatus& status = each.status;
    table.rows.push_back({each.metadata.name, std::string(json::enum_name(status.ha_status)),
                          fmt::format("{}/{}", connected(each), status.connections.size()),
                          status.local_endpoint.private_ip, status.local_endpoint.public_ip, status.version,
                          status.status_failure});
  }
  return render(table);
}

std::string connections_section(const std::vector<api::Gateway>& gateways) {
  Table table{{"GATEWAY", "CLUSTER", "REMOTE GATEWAY", "STATUS", "RTT AVG", "USING IP", "NAT", "MESSAGE"}, {}};
  for (const api::Gateway& gateway : gateways) {
    for (const api::Connection& each : gateway.status.connections) {
      const bool fine = each.status == api::ConnectionStatus::connected;
      table.rows.push_back({gateway.metadata.name, each.endpoint.cluster_id, each.endpoint.hostname,
                            std::string(json::enum_name(each.status)),
                            each.latency_rtt ? json::format_duration(each.latency_rtt->average) : "", each.using_ip,
                            each.using_nat ? "yes" : "no", fine ? "" : each.status_message});
    }
  }
  return render(table);
}

std::string titled(std::string_view title, const std::string& body) {
  return body.empty() ? body : fmt::format("\n{}\n{}", title, body);
}

}  // namespace

bool is_ready(const api::Fabric& fabric) {
  return !fabric.metadata.is_deleting() && api::is_true(fabric.status.conditions, api::kReady) &&
         fabric.status.observed_generation >= fabric.metadata.generation;
}

bool is_ready(const ClusterView& cluster) {
  return !cluster.fabrics.empty() &&
         std::ranges::all_of(cluster.fabrics, [](const api::Fabric& each) { return is_ready(each); });
}

bool is_fine(const api::Condition& condition) {
  const bool bad_news = std::ranges::find(kBadNews, condition.type) != kBadNews.end();
  return condition.status == (bad_news ? api::ConditionStatus::no : api::ConditionStatus::yes);
}

std::string status_text(const ClusterView& cluster, bool verbose) {
  std::string out;
  if (cluster.fabrics.empty()) {
    out = fmt::format("No Fabric: this cluster is neither a broker nor a member; apply a Fabric.{}\n",
                      names::kFabricGroup);
  }
  for (const api::Fabric& fabric : cluster.fabrics) {
    out += fmt::format("{}{} ({}): {}\n", out.empty() ? "" : "\n", api::describe(fabric), role_of(fabric),
                       verdict_of(fabric));
    out += facts(fabric) + conditions(fabric, cluster.now, verbose);
  }
  out += titled("Gateways", gateways_section(cluster.gateways));
  out += titled("Connections", connections_section(cluster.gateways));
  out += titled("Keys", keys_table(cluster.gateways, cluster.now));
  return out;
}

json::Value status_document(const ClusterView& cluster) {
  json::Value out = json::Object{{"ready", is_ready(cluster)}, {"fabrics", json::Array{}}, {"gateways", json::Array{}}};
  for (const api::Fabric& each : cluster.fabrics)
    out["fabrics"].push_back(api::to_object(each));
  for (const api::Gateway& each : cluster.gateways)
    out["gateways"].push_back(api::to_object(each));
  return out;
}

}  // namespace fabric::ctl
