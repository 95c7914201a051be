#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/controller/store.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/gateway/announcements.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::gateway {

/// Announcements that were refused, for the status.
struct Rejected {
  std::string endpoint;  ///< Name of the object.
  crypto::Reject reason = crypto::Reject::malformed;
  std::uint64_t count = 0;
  auto operator<=>(const Rejected&) const = default;
};

/// fabric_records_rejected_total, of objects and datagrams alike.
telemetry::Counter rejected_records(telemetry::Registry& metrics, std::string_view reason);

/// Pairs of name and reason that are remembered: whoever may write Endpoints can make up names.
inline constexpr std::size_t kMaxRejected = 20;

/// Whose objects a store holds. Local copies lag behind their originals for a moment, which is nothing to report.
enum class Standing : std::uint8_t { originals, copies };

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
  void read_endpoints(const controller::Store<api::Endpoint>& endpoints, TimePoint now,
                      Standing standing = Standing::originals);

  /// The PSKs are others now: what was refused for want of one is looked at again. What was accepted stays: peers and
  /// pins were proved when they came, and a PSK that is gone takes nothing back.
  void psks_changed();

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

  /// Since the start, by name and reason, at most kMaxRejected; the one that was counted least lately makes room.
  std::vector<Rejected> rejected() const;

 private:
  using Source = const controller::Store<api::Endpoint>*;
  using ReadKey = std::pair<Source, kube::ObjectKey>;

  struct Described {
    std::string name;
    api::EndpointSpec spec;
  };

  /// What was last looked at, and what came of it.
  struct Read {
    std::string fingerprint;
    std::optional<crypto::Reject> refused;
  };

  struct Count {
    std::uint64_t times = 0;
    std::uint64_t last = 0;  ///< Position in the order of all rejections.
  };

  /// Of an announcement in the name of `owner`, which outlives it.
  crypto::Expected expected_of(const crypto::GatewayId& owner, TimePoint now) const;
  bool note_read(const ReadKey& key, const api::Endpoint& endpoint);
  crypto::Checked<void> read_endpoint(const ReadKey& key, const api::Endpoint& endpoint, TimePoint now);
  void reject(const ReadKey& key, const api::Endpoint& endpoint, crypto::Reject reason, Standing standing);
  void count(const std::string& endpoint, crypto::Reject reason);
  void refuse_identity(const std::string& cluster, const crypto::Ed25519Public& identity);

  std::string own_cluster_;
  const crypto::PskSet& psks_;
  telemetry::Registry& metrics_;
  std::map<std::string, crypto::Ed25519Public> identities_;
  Peers peers_;
  std::map<std::string, crypto::Ed25519Public> refused_identities_;  ///< The last one per cluster.
  std::map<crypto::GatewayId, Described> specs_;
  std::set<ReadKey> foreign_;  ///< Objects whose announcement was refused.
  std::map<ReadKey, Read> read_;
  std::map<std::string, std::string> refused_;
  std::map<std::pair<std::string, crypto::Reject>, Count> counts_;
  std::uint64_t rejections_ = 0;
};

}  // namespace fabric::gateway
