#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/gateway/key_ring.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/kube/client.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fabric::gateway {

/// What this gateway tells others beside its keys.
struct Situation {
  std::vector<net::IpAddress> private_addresses;  ///< InternalIPs of the node; the first names the cable.
  std::vector<net::IpAddress> public_addresses;
  std::vector<net::Cidr> service_prefixes;
  std::vector<net::Cidr> pod_prefixes;
  std::vector<net::IpAddress> health_check;  ///< Addresses of the node in the pod network.
  bool nat = false;
  bool leaving = false;
  bool operator==(const Situation&) const = default;
};

/// What this gateway says, signed. The same bytes go to the broker and through the tunnel.
struct Announcement {
  Publication publication;
  Situation situation;
  std::vector<crypto::AnnouncedKey> keys;
  crypto::AnnouncedState state;
  api::Endpoint endpoint;
};

/// Writes this gateway's Endpoint at the broker, where the others read it, and locally, where route agents and the next
/// start of this gateway do. What left counts as published, by the broker or through the tunnel, also before there is
/// an answer: somebody may know it from then on. Belongs to the io thread.
class Announcer {
 public:
  Announcer(const Options& options, KeyRing& ring, kube::Client& local, kube::Client& broker,
            std::string broker_namespace)
      : options_(options),
        ring_(ring),
        local_(local),
        broker_(broker),
        broker_namespace_(std::move(broker_namespace)) {}

  /// Signs a new state record, unless this is what was worded last.
  Result<void> word(const Publication& publication, const Situation& situation);

  /// What was worded last; null before.
  const Announcement* worded() const { return worded_.get(); }

  /// Words this and writes it at the broker. Success means that the broker has it; the local Endpoint is due from then
  /// on. Other things may be worded and leave meanwhile; one call at a time.
  async::Task<Result<void>> publish(Publication publication, Situation situation);

  /// What was worded last left through the tunnel. True when it counts as published only now.
  bool note_left();

  /// Whether the broker does not have what was published last.
  bool broker_lags() const { return published_counter_ != broker_counter_; }

  /// Generations that were published through the tunnel and that the broker does not have.
  std::set<crypto::Generation> tunnel_only() const;

  /// Whether the local Endpoint lags behind what was published.
  bool local_due() const { return local_due_; }

  /// Writes the local Endpoint as it was worded last.
  async::Task<Result<void>> write_local();

  const std::optional<Publication>& published() const { return published_; }

  /// Whether what was last published says this.
  bool says(const Situation& situation) const { return situation_ == situation; }

  /// The Endpoint as last worded; null before.
  const api::Endpoint* endpoint() const { return worded_ ? &worded_->endpoint : nullptr; }

 private:
  Result<Announcement> build(const Publication& publication, const Situation& situation);
  bool note_published(const Announcement& said);

  const Options& options_;
  KeyRing& ring_;
  kube::Client& local_;
  kube::Client& broker_;
  std::string broker_namespace_;
  std::shared_ptr<const Announcement> worded_;
  std::optional<Publication> published_;
  std::optional<Publication> at_broker_;
  std::optional<Situation> situation_;   ///< As published.
  std::uint64_t published_counter_ = 0;  ///< Of the state records.
  std::uint64_t broker_counter_ = 0;
  bool local_due_ = false;
};

}  // namespace fabric::gateway
