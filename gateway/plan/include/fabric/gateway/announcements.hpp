#pragma once

#include <fabric/crypto/record.hpp>

#include <map>
#include <optional>
#include <span>

/// What peers have proved about themselves. Objects of the API server become this only through accept().
namespace fabric::gateway {

/// One gateway's announcement as an Endpoint carries it, decoded from base64 and not yet believed.
struct RawAnnouncement {
  std::vector<crypto::Bytes> keys;  ///< One or two key records.
  crypto::Bytes state;
};

/// Reads names::kKeysConfig and kStateConfig of backend_config; malformed when one is absent or not base64.
crypto::Checked<RawAnnouncement> read_backend_config(const std::map<std::string, std::string>& config);
/// Writes them; `keys` in ascending generations.
std::map<std::string, std::string> write_backend_config(std::span<const crypto::AnnouncedKey> keys,
                                                        const crypto::AnnouncedState& state);

/// A peer gateway that was verified.
struct Peer {
  std::vector<crypto::AnnouncedKey> keys;  ///< Ascending generations of one instance.
  crypto::AnnouncedState state;
  std::optional<TimePoint> deleted;  ///< When its Endpoint vanished; not an order to drop SAs.
  bool operator==(const Peer&) const = default;
};

using Peers = std::map<crypto::GatewayId, Peer>;

/// Verifies an announcement and puts it in, unless it is older than what is known: generations and counters of a
/// gateway never go back. On a reject `peers` is unchanged. `expected.owner` must be set.
///
/// A PSK that was dropped takes back nothing that was accepted: a key record that is known already, byte by byte, is
/// not verified again, and an older one of which no PSK is held is left out, if the newest one and the state are good.
crypto::Checked<void> accept(Peers& peers, const RawAnnouncement& raw, const crypto::PskSet& psks,
                             const crypto::Expected& expected);

/// Marks a peer whose Endpoint is gone; it stays until forget_gone().
void mark_deleted(Peers& peers, const crypto::GatewayId& id, TimePoint now);
/// Erases peers that said they leave and whose Endpoint is gone, and those that were deleted longer ago than `keep`
/// (the hard lifetime of SAs).
void forget_gone(Peers& peers, TimePoint now, Duration keep);

}  // namespace fabric::gateway
