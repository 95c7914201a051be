#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/gateway/key_ring.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/kube/client.hpp>

#include <optional>
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

/// Writes this gateway's Endpoint: first at the broker, where the others read it, then locally, where route agents and
/// the next start of this gateway do. Belongs to the io thread.
class Announcer {
 public:
  Announcer(const Options& options, KeyRing& ring, kube::Client& local, kube::Client& broker,
            std::string broker_namespace)
      : options_(options),
        ring_(ring),
        local_(local),
        broker_(broker),
        broker_namespace_(std::move(broker_namespace)) {}

  /// Signs a new state record and writes it at the broker. Success means that the broker has it; the local Endpoint is
  /// due from then on.
  async::Task<Result<void>> publish(Publication publication, Situation situation);

  /// Whether the local Endpoint lags behind what the broker has.
  bool local_due() const { return local_due_; }

  /// Writes the local Endpoint as it was last written at the broker.
  async::Task<Result<void>> write_local();

  const std::optional<Publication>& published() const { return published_; }

  /// Whether what was last published says this.
  bool says(const Situation& situation) const { return situation_ == situation; }

  /// The Endpoint as last written at the broker; null before.
  const api::Endpoint* endpoint() const { return endpoint_ ? &*endpoint_ : nullptr; }

 private:
  Result<api::Endpoint> build(const Publication& publication, const Situation& situation);

  const Options& options_;
  KeyRing& ring_;
  kube::Client& local_;
  kube::Client& broker_;
  std::string broker_namespace_;
  std::optional<Publication> published_;
  std::optional<Situation> situation_;
  std::optional<api::Endpoint> endpoint_;
  bool local_due_ = false;
};

}  // namespace fabric::gateway
