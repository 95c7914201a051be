#pragma once

#include <fabric/api/core.hpp>
#include <fabric/base/error.hpp>

#include <string>
#include <vector>

namespace fabric::ctl {

struct BrokerInfoManifest {
  std::string yaml;  ///< Holds secrets: the pre-shared key and the token that asks to join.
  std::vector<std::string> warnings;
};

/// The broker-info of a broker as a person carries it to a joining cluster: Namespace and ConfigMap for `kubectl apply
/// -f -`, without what the broker's API server added. Errc::invalid when the ConfigMap could not be joined with; the
/// message quotes no secret. Pure.
Result<BrokerInfoManifest> broker_info_manifest(const api::ConfigMap& config_map);

}  // namespace fabric::ctl
