#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/script.hpp>
#include <fabric/netstate/state.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <linux/xfrm.h>

#include "netlink.hpp"

/// Our vocabulary to and from XFRM messages (linux/xfrm.h). Pure.
namespace fabric::kernel::xfrm {

/// AES-128 and a salt of 4 bytes, in static tunnels only.
inline constexpr std::size_t kShortKeyMaterialBytes = 20;

xfrm_address_t to_kernel(const net::IpAddress& address);
std::uint16_t to_kernel(net::Family family);
/// Nothing for families other than AF_INET and AF_INET6.
std::optional<net::IpAddress> from_kernel(const xfrm_address_t& address, std::uint16_t family);

/// Appends one request to a batch; on an error the batch is as before.
Result<void> encode_add(Batch& batch, const netstate::SaObject& object);
/// For StaticTunnel alone: no ESN, which an SA made by hand lacks, and AES-128 as well. Refuses reqids of ours.
Result<void> encode_add_static(Batch& batch, const netstate::SaObject& object);
void encode_remove(Batch& batch, const netstate::SaKey& key);
/// `replace` takes the place of a policy with the same selector; otherwise that is refused with EEXIST.
Result<void> encode_put(Batch& batch, const netstate::PolicyObject& object, bool replace);
Result<void> encode_remove(Batch& batch, const netstate::PolicyKey& key);
Result<void> encode_get(Batch& batch, const netstate::PolicyKey& key);

/// The payload of a XFRM_MSG_NEWSA; nothing when it is not one of ours: reqid out of our range, not ESP in tunnel mode,
/// another algorithm, or a larval state. Never reads the key.
std::optional<netstate::SaObject> parse_sa(std::span<const std::uint8_t> payload);

/// The payload of a XFRM_MSG_NEWPOLICY; nothing when it is not one of ours.
std::optional<netstate::PolicyObject> parse_policy(std::span<const std::uint8_t> payload);

}  // namespace fabric::kernel::xfrm
