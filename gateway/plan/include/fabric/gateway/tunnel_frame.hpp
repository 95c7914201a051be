#pragma once

#include <fabric/gateway/announcements.hpp>

#include <variant>

/// Datagrams between gateways inside the tunnel: an announcement, and the receipt for one. The frame carries a MAC of
/// its own per PSK, so that nothing else of a datagram is looked at before it is known to come from a member.
namespace fabric::gateway {

/// "This announcement of `owner`, or a newer one, is verified and known to me."
struct Receipt {
  crypto::GatewayId from;
  crypto::InstanceId instance;  ///< Of `from`: a restarted process knows less.
  crypto::GatewayId owner;
  std::uint64_t counter = 0;  ///< StateRecord::counter.
  auto operator<=>(const Receipt&) const = default;
};

using Frame = std::variant<RawAnnouncement, Receipt>;

/// Bytes of the largest frame. With the headers of IP, UDP and ESP it stays below the 65,535 bytes of an outer packet.
inline constexpr std::size_t kMaxFrame = 60'000;

/// oversized when the frame would be larger than kMaxFrame: such an announcement travels by the broker only.
crypto::Checked<crypto::Bytes> seal_frame(const Frame& frame, const crypto::PskSet& psks);

/// Checks size and MAC, in this order, before it looks at the rest. The records inside are not verified yet.
crypto::Checked<Frame> open_frame(crypto::ByteView bytes, const crypto::PskSet& psks);

}  // namespace fabric::gateway
