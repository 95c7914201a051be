#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/broker/psk_readiness.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/operator/broker_role.hpp>
#include <fabric/operator/psk_rotation.hpp>

#include <optional>
#include <string>
#include <vector>

/// The PSK Secret of the broker and its way to the members. Every step follows from what objects say, so that it may
/// be interrupted anywhere.
namespace fabric::operators {

struct BrokerPsk {
  crypto::PskBundle bundle;
  std::optional<TimePoint> drawn_at;  ///< Of the newest, when it came by a rotation.
  std::string resource_version;       ///< Of the Secret: what a change is based on.

  PskFacts facts() const { return {bundle.number, bundle.previous.has_value(), drawn_at}; }
};

/// The PSKs, drawn once (then with the number `wanted`, or 1). A deleted Secret is restored from broker-info, since
/// every member has those.
Task<Result<BrokerPsk>> read_or_create_psk(Environment& env, std::optional<std::uint32_t> wanted);

/// Draws the next PSK: one write, which is refused with Errc::conflict when anybody changed the Secret since it was
/// read. So a number is drawn once, whoever tries and however often.
Task<Result<BrokerPsk>> draw_next_psk(Environment& env, BrokerPsk current);
/// Drops the previous PSK, under the same condition.
Task<Result<void>> drop_previous_psk(Environment& env, BrokerPsk current);

/// Brings the PSKs into the answer of every member and says how far each cluster is. An answer that cannot be written
/// is its cluster's reason to be waited for.
Task<Result<std::vector<broker::MemberPskUse>>> deliver_to_members(Environment& env, crypto::PskBundle bundle,
                                                                   std::vector<api::Cluster> clusters);

}  // namespace fabric::operators
