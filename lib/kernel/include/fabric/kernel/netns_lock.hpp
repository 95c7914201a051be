#pragma once

#include <fabric/base/error.hpp>

#include <filesystem>
#include <memory>
#include <string_view>

namespace fabric::kernel {

/// Held until the last copy is dropped or the process ends, however it ends.
using NetnsLock = std::shared_ptr<const void>;

/// What the process that works on netstate::kGatewaySlices of a network namespace holds.
inline constexpr std::string_view kGatewaySlicesLock = "gateway-slices";
/// Where the agents of a node meet: mounted into their containers, and writable by root only, so that nobody else can
/// hold a lock against them.
inline constexpr std::string_view kLockDirectory = "/run/fabric";

/// Takes the lock of this name for the calling thread's network namespace, which is what xfrm state belongs to as well:
/// an flock(2) on a file of the directory, whose name ends with the namespace's inode. The file stays.
/// Errc::unavailable while another process holds it; every error names the file.
Result<NetnsLock> take_netns_lock(std::string_view name, const std::filesystem::path& directory = kLockDirectory);

}  // namespace fabric::kernel
