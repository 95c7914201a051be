#pragma once

#include <fabric/broker/psk_readiness.hpp>
#include <fabric/operator/status.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Decisions about numbered PSKs. Pure.
namespace fabric::operators {

/// The PSKs that are valid at the broker, without themselves.
struct PskFacts {
  std::uint32_t number = 1;
  bool rotating = false;              ///< The one before it is valid, too.
  std::optional<TimePoint> drawn_at;  ///< Of the newest.
};

/// What spec.brokerConfig.pskNumber asks for.
struct RotationDecision {
  bool start = false;
  std::string refusal;  ///< Why a number is not followed; names field, value and remedy.
};

/// One number above the current one starts a rotation, unless one runs. The current one, or none, asks for nothing.
RotationDecision decide_rotation(const PskFacts& psk, std::optional<std::uint32_t> wanted);

/// Whether nobody who is alive needs the previous PSK.
bool may_finish(const PskFacts& psk, const std::vector<broker::MemberPskUse>& members);

api::PskRotationStatus rotation_status(const PskFacts& psk, const std::vector<broker::MemberPskUse>& members);
/// The step PSKRotated. A rotation that runs is `working`; a refused number is `stalled`.
Step rotation_step(const PskFacts& psk, const RotationDecision& decision,
                   const std::vector<broker::MemberPskUse>& members);

/// At a member: whether the PSKs of broker-info replace those that it holds. broker-info is a copy of unknown age, so
/// a lower number counts only when it is of another broker than the one that we have joined.
bool adopts(const crypto::PskBundle& held, const crypto::PskBundle& info, bool same_broker);

}  // namespace fabric::operators
