#pragma once

#include <fabric/api/names.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

/// Bounds and defaults of a FabricSpec. crd/fabric.yaml states the bounds too; crd_test compares the numbers.
namespace fabric::api::limits {

inline constexpr std::int64_t kMaxPort = 65535;
inline constexpr std::int64_t kMaxHealthCheckSeconds = 3600;
inline constexpr std::int64_t kMaxPacketLoss = 1000;

// The agents draw at most two generations per minute, and an SA ends hard after 24 hours.
inline constexpr std::chrono::seconds kMinRekey{60};
inline constexpr std::chrono::seconds kMaxRekey{12 * 3600};

// Below, gateways would rekey as often as they may at any load; above, 2^35 packets is half of the hard limit of an SA.
inline constexpr std::int64_t kMinRekeyPackets = 1000;
inline constexpr std::int64_t kMaxRekeyPackets = std::int64_t{1} << 35;
inline constexpr std::int64_t kMinRekeyBytes = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxRekeyBytes = std::int64_t{1} << 50;

inline constexpr std::array<std::string_view, 2> kCipherSuites{names::kAes256Gcm, names::kChaCha20Poly1305};

// PSKs are numbered from 1 in 32 bits.
inline constexpr std::int64_t kMaxPskNumber = 4294967295;

// Submariner's default range and size. Its operators wrote 65336 for 65536; rounding up to a power of two mends that.
inline constexpr std::string_view kGlobalnetRange = "242.0.0.0/8";
inline constexpr std::int64_t kGlobalnetClusterSize = 65536;

}  // namespace fabric::api::limits
