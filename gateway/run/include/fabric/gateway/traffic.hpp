#pragma once

#include <fabric/gateway/sa_plan.hpp>

#include <cstdint>
#include <map>

namespace fabric::gateway {

/// What was carried between this gateway and another one since the start of the process.
struct Traffic {
  std::uint64_t rx_bytes = 0;
  std::uint64_t rx_packets = 0;
  std::uint64_t tx_bytes = 0;
  std::uint64_t tx_packets = 0;
  bool operator==(const Traffic&) const = default;
};

/// Sums up the counters of SAs that come and go with their generations, so that the sums only grow. What an SA counted
/// between the last look and its end is missed. A value.
class TrafficMeter {
 public:
  void count(const SaMemory& memory, const std::map<netstate::SaKey, netstate::Sa>& observed);

  /// Zero for a gateway of which nothing is known.
  Traffic of(const crypto::GatewayId& id) const;

 private:
  struct Counted {
    std::uint64_t bytes = 0;
    std::uint64_t packets = 0;
  };

  /// What came since the last look.
  Counted grown(const netstate::SaKey& key, const netstate::SaCounters& counters);

  std::map<crypto::GatewayId, Traffic> traffic_;
  std::map<netstate::SaKey, Counted> last_;
};

}  // namespace fabric::gateway
