#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/controller/store.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/gateway/announcements.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <map>
#include <set>
#include <string>

namespace fabric::gateway {

/// Who the other clusters and gateways are: pinned identities and verified announcements. Fed with objects of the
/// broker and of the local copies alike; it believes neither, and nothing that it accepted goes back. Belongs to the io
/// thread.
class Membership {
 public:
  Membership(std::string own_cluster, const crypto::PskSet& psks, telemetry::Registry& metrics);

  /// Pins the identities of clusters whose annotation carries a right MAC. A pinned identity is not replaced: a second
  /// one is refused and counted.
  void read_clusters(const controller::Store<api::Cluster>& clusters);
  /// Verifies announcements of other clusters that changed since the last call.
  void read_endpoints(const controller::Store<api::Endpoint>& endpoints, TimePoint now);
  /// Marks peers that stand in neither store, and forgets those whose time is over.
  void note_absent(const std::vector<const controller::Store<api::Endpoint>*>& stores, TimePoint now, Duration keep);

  const Peers& peers() const { return peers_; }

  /// All clusters that gateways belong to.
  std::set<std::string> clusters() const;
  /// What the Endpoint of an accepted announcement says to people.
  const api::EndpointSpec* endpoint_of(const crypto::GatewayId& id) const;

  bool is_pinned(const std::string& cluster) const { return identities_.contains(cluster); }

  /// Last refusals by Endpoint name, for the status.
  const std::map<std::string, std::string>& refused() const { return refused_; }

 private:
  void read_endpoint(const std::string& source, const api::Endpoint& endpoint, TimePoint now);
  void reject(const api::Endpoint& endpoint, crypto::Reject reason);

  std::string own_cluster_;
  const crypto::PskSet& psks_;
  telemetry::Registry& metrics_;
  std::map<std::string, crypto::Ed25519Public> identities_;
  Peers peers_;
  std::map<crypto::GatewayId, api::EndpointSpec> specs_;
  std::map<std::string, std::string> read_;  ///< Source and name to the state and keys last looked at.
  std::map<std::string, std::string> refused_;
};

}  // namespace fabric::gateway
