#include <fabric/base/assert.hpp>
#include <fabric/netstate/script.hpp>

#include <cstdint>
#include <span>

#include "codec.hpp"

/// Payloads of an xfrm dump. The kernel is the only sender, yet other versions of it send other attributes: whatever
/// comes, nothing is read beyond the end, and what was understood can be described.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fabric;
  const std::span<const std::uint8_t> payload(data, size);
  if (const auto sa = kernel::xfrm::parse_sa(payload)) {
    FABRIC_ASSERT(sa->sa.key == nullptr);
    FABRIC_ASSERT(!netstate::describe({netstate::Phase::inbound_sas, netstate::Verb::remove, *sa}).empty());
  }
  if (const auto policy = kernel::xfrm::parse_policy(payload)) {
    FABRIC_ASSERT(policy->key.src.family() == policy->key.dst.family());
    FABRIC_ASSERT(!netstate::describe({netstate::Phase::esp_policies, netstate::Verb::remove, *policy}).empty());
  }
  return 0;
}
