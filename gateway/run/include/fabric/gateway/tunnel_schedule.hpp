#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/gateway/tunnel_frame.hpp>
#include <fabric/net/ip_address.hpp>

#include <map>
#include <optional>
#include <vector>

namespace fabric::gateway {

/// What one peer has to know of this gateway, and where it listens.
struct TunnelTarget {
  crypto::InstanceId instance;  ///< A new one remembers nothing of what the old one confirmed.
  net::IpAddress address;
  std::uint64_t wording = 0;       ///< Changes with keys, addresses and prefixes: what concerns every peer.
  std::vector<crypto::Seen> seen;  ///< What is said of this peer's generations; those of others do not concern it.
  std::uint64_t counter = 0;       ///< Of the announcement that says so now.
  bool operator==(const TunnelTarget&) const = default;
};

/// Who is to be sent to, and when: at once when something that concerns a peer changed, and again with growing pauses
/// until its receipt comes. A value without I/O.
class TunnelSchedule {
 public:
  /// Whom there is to tell what. A target whose message did not change keeps its state.
  void set_targets(const std::map<crypto::GatewayId, TunnelTarget>& targets, async::SteadyTime now);

  /// At most `limit` peers that are due, those that wait longest first. They count as sent to.
  std::vector<crypto::GatewayId> take_due(async::SteadyTime now, std::size_t limit, double random);

  /// A receipt of another instance, or for an older announcement than the peer has to know, changes nothing.
  void note(const Receipt& receipt);

  const TunnelTarget* target(const crypto::GatewayId& peer) const;
  /// When the next one is due; absent when all have confirmed.
  std::optional<async::SteadyTime> next() const;
  std::size_t unconfirmed() const;

 private:
  struct Entry {
    TunnelTarget target;
    std::uint64_t since = 0;  ///< The first counter that said what the peer has to know.
    unsigned sent = 0;
    bool confirmed = false;
    async::SteadyTime due{};
  };

  std::map<crypto::GatewayId, Entry> entries_;
};

/// A budget that refills steadily.
class TokenBucket {
 public:
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  /// False when the budget is spent.
  bool take(async::SteadyTime now);

 private:
  double per_second_;
  double burst_;
  double tokens_;
  std::optional<async::SteadyTime> last_;
};

}  // namespace fabric::gateway
