#pragma once

#include <fabric/broker/join.hpp>

#include <optional>
#include <string_view>

/// How members get new PSKs: in their answer, ConfigMap fabric-member-<id>.
///
///   psk-<n>                          PSK n, sealed to the member's join key, with a MAC by PSK n-1
///   pskNumber, pskValid, pskMac      number of the newest PSK, and whether one or two are valid, with a MAC by it
///
/// A member goes from the PSK that it holds to the newest one step by step, each proved by the one before it: nobody
/// who holds no PSK of the federation can make a step, and only the member can open one. Steps stay after their
/// rotation, so that a member that was away during all of it comes back by itself. Pure.
namespace fabric::broker {

/// A member that was away for more rotations than this has to copy broker-info again.
inline constexpr std::uint32_t kKeptPskSteps = 16;

/// The answer with everything that leads its member to `bundle`; absent when it is there already. Errc::invalid for an
/// answer that none of the bundle's PSKs vouches for, since its join key may be anybody's.
Result<std::optional<ConfigData>> deliver_psks(crypto::Entropy& entropy, const crypto::PskBundle& bundle,
                                               std::string_view cluster_id, const ConfigData& answer);

/// The bundle to which the answer leads from `held`, which may be the same. An answer of a broker that delivers none
/// leads nowhere. Errc::invalid when it is for another join key, was forged or changed, would lead back to a lower
/// number, or when a step is missing; `held` goes on being right then.
Result<crypto::PskBundle> follow_psks(const crypto::PskBundle& held, std::string_view cluster_id,
                                      const crypto::X25519KeyPair& join_key, const ConfigData& answer);

}  // namespace fabric::broker
