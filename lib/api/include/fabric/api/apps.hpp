#pragma once

#include <fabric/api/core.hpp>
#include <fabric/api/meta.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

/// apps/v1: only reading; we apply workloads as json::Value manifests.
namespace fabric::api {

struct LabelSelector {
  StringMap match_labels;
  bool operator==(const LabelSelector&) const = default;
};

struct PodTemplate {
  ObjectMeta metadata;
  PodSpec spec;
  bool operator==(const PodTemplate&) const = default;
};

struct DaemonSetSpec {
  LabelSelector selector;
  PodTemplate pod_template;  ///< "template" in JSON.
  bool operator==(const DaemonSetSpec&) const = default;
};

struct DaemonSetStatus {
  std::int64_t observed_generation = 0;
  std::int32_t current_number_scheduled = 0;
  std::int32_t desired_number_scheduled = 0;
  std::int32_t updated_number_scheduled = 0;
  std::int32_t number_ready = 0;
  std::int32_t number_available = 0;
  std::int32_t number_unavailable = 0;
  std::int32_t number_misscheduled = 0;
  bool operator==(const DaemonSetStatus&) const = default;
};

struct DaemonSet {
  static constexpr Gvk kGvk{"apps", "v1", "DaemonSet", "daemonsets", true};
  ObjectMeta metadata;
  DaemonSetSpec spec;
  DaemonSetStatus status;
  bool operator==(const DaemonSet&) const = default;
};

/// The controller has seen the newest spec and every wanted pod is updated and ready.
bool is_rolled_out(const DaemonSet& daemon_set);

struct DeploymentSpec {
  std::optional<std::int32_t> replicas;
  LabelSelector selector;
  PodTemplate pod_template;  ///< "template" in JSON.
  bool operator==(const DeploymentSpec&) const = default;
};

struct DeploymentStatus {
  std::int64_t observed_generation = 0;
  std::int32_t replicas = 0;
  std::int32_t updated_replicas = 0;
  std::int32_t ready_replicas = 0;
  std::int32_t available_replicas = 0;
  std::vector<Condition> conditions;
  bool operator==(const DeploymentStatus&) const = default;
};

struct Deployment {
  static constexpr Gvk kGvk{"apps", "v1", "Deployment", "deployments", true};
  ObjectMeta metadata;
  DeploymentSpec spec;
  DeploymentStatus status;
  bool operator==(const Deployment&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct Schema<api::LabelSelector> {
  static auto fields() { return std::tuple{optional("matchLabels", &api::LabelSelector::match_labels)}; }
};

template <>
struct Schema<api::PodTemplate> {
  static auto fields() {
    using T = api::PodTemplate;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec)};
  }
};

template <>
struct Schema<api::DaemonSetSpec> {
  static auto fields() {
    using T = api::DaemonSetSpec;
    return std::tuple{optional("selector", &T::selector), optional("template", &T::pod_template)};
  }
};

template <>
struct Schema<api::DaemonSetStatus> {
  static auto fields() {
    using T = api::DaemonSetStatus;
    return std::tuple{optional("observedGeneration", &T::observed_generation),
                      optional("currentNumberScheduled", &T::current_number_scheduled),
                      optional("desiredNumberScheduled", &T::desired_number_scheduled),
                      optional("updatedNumberScheduled", &T::updated_number_scheduled),
                      optional("numberReady", &T::number_ready),
                      optional("numberAvailable", &T::number_available),
                      optional("numberUnavailable", &T::number_unavailable),
                      optional("numberMisscheduled", &T::number_misscheduled)};
  }
};

template <>
struct Schema<api::DaemonSet> {
  static auto fields() {
    using T = api::DaemonSet;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec), optional("status", &T::status)};
  }
};

template <>
struct Schema<api::DeploymentSpec> {
  static auto fields() {
    using T = api::DeploymentSpec;
    return std::tuple{optional("replicas", &T::replicas), optional("selector", &T::selector),
                      optional("template", &T::pod_template)};
  }
};

template <>
struct Schema<api::DeploymentStatus> {
  static auto fields() {
    using T = api::DeploymentStatus;
    return std::tuple{
        optional("observedGeneration", &T::observed_generation), optional("replicas", &T::replicas),
        optional("updatedReplicas", &T::updated_replicas),       optional("readyReplicas", &T::ready_replicas),
        optional("availableReplicas", &T::available_replicas),   optional("conditions", &T::conditions)};
  }
};

template <>
struct Schema<api::Deployment> {
  static auto fields() {
    using T = api::Deployment;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec), optional("status", &T::status)};
  }
};

extern template struct Codec<api::DaemonSet>;
extern template struct Codec<api::Deployment>;

}  // namespace fabric::json
