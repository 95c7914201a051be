#pragma once

#include <fabric/api/condition.hpp>
#include <fabric/api/meta.hpp>

#include <string>
#include <tuple>
#include <vector>

namespace fabric::api {

/// networking.k8s.io/v1 ServiceCIDR, where an API server of 1.33 or newer says its service prefixes.
struct ServiceCidrSpec {
  std::vector<std::string> cidrs;
  bool operator==(const ServiceCidrSpec&) const = default;
};

struct ServiceCidrStatus {
  std::vector<Condition> conditions;
  bool operator==(const ServiceCidrStatus&) const = default;
};

struct ServiceCidr {
  static constexpr Gvk kGvk{"networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", false};
  ObjectMeta metadata;
  ServiceCidrSpec spec;
  ServiceCidrStatus status;
  bool operator==(const ServiceCidr&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct Schema<api::ServiceCidrSpec> {
  static auto fields() { return std::tuple{optional("cidrs", &api::ServiceCidrSpec::cidrs)}; }
};

template <>
struct Schema<api::ServiceCidrStatus> {
  static auto fields() { return std::tuple{optional("conditions", &api::ServiceCidrStatus::conditions)}; }
};

template <>
struct Schema<api::ServiceCidr> {
  static auto fields() {
    using T = api::ServiceCidr;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec), optional("status", &T::status)};
  }
};

}  // namespace fabric::json
