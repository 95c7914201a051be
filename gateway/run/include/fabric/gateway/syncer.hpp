#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/controller/store.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/kube/client.hpp>

#include <map>
#include <string>
#include <vector>

namespace fabric::gateway {

/// What the local copies of other clusters' objects should be, and which copies are to go. Pure.
struct CopyPlan {
  std::vector<api::Endpoint> endpoints;  ///< To be written.
  std::vector<api::Cluster> clusters;
  std::vector<kube::ObjectKey> stale_endpoints;
  std::vector<kube::ObjectKey> stale_clusters;
};

struct CopyInputs {
  std::string own_cluster;
  std::string ns;  ///< Of the local copies.
  controller::Store<api::Endpoint>::Snapshot broker_endpoints;
  controller::Store<api::Cluster>::Snapshot broker_clusters;
  controller::Store<api::Endpoint>::Snapshot local_endpoints;
  controller::Store<api::Cluster>::Snapshot local_clusters;
  const Membership* membership = nullptr;
  bool broker_known = true;  ///< Otherwise, as after a start without a broker, no copy counts as stale.
  std::map<std::string, std::vector<net::Cidr>> carried;  ///< Prefixes that the policies carry, by cluster.
};

/// Only what was verified is copied, whichever way it came, with the prefixes that are carried: a gateway that starts
/// while the broker is away goes on with the copies. A copy goes when its owner is no known peer
/// any more: a broker that lost its objects is no reason to forget anybody (see Membership::note_absent).
CopyPlan plan_copies(const CopyInputs& inputs);

/// Carries a CopyPlan out; the first error is returned, the rest is tried all the same.
async::Task<Result<void>> write_copies(kube::Client& local, CopyPlan plan);

}  // namespace fabric::gateway
