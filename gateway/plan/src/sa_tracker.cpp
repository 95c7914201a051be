#include <fabric/gateway/sa_plan.hpp>

namespace fabric::gateway {

std::map<netstate::SaKey, ObservedSa> SaTracker::track(const std::map<netstate::SaKey, netstate::Sa>& observed,
                                                       TimePoint now) {
  std::map<netstate::SaKey, ObservedSa> out;
  std::erase_if(counted_, [&](const auto& entry) { return !observed.contains(entry.first); });
  for (const auto& [key, sa] : observed) {
    const auto packets = sa.counters ? sa.counters->packets : 0;
    auto [entry, is_new] = counted_.try_emplace(key, Counted{.packets = packets, .moved = now});
    auto& counted = entry->second;
    counted.rewound = counted.rewound || packets < counted.packets;
    if (packets != counted.packets) counted.moved = now;
    counted.packets = packets;
    out.emplace(key, ObservedSa{.sa = sa, .idle = now - counted.moved, .rewound = counted.rewound});
  }
  return out;
}

}  // namespace fabric::gateway
