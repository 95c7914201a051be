#pragma once

#include <fabric/controller/runtime.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/gateway/tunnel_port.hpp>
#include <fabric/gateway/tunnel_schedule.hpp>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace fabric::gateway {

/// The second way of announcements: from gateway to gateway, inside the tunnel, so that keys change also while the
/// broker is away. What arrives goes to Membership, which believes it no more than an object of the broker; what this
/// gateway says goes to each peer until the peer confirms it. Belongs to the io thread.
class TunnelRecords {
 public:
  /// `self` and `instance` sign receipts; `news` is called when Membership learned something. Everything outlives this
  /// object.
  TunnelRecords(crypto::GatewayId self, crypto::InstanceId instance, const crypto::PskSet& psks, Membership& membership,
                TunnelPort& port, controller::Runtime runtime, std::function<void()> news);
  TunnelRecords(const TunnelRecords&) = delete;
  TunnelRecords& operator=(const TunnelRecords&) = delete;
  ~TunnelRecords();

  /// This node's addresses in the pod network, from which and at which it speaks.
  void listen_at(const std::vector<net::IpAddress>& own);

  /// What this gateway says now. Sends it to peers that are due, at most a burst; to be called again at next(). True
  /// once a datagram with this announcement left for a peer.
  bool tell(std::span<const crypto::AnnouncedKey> keys, const crypto::AnnouncedState& state);

  /// When tell() has something to send by time alone.
  std::optional<async::SteadyTime> next() const;

 private:
  /// What concerns every peer.
  struct Wording {
    std::vector<crypto::Bytes> keys;
    crypto::StateRecord state;  ///< Without counter and seen.
    bool operator==(const Wording&) const = default;
  };

  std::map<crypto::GatewayId, TunnelTarget> targets(const crypto::StateRecord& state) const;
  std::optional<net::IpAddress> address_of(const crypto::StateRecord& peer) const;
  void renew_frame(std::span<const crypto::AnnouncedKey> keys, const crypto::AnnouncedState& state);
  void send_due();
  bool send(const net::IpAddress& to, crypto::ByteView frame);
  void receive(const Datagram& datagram);
  void take(const RawAnnouncement& raw, const Datagram& datagram);
  void take(const Receipt& receipt, const Datagram& datagram);
  bool admits(const net::IpAddress& from);
  void refuse(std::string_view reason);

  crypto::GatewayId self_;
  crypto::InstanceId instance_;
  const crypto::PskSet& psks_;
  Membership& membership_;
  TunnelPort& port_;
  controller::Runtime runtime_;
  std::function<void()> news_;
  std::vector<net::IpAddress> own_;
  TunnelSchedule schedule_;
  Wording wording_;
  std::uint64_t wordings_ = 0;
  std::uint64_t counter_ = 0;  ///< Of the announcement in frame_.
  crypto::Bytes frame_;        ///< Empty when it is too large.
  bool left_ = false;          ///< A datagram with frame_ did.
  std::string port_trouble_;
  TokenBucket strangers_;
  std::map<crypto::GatewayId, TokenBucket> known_;
};

}  // namespace fabric::gateway
