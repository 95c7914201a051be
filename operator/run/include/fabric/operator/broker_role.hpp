#pragma once

#include <fabric/api/fabric.hpp>
#include <fabric/operator/environment.hpp>
#include <fabric/operator/objects.hpp>
#include <fabric/operator/status.hpp>

#include <string>
#include <vector>

namespace fabric::operators {

/// What a reconcile of one role found.
struct RoleOutcome {
  std::vector<Step> steps;
  Duration requeue{0};                ///< Zero: only when something changes.
  std::vector<std::string> events;    ///< What changed just now, for people.
  std::vector<std::string> warnings;  ///< The same, of what somebody has to look after.
};

/// brokerConfig: namespace, definitions, accounts and policies, the PSK (drawn once), broker-info, and the requests of
/// clusters that want to join or leave. Fills the broker's part of the status.
Task<RoleOutcome> reconcile_broker(Environment& env, api::Fabric fabric, api::FabricStatus& status);

/// Removes what reconcile_broker made, once no member is left. The namespace, the definitions and members' objects in
/// the same cluster stay.
Task<RoleOutcome> uninstall_broker(Environment& env, api::Fabric fabric);

/// The URL under which members reach our API server: configured, or the one of ConfigMap kube-public/cluster-info, or
/// an address of the EndpointSlices of Service default/kubernetes, which is the API server's own and not the Service's.
Task<Result<std::string>> public_api_server_url(kube::Client& client, std::string configured);

}  // namespace fabric::operators
