#include <fabric/gateway/traffic.hpp>

namespace fabric::gateway {

TrafficMeter::Counted TrafficMeter::grown(const netstate::SaKey& key, const netstate::SaCounters& counters) {
  Counted& last = last_[key];
  // A counter that went back belongs to an SA that somebody else put in place of ours.
  const Counted more{.bytes = counters.bytes < last.bytes ? 0 : counters.bytes - last.bytes,
                     .packets = counters.packets < last.packets ? 0 : counters.packets - last.packets};
  last = {.bytes = counters.bytes, .packets = counters.packets};
  return more;
}

void TrafficMeter::count(const SaMemory& memory, const std::map<netstate::SaKey, netstate::Sa>& observed) {
  std::erase_if(last_, [&](const auto& entry) { return !observed.contains(entry.first); });
  const auto counters = [&](const netstate::SaKey& key) -> const netstate::SaCounters* {
    const auto found = observed.find(key);
    return found == observed.end() || !found->second.counters ? nullptr : &*found->second.counters;
  };
  for (const auto& [pair, made] : memory.made) {
    Traffic& sum = traffic_[pair.peer];
    const netstate::SaKey in{made.path.local, made.inbound_spi};
    if (const auto* found = made.inbound ? counters(in) : nullptr) {
      const auto more = grown(in, *found);
      sum.rx_bytes += more.bytes;
      sum.rx_packets += more.packets;
    }
    const netstate::SaKey out{made.path.remote, made.outbound_spi};
    if (const auto* found = made.outbound ? counters(out) : nullptr) {
      const auto more = grown(out, *found);
      sum.tx_bytes += more.bytes;
      sum.tx_packets += more.packets;
    }
  }
}

Traffic TrafficMeter::of(const crypto::GatewayId& id) const {
  const auto found = traffic_.find(id);
  return found == traffic_.end() ? Traffic{} : found->second;
}

}  // namespace fabric::gateway
