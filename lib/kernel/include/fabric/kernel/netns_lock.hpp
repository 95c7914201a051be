#pragma once

#include <fabric/base/error.hpp>

#include <memory>
#include <string_view>

namespace fabric::kernel {

/// Held until the last copy is dropped or the process ends, however it ends.
using NetnsLock = std::shared_ptr<const void>;

/// What the process that works on netstate::kGatewaySlices of a network namespace holds.
inline constexpr std::string_view kGatewaySlicesLock = "fabric/gateway-slices";

/// Takes the lock of this name in the calling thread's network namespace, which is what xfrm state belongs to as well.
/// An abstract Unix socket: no file is left behind, and containers on the host network meet without a shared folder.
/// Errc::unavailable while another process holds it. See unix(7).
Result<NetnsLock> take_netns_lock(std::string_view name);

}  // namespace fabric::kernel
