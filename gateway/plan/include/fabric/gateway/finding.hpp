#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace fabric::gateway {

enum class FindingKind : std::uint8_t {
  no_path,         ///< A peer shows no address that we can reach from ours.
  not_derivable,   ///< No PSK or suite in common with a peer, or a refused public key.
  sa_lost,         ///< An SA that we installed is gone or was replaced by somebody.
  spi_clash,       ///< Two SAs would have the same SPI at the same address.
  prefix_overlap,  ///< A prefix of a remote cluster overlaps ours or another cluster's, and is not carried.
  no_gateway,      ///< A remote cluster has prefixes and no gateway to carry them.
  old_generation,  ///< Half of the hard lifetime is over and no newer generation could be published.
};

std::string_view to_string(FindingKind kind);

/// Something that a person should know. Shells turn findings into conditions, events and metrics.
struct Finding {
  FindingKind kind = FindingKind::no_path;
  std::string subject;  ///< A cluster, or cluster/gateway.
  std::string message;  ///< Names object, value and remedy.
  auto operator<=>(const Finding&) const = default;
};

}  // namespace fabric::gateway
