#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/crypto/bytes.hpp>
#include <fabric/net/ip_address.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace fabric::gateway {

/// A datagram that came; valid during the call.
struct Datagram {
  net::IpAddress from;
  net::IpAddress to;  ///< One of our own addresses.
  crypto::ByteView bytes;
};

/// How datagrams with announcements leave and arrive. Anybody in the pod network may send some: nothing about them is
/// believed. Belongs to the io thread.
class TunnelPort {
 public:
  using Receive = std::function<void(const Datagram&)>;

  TunnelPort() = default;
  TunnelPort(const TunnelPort&) = delete;
  TunnelPort& operator=(const TunnelPort&) = delete;
  virtual ~TunnelPort() = default;

  /// Called for each datagram, never during a call of another function. Null stops it.
  virtual void on_receive(Receive receive) = 0;
  /// From now on datagrams are taken at these own addresses and no others. The first that cannot be used is the error
  /// (the address is not there yet, or the port is taken); the others are used all the same.
  virtual Result<void> listen_at(const std::vector<net::IpAddress>& own) = 0;
  /// `own` is one of those. Success means that the datagram left, not that it arrives. Errc::not_found when `own` is
  /// not listened at, else what the network says.
  virtual Result<void> send(const net::IpAddress& own, const net::IpAddress& to, crypto::ByteView bytes) = 0;
};

/// UDP sockets at `port`, one for each own address. A socket takes a bounded number of datagrams in a second; the
/// kernel drops what a flood sends beyond.
class UdpTunnelPort final : public TunnelPort {
 public:
  /// Everything outlives the port and the run of its loop.
  UdpTunnelPort(async::TaskGroup& group, async::Executor executor, async::Clock& clock, std::uint16_t port);
  UdpTunnelPort(const UdpTunnelPort&) = delete;
  UdpTunnelPort& operator=(const UdpTunnelPort&) = delete;
  ~UdpTunnelPort() override;

  void on_receive(Receive receive) override;
  Result<void> listen_at(const std::vector<net::IpAddress>& own) override;
  Result<void> send(const net::IpAddress& own, const net::IpAddress& to, crypto::ByteView bytes) override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fabric::gateway
