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

  /// Pins the identities of clusters whose annotation carries a right MAC. A second identity of a cluster is refused
  /// and counted; it takes the place of the first by renew_pins() only.
  void read_clusters(const controller::Store<api::Cluster>& clusters);
  /// Verifies announcements of other clusters that changed since the last call.
  void read_endpoints(const controller::Store<api::Endpoint>& endpoints, TimePoint now);

  struct Taken {
    crypto::GatewayId owner;
    std::uint64_t counter = 0;  ///< StateRecord::counter of what is known of it now.
    bool news = false;
  };

  /// Takes an announcement that came from another gateway: verified like that of an object, against the same
  /// generations and counters. An older one than what is known is right and no news.
  crypto::Checked<Taken> take(const RawAnnouncement& raw, TimePoint now);
  /// Marks peers whose announcement stands in none of these stores, takes the mark off those that are back, and forgets
  /// those whose time is over. Copies are no proof of presence: pass originals.
  void note_absent(const std::vector<const controller::Store<api::Endpoint>*>& stores, TimePoint now, Duration keep);
  /// A cluster of which no peer is left (it said good-bye, or was away for too long) may come back with another
  /// identity. To be called after note_absent(), with the store of the originals.
  void renew_pins(const controller::Store<api::Cluster>& clusters);

  const Peers& peers() const { return peers_; }

  /// All clusters that gateways belong to.
  std::set<std::string> clusters() const;
  /// What the Endpoint of an accepted announcement says to people. It is not signed, and is never of a refused one.
  const api::EndpointSpec* endpoint_of(const crypto::GatewayId& id) const;
  /// The name of that Endpoint; null when the peer is not known.
  const std::string* endpoint_name_of(const crypto::GatewayId& id) const;

  bool is_pinned(const std::string& cluster) const { return identities_.contains(cluster); }

  /// Whether this object shows the pinned identity of its cluster, with a right MAC.
  bool shows_pin(const api::Cluster& cluster) const;

  /// Last refusals by Endpoint name, for the status.
  const std::map<std::string, std::string>& refused() const { return refused_; }

 private:
  using Source = const controller::Store<api::Endpoint>*;
  using ReadKey = std::pair<Source, kube::ObjectKey>;

  struct Described {
    std::string name;
    api::EndpointSpec spec;
  };

  void read_endpoint(const ReadKey& key, const api::Endpoint& endpoint, TimePoint now);
  void reject(const ReadKey& key, const api::Endpoint& endpoint, crypto::Reject reason);
  void refuse_identity(const std::string& cluster, const crypto::Ed25519Public& identity);

  std::string own_cluster_;
  const crypto::PskSet& psks_;
  telemetry::Registry& metrics_;
  std::map<std::string, crypto::Ed25519Public> identities_;
  Peers peers_;
  std::map<std::string, crypto::Ed25519Public> refused_identities_;  ///< The last one per cluster.
  std::map<crypto::GatewayId, Described> specs_;
  std::set<ReadKey> foreign_;            ///< Objects whose announcement was refused.
  std::map<ReadKey, std::string> read_;  ///< The keys and state last looked at.
  std::map<std::string, std::string> refused_;
};

}  // namespace fabric::gateway
