#pragma once

#include <fabric/api/fabric.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/base/time.hpp>
#include <fabric/json/value.hpp>

#include <string>
#include <vector>

/// What `fabricctl status` says, from objects as the API server has them. Pure.
namespace fabric::ctl {

struct ClusterView {
  std::vector<api::Fabric> fabrics;
  std::vector<api::Gateway> gateways;
  TimePoint now;
};

/// Ready of the spec that is there now, and not being deleted.
bool is_ready(const api::Fabric& fabric);

/// At least one Fabric, and every one is ready.
bool is_ready(const ClusterView& cluster);

/// Whether a person need not look at this condition. Most say that something is done; Reconciling, Stalled and
/// UnsupportedFields say that something is not.
bool is_fine(const api::Condition& condition);

/// For people. `verbose` shows conditions that are fine, too.
std::string status_text(const ClusterView& cluster, bool verbose);

/// For programs: {ready, fabrics, gateways} with the objects in the form of their APIs.
json::Value status_document(const ClusterView& cluster);

}  // namespace fabric::ctl
