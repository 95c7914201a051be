#include <fabric/ctl/psk_rotation.hpp>

#include <fmt/format.h>

namespace fabric::ctl {

namespace {

constexpr std::string_view kRotatedCondition = "PSKRotated";

std::int64_t wanted_psk(const api::Fabric& fabric) {
  return fabric.spec.broker_config->psk_number.value_or(current_psk(fabric));
}

bool is_broker(const api::Fabric& fabric) {
  return fabric.spec.broker_config.has_value();
}

/// "2 of 3 clusters are ready, waiting for west".
std::string progress(const api::PskRotationStatus& status) {
  std::string out = fmt::format("{} of {} clusters are ready", status.members_ready, status.members_total);
  if (!status.waiting_for.empty()) out += fmt::format(", waiting for {}", fmt::join(status.waiting_for, ", "));
  return out;
}

bool is_running(const api::Fabric& fabric) {
  return fabric.status.psk_rotation && fabric.status.psk_rotation->phase == api::PskPhase::rotating;
}

/// The operator's own words about a number that it does not act on.
std::string complaint(const api::Fabric& fabric) {
  const api::Condition* condition = api::find_condition(fabric.status.conditions, kRotatedCondition);
  if (condition == nullptr || condition->status == api::ConditionStatus::yes) return "the operator has not begun";
  return condition->message;
}

}  // namespace

Result<api::Fabric> broker_fabric(const std::vector<api::Fabric>& fabrics, std::string_view where) {
  const api::Fabric* found = nullptr;
  for (const api::Fabric& each : fabrics) {
    if (!is_broker(each)) continue;
    if (found != nullptr) {
      return fail(Errc::invalid,
                  "{} and {} have spec.brokerConfig, and a cluster is one broker: delete one, or choose one with "
                  "--namespace",
                  api::describe(*found), api::describe(each));
    }
    found = &each;
  }
  if (found != nullptr) return *found;
  return fail(Errc::not_found,
              "no Fabric {} of this cluster has spec.brokerConfig: the PSK is rotated at the broker; choose its "
              "cluster with --context or --kubeconfig",
              where);
}

std::int64_t current_psk(const api::Fabric& fabric) {
  return fabric.status.psk_rotation ? fabric.status.psk_rotation->number : 1;
}

bool is_rotating(const api::Fabric& fabric) {
  return is_broker(fabric) && (is_running(fabric) || wanted_psk(fabric) != current_psk(fabric));
}

std::string describe_rotation(const api::Fabric& fabric) {
  if (!is_broker(fabric)) return {};
  const std::int64_t current = current_psk(fabric);
  if (is_running(fabric)) {
    return fmt::format("PSK {} replaces PSK {}: {}", current, current - 1, progress(*fabric.status.psk_rotation));
  }
  if (wanted_psk(fabric) != current) {
    return fmt::format("PSK {} is current, PSK {} was asked for: {}", current, wanted_psk(fabric), complaint(fabric));
  }
  return fmt::format("PSK {} is current", current);
}

Result<Rotation> plan_rotation(const api::Fabric& fabric) {
  if (is_rotating(fabric)) {
    return fail(Errc::conflict,
                "{}: a rotation runs already: {}; start the next one when it has ended (rotate-psk --status)",
                api::describe(fabric), describe_rotation(fabric));
  }
  Rotation out;
  out.from = current_psk(fabric);
  out.to = out.from + 1;
  out.patch["metadata"]["resourceVersion"] = fabric.metadata.resource_version;
  out.patch["spec"]["brokerConfig"]["pskNumber"] = out.to;
  return out;
}

bool is_rotated_to(const api::Fabric& fabric, std::int64_t number) {
  return current_psk(fabric) >= number && !is_rotating(fabric);
}

}  // namespace fabric::ctl
