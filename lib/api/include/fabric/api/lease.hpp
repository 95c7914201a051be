#pragma once

#include <fabric/api/meta.hpp>
#include <fabric/json/time.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

namespace fabric::api {

/// coordination.k8s.io/v1.
struct LeaseSpec {
  std::string holder_identity;
  std::optional<std::int32_t> lease_duration_seconds;
  std::optional<json::MicroTime> acquire_time;
  std::optional<json::MicroTime> renew_time;
  std::optional<std::int32_t> lease_transitions;
  bool operator==(const LeaseSpec&) const = default;
};

struct Lease {
  static constexpr Gvk kGvk{"coordination.k8s.io", "v1", "Lease", "leases", true};
  ObjectMeta metadata;
  LeaseSpec spec;
  bool operator==(const Lease&) const = default;
};

}  // namespace fabric::api

namespace fabric::json {

template <>
struct Schema<api::LeaseSpec> {
  static auto fields() {
    using T = api::LeaseSpec;
    // An empty holder is written, since that is how a lease is released.
    return std::tuple{always("holderIdentity", &T::holder_identity),
                      optional("leaseDurationSeconds", &T::lease_duration_seconds),
                      optional("acquireTime", &T::acquire_time), optional("renewTime", &T::renew_time),
                      optional("leaseTransitions", &T::lease_transitions)};
  }
};

template <>
struct Schema<api::Lease> {
  static auto fields() {
    using T = api::Lease;
    return std::tuple{optional("metadata", &T::metadata), optional("spec", &T::spec)};
  }
};

extern template struct Codec<api::Lease>;

}  // namespace fabric::json
