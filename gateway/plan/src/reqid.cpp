#include <fabric/gateway/reqid.hpp>
#include <fabric/netstate/ownership.hpp>

namespace fabric::gateway {

namespace {

constexpr std::uint32_t kLowBits = ~netstate::kReqidMask;

/// FNV-1a of 32 bits, folded to 24 as its authors advise for sizes that are no power of the offset basis.
std::uint32_t hash24(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text)
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  return (hash >> 24) ^ (hash & kLowBits);
}

}  // namespace

std::map<std::string, netstate::Reqid> assign_reqids(const std::set<std::string>& cluster_ids) {
  std::map<std::string, netstate::Reqid> out;
  std::set<std::uint32_t> taken{0};
  for (const auto& id : cluster_ids) {
    auto low = hash24(id);
    while (!taken.insert(low).second)
      low = (low + 1) & kLowBits;
    out.emplace(id, netstate::Reqid(netstate::kReqidBase | low));
  }
  return out;
}

}  // namespace fabric::gateway
