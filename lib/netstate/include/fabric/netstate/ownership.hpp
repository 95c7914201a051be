#pragma once

#include <fabric/netstate/state.hpp>

#include <cstdint>
#include <string_view>

/// The marks by which a restarted agent recognises what is ours. Everything else in the kernel is foreign: it is never
/// read into a plan and never touched.
namespace fabric::netstate {

/// SAs and ESP policies: reqid 0x46000000..0x46ffffff ('F' in the first byte), one number per remote cluster.
inline constexpr std::uint32_t kReqidBase = 0x46000000;
inline constexpr std::uint32_t kReqidMask = 0xff000000;

constexpr bool is_ours(std::uint32_t reqid) {
  return (reqid & kReqidMask) == kReqidBase;
}

/// Policies: these priorities. A block policy has no template, so a reqid cannot mark it.
inline constexpr std::uint32_t kProbePriority = 460'000;  ///< Host to host through one certain gateway.
inline constexpr std::uint32_t kEspPriority = 460'100;
inline constexpr std::uint32_t kBlockPriority = 460'200;

/// Routes: rtm_protocol. 70 is unassigned in rtnetlink.h and in /etc/iproute2/rt_protos.
inline constexpr std::uint8_t kRouteProtocol = 70;

/// Links, and with them their FDB entries and neighbours.
inline constexpr std::string_view kVxlanLink = "vx-fabric";
/// VNI and port as Submariner uses them inside a cluster, so that existing firewall rules fit.
inline constexpr std::uint32_t kVxlanVni = 100;
inline constexpr std::uint16_t kVxlanPort = 4800;

/// ipsets and nftables sets, at most 31 bytes (IPSET_MAXNAMELEN).
inline constexpr std::string_view kSetPrefix = "fabric-";
inline constexpr std::string_view kLocalSet4 = "fabric-local-4";
inline constexpr std::string_view kLocalSet6 = "fabric-local-6";
inline constexpr std::string_view kRemoteSet4 = "fabric-remote-4";
inline constexpr std::string_view kRemoteSet6 = "fabric-remote-6";

/// Chains (FABRIC-POSTROUTING, FABRIC-FORWARD, FABRIC-INPUT, FABRIC-MANGLE, FABRIC-CLEAR-TEXT) and the nftables table.
inline constexpr std::string_view kChainPrefix = "FABRIC-";
inline constexpr std::string_view kNftTable = "fabric";

/// Old values of sysctls that we changed, one file each; the folder lives as long as the boot, as the values do.
inline constexpr std::string_view kSysctlStateDirectory = "/run/fabric/sysctl";

}  // namespace fabric::netstate
