#pragma once

#include <fabric/base/time.hpp>
#include <fabric/gateway/policy_plan.hpp>
#include <fabric/gateway/sa_plan.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

/// What Gateway.status.connections says about a peer, from SAs and in-tunnel pings. Pure.
namespace fabric::gateway {

using RoundTrip = std::chrono::nanoseconds;

struct LatencyStats {
  RoundTrip last{};
  RoundTrip min{};
  RoundTrip average{};
  RoundTrip max{};
  RoundTrip deviation{};
  bool operator==(const LatencyStats&) const = default;
};

/// "1.234567ms", as Go writes a duration.
std::string to_go_duration(RoundTrip value);

/// Echo requests to one health check address, one at a time. The shell sends when due and tells what happened.
class PingMonitor {
 public:
  /// After `max_loss` unanswered requests in a row the address counts as unreachable; one answer makes it reachable.
  explicit PingMonitor(std::uint32_t max_loss) : max_loss_(max_loss) {}

  /// A new request goes out; an unanswered one before it is lost. Returns its sequence number.
  std::uint16_t on_send(std::chrono::nanoseconds now);
  /// An answer; those to another request than the last are ignored, as they were counted as lost.
  void on_reply(std::uint16_t sequence, std::chrono::nanoseconds now);

  Health health() const;

  std::uint32_t consecutive_losses() const { return losses_; }

  const std::optional<LatencyStats>& latency() const { return latency_; }

 private:
  std::uint32_t max_loss_;
  std::uint16_t sequence_ = 0;
  std::optional<std::chrono::nanoseconds> pending_;
  std::uint32_t losses_ = 0;
  std::uint64_t answers_ = 0;
  double mean_ = 0;  ///< Nanoseconds; Welford's running mean and sum of squared differences.
  double squares_ = 0;
  std::optional<LatencyStats> latency_;
};

enum class ConnectionState : std::uint8_t { connecting, connected, error };
std::string_view to_string(ConnectionState state);

struct Connection {
  ConnectionState state = ConnectionState::connecting;
  std::string message;
  std::optional<LatencyStats> latency;
  bool operator==(const Connection&) const = default;
};

struct ConnectionInputs {
  std::string peer;  ///< "cluster/gateway", for messages.
  std::optional<Path> path;
  PeerSas sas;
  bool health_check = false;  ///< Enabled here, and the peer gave an address.
  std::string health_check_address;
  Health health = Health::unknown;
  std::uint32_t consecutive_losses = 0;
  std::optional<LatencyStats> latency;
};

/// error: no path, or pings lost; connected: SAs both ways, and pings answered or not wanted; else connecting.
Connection connection_of(const ConnectionInputs& inputs);

}  // namespace fabric::gateway
