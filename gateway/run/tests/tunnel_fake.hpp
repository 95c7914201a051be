#pragma once

#include <fabric/gateway/tunnel_port.hpp>

#include <boost/asio/post.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

namespace fabric::gateway::testing {

/// A network of FakeTunnelPorts. What is sent arrives in a later turn of the loop, when nothing stops it.
class FakeNetwork {
 public:
  explicit FakeNetwork(async::Executor executor) : executor_(std::move(executor)) {}

  /// Whether a datagram passes; asked when it leaves. Null lets all through.
  std::function<bool(const net::IpAddress& from, const net::IpAddress& to)> passes;
  std::size_t sent = 0;
  std::size_t delivered = 0;

  /// As somebody in the pod network would send it, from any address.
  void inject(const net::IpAddress& from, const net::IpAddress& to, crypto::Bytes bytes) {
    ++sent;
    if (passes && !passes(from, to)) return;
    boost::asio::post(executor_, [this, from, to, bytes = std::move(bytes)] {
      const auto found = listeners_.find(to);
      if (found == listeners_.end() || !*found->second) return;
      ++delivered;
      (*found->second)({.from = from, .to = to, .bytes = bytes});
    });
  }

 private:
  friend class FakeTunnelPort;

  async::Executor executor_;
  std::map<net::IpAddress, std::shared_ptr<TunnelPort::Receive>> listeners_;
};

class FakeTunnelPort final : public TunnelPort {
 public:
  explicit FakeTunnelPort(FakeNetwork& network) : network_(network) {}

  ~FakeTunnelPort() override { (void)listen_at({}); }

  void on_receive(Receive receive) override { *receive_ = std::move(receive); }

  Result<void> listen_at(const std::vector<net::IpAddress>& own) override {
    Result<void> first;
    std::erase_if(network_.listeners_, [&](const auto& entry) { return entry.second == receive_; });
    for (const auto& address : own) {
      const auto [it, fresh] = network_.listeners_.emplace(address, receive_);
      if (!fresh && first) first = fail(Errc::already_exists, "port of {}", address);
    }
    return first;
  }

  Result<void> send(const net::IpAddress& own, const net::IpAddress& to, crypto::ByteView bytes) override {
    const auto found = network_.listeners_.find(own);
    if (found == network_.listeners_.end() || found->second != receive_)
      return fail(Errc::not_found, "no socket at {}", own);
    network_.inject(own, to, {bytes.begin(), bytes.end()});
    return {};
  }

 private:
  FakeNetwork& network_;
  std::shared_ptr<Receive> receive_ = std::make_shared<Receive>();
};

}  // namespace fabric::gateway::testing
