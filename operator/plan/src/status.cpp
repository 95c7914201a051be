#include <fabric/api/names.hpp>
#include <fabric/json/time.hpp>
#include <fabric/operator/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace fabric::operators {
namespace {

std::string reason_of(Errc code) {
  switch (code) {
    case Errc::not_found:
      return "NotFound";
    case Errc::already_exists:
      return "AlreadyExists";
    case Errc::conflict:
      return "Conflict";
    case Errc::gone:
      return "Gone";
    case Errc::invalid:
      return "Invalid";
    case Errc::unsupported:
      return "Unsupported";
    case Errc::unauthorized:
      return "Unauthorized";
    case Errc::forbidden:
      return "Forbidden";
    case Errc::unavailable:
      return "Unavailable";
    case Errc::timeout:
      return "Timeout";
    case Errc::cancelled:
      return "Cancelled";
    case Errc::internal:
      return "InternalError";
  }
  return "InternalError";
}

bool needs_a_person(Errc code) {
  return code == Errc::invalid || code == Errc::unsupported || code == Errc::forbidden || code == Errc::unauthorized;
}

/// The better of two connections to one cluster.
int rank(api::ConnectionStatus status) {
  switch (status) {
    case api::ConnectionStatus::connected:
      return 3;
    case api::ConnectionStatus::connecting:
      return 2;
    case api::ConnectionStatus::error:
      return 1;
    case api::ConnectionStatus::none:
      return 0;
  }
  return 0;
}

api::ConnectionSummary summary_of(const api::Connection& connection) {
  api::ConnectionSummary out;
  out.cluster = connection.endpoint.cluster_id;
  out.gateway = connection.endpoint.hostname;
  out.status = connection.status;
  out.using_ip = connection.using_ip;
  if (connection.latency_rtt) out.rtt = json::format_duration(connection.latency_rtt->average);
  out.message = connection.status_message;
  return out;
}

bool decides_about_ready(const Step& step) {
  if (step.state == StepState::done || step.type == kConnections) return false;
  return step.type != kPskRotated || step.state != StepState::working;
}

Step connections_step(std::size_t connected, const std::set<std::string>& known,
                      const std::vector<std::string>& missing) {
  const std::string type(kConnections);
  if (known.empty()) return {type, StepState::done, "NoOtherCluster", "no other cluster has joined yet"};
  if (missing.empty()) {
    return {type, StepState::done, "Connected",
            fmt::format("connected to {} cluster{}", connected, connected == 1 ? "" : "s")};
  }
  return {type, StepState::working, "NotConnected",
          fmt::format("not connected to {}: see kubectl get gateways.{} -n {} -o yaml", fmt::join(missing, ", "),
                      api::names::kSubmarinerGroup, api::names::kOperatorNamespace)};
}

}  // namespace

Step step_of(std::string_view type, const Error& error) {
  const StepState state = needs_a_person(error.code) ? StepState::stalled : StepState::failing;
  return {std::string(type), state, reason_of(error.code), error.message()};
}

void apply_steps(api::FabricStatus& status, const std::vector<Step>& steps, std::int64_t generation, TimePoint now) {
  const Step* open = nullptr;
  for (const Step& step : steps) {
    api::Condition condition;
    condition.type = step.type;
    condition.status = step.state == StepState::done ? api::ConditionStatus::yes : api::ConditionStatus::no;
    condition.observed_generation = generation;
    condition.reason = step.reason;
    condition.message = step.message;
    api::set_condition(status.conditions, std::move(condition), now);
    if (open == nullptr && decides_about_ready(step)) open = &step;
  }
  status.observed_generation = generation;
  if (open == nullptr) {
    api::set_progress(status.conditions, api::Progress::ready, "Ready", "everything is in place", generation, now);
    status.phase = api::FabricPhase::running;
    return;
  }
  const bool stalled = open->state == StepState::stalled;
  api::set_progress(status.conditions, stalled ? api::Progress::stalled : api::Progress::reconciling, open->reason,
                    open->message, generation, now);
  if (open->type == kUninstalled) {
    status.phase = api::FabricPhase::deleting;
  } else {
    status.phase = stalled ? api::FabricPhase::failed : api::FabricPhase::pending;
  }
}

void apply_unserved(api::FabricStatus& status, const std::vector<api::UnservedField>& fields, std::int64_t generation,
                    TimePoint now) {
  if (fields.empty()) {
    api::remove_condition(status.conditions, kUnsupported);
    return;
  }
  std::string message;
  for (const api::UnservedField& field : fields) {
    message += fmt::format("{}{} {}: {}", message.empty() ? "" : "; ", field.path, field.value, field.effect);
  }
  api::Condition condition;
  condition.type = kUnsupported;
  condition.status = api::ConditionStatus::yes;
  condition.observed_generation = generation;
  condition.reason = "NotServedYet";
  condition.message = std::move(message);
  api::set_condition(status.conditions, std::move(condition), now);
}

Step agents_step(const std::vector<std::optional<api::DaemonSet>>& daemonsets) {
  const std::string type(kAgentsReady);
  std::int32_t ready = 0;
  for (const auto& daemonset : daemonsets) {
    if (!daemonset) return {type, StepState::working, "Starting", "the agents' DaemonSets are being created"};
    const auto& status = daemonset->status;
    if (!api::is_rolled_out(*daemonset) || status.desired_number_scheduled == 0) {
      return {type, StepState::working, "NotReady",
              fmt::format("DaemonSet {}/{}: {} of {} pods are ready: see kubectl get pods -n {} -l app={}",
                          daemonset->metadata.ns, daemonset->metadata.name, status.number_ready,
                          status.desired_number_scheduled, daemonset->metadata.ns, daemonset->metadata.name)};
    }
    ready += status.number_ready;
  }
  return {type, StepState::done, "Ready", fmt::format("{} pods are ready", ready)};
}

ConnectionReport report_connections(std::string_view own_cluster, const std::vector<api::Gateway>& gateways,
                                    const std::vector<std::string>& remote_clusters) {
  ConnectionReport report;
  std::map<std::pair<std::string, std::string>, api::ConnectionSummary> best;
  std::set<std::string> known(remote_clusters.begin(), remote_clusters.end());
  std::set<std::string> connected;
  for (const api::Gateway& gateway : gateways) {
    report.gateways.push_back({gateway.metadata.name, gateway.status.ha_status});
    for (const api::Connection& connection : gateway.status.connections) {
      api::ConnectionSummary summary = summary_of(connection);
      known.insert(summary.cluster);
      if (summary.status == api::ConnectionStatus::connected) connected.insert(summary.cluster);
      const std::pair key(summary.cluster, summary.gateway);
      const auto found = best.find(key);
      if (found == best.end() || rank(found->second.status) < rank(summary.status))
        best.insert_or_assign(key, std::move(summary));
    }
  }
  known.erase(std::string(own_cluster));
  for (auto& [key, summary] : best)
    report.connections.push_back(std::move(summary));
  std::vector<std::string> missing;
  std::ranges::set_difference(known, connected, std::back_inserter(missing));
  report.summary = fmt::format("{}/{}", known.size() - missing.size(), known.size());
  report.step = connections_step(known.size() - missing.size(), known, missing);
  return report;
}

bool worth_writing(const api::FabricStatus& last, const api::FabricStatus& next) {
  const auto without_times = [](api::FabricStatus status) {
    for (auto& connection : status.connections)
      connection.rtt.clear();
    for (auto& condition : status.conditions)
      condition.last_transition_time.reset();
    return status;
  };
  return without_times(last) != without_times(next);
}

UninstallProgress uninstall_progress(std::string_view component, std::string_view token,
                                     const std::vector<std::string>& nodes,
                                     const std::map<std::string, std::string>& cleaned) {
  UninstallProgress progress;
  const std::string wanted = fmt::format("{}@{}", component, token);
  for (const std::string& node : nodes) {
    const auto found = cleaned.find(node);
    if (found == cleaned.end() || found->second != wanted) progress.waiting.push_back(node);
  }
  if (!progress.waiting.empty()) {
    progress.message =
        fmt::format("waiting until {} has cleaned node{} {}; repair a node that is down, or delete its Node object",
                    component, progress.waiting.size() == 1 ? "" : "s", fmt::join(progress.waiting, ", "));
  }
  return progress;
}

}  // namespace fabric::operators
