#pragma once

#include <fabric/api/fabric.hpp>
#include <fabric/base/error.hpp>
#include <fabric/json/value.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Replacing the pre-shared key of all clusters, as Fabric.spec.brokerConfig.pskNumber asks for it. Pure.
namespace fabric::ctl {

/// The Fabric that makes this cluster the broker. Errc::not_found when there is none, Errc::invalid when several might
/// be meant; `where` names what was searched ("in any namespace").
Result<api::Fabric> broker_fabric(const std::vector<api::Fabric>& fabrics, std::string_view where);

/// Whether a rotation was asked for and has not ended.
bool is_rotating(const api::Fabric& fabric);

/// The number of the PSK that is current: 1 before the first rotation.
std::int64_t current_psk(const api::Fabric& fabric);

/// "PSK 2 is current", or how far the rotation is and for whom it waits; empty when this is no broker.
std::string describe_rotation(const api::Fabric& fabric);

struct Rotation {
  std::int64_t from = 1;
  std::int64_t to = 2;
  json::Value patch;  ///< Merge patch, refused by the API server if somebody changed the Fabric meanwhile.
};

/// Errc::conflict while a rotation runs; the message names the clusters that it waits for.
Result<Rotation> plan_rotation(const api::Fabric& fabric);

/// Whether the PSK with this number is current and alone.
bool is_rotated_to(const api::Fabric& fabric, std::int64_t number);

}  // namespace fabric::ctl
