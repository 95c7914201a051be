#include <fabric/gateway/pinger.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/icmp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <unistd.h>

#include "asio_address.hpp"

namespace fabric::gateway {

namespace {

using Icmp = boost::asio::ip::icmp;

/// RFC 792 and RFC 4443.
constexpr std::uint8_t kEchoRequest4 = 8;
constexpr std::uint8_t kEchoReply4 = 0;
constexpr std::uint8_t kEchoRequest6 = 128;
constexpr std::uint8_t kEchoReply6 = 129;
constexpr std::size_t kEchoSize = 8;
using Echo = std::array<std::uint8_t, kEchoSize>;

void put16(std::uint8_t* at, std::uint16_t value) {
  at[0] = static_cast<std::uint8_t>(value >> 8U);
  at[1] = static_cast<std::uint8_t>(value);
}

std::uint16_t get16(const std::uint8_t* at) {
  return static_cast<std::uint16_t>((at[0] << 8U) | at[1]);
}

/// RFC 1071, over an even number of bytes. The kernel computes that of ICMPv6.
std::uint16_t checksum(const Echo& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 2)
    sum += get16(&bytes.at(i));
  while ((sum >> 16U) != 0)
    sum = (sum & 0xffffU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

Echo echo_request(net::Family family, std::uint16_t id, std::uint16_t sequence) {
  Echo echo{};
  echo[0] = family == net::Family::ipv4 ? kEchoRequest4 : kEchoRequest6;
  put16(&echo[4], id);
  put16(&echo[6], sequence);
  if (family == net::Family::ipv4) put16(&echo[2], checksum(echo));
  return echo;
}

std::chrono::nanoseconds since_start(const async::Clock& clock) {
  return clock.steady().time_since_epoch();
}

}  // namespace

struct Pinger::Impl {
  async::Clock& clock;
  PingerOptions options;
  std::function<void()> changed;
  std::uint16_t id;
  std::optional<Icmp::socket> ipv4;
  std::optional<Icmp::socket> ipv6;

  struct Target {
    net::IpAddress address;
    PingMonitor monitor;
  };

  std::map<crypto::GatewayId, Target> targets;

  void send(Target& target) {
    auto& socket = target.address.is_v4() ? ipv4 : ipv6;
    if (!socket) return;
    const auto sequence = target.monitor.on_send(since_start(clock));
    const Echo echo = echo_request(target.address.family(), id, sequence);
    boost::system::error_code error;
    // A full or failing path drops echo requests as it drops other packets; the missing answer tells.
    socket->send_to(boost::asio::buffer(echo), Icmp::endpoint(to_asio(target.address), 0), 0, error);
  }

  void receive(const net::IpAddress& from, std::span<const std::uint8_t> packet) {
    if (from.is_v4()) {
      const std::size_t header = packet.empty() ? 0 : (packet[0] & 0x0fU) * 4U;
      if (packet.size() < header) return;
      packet = packet.subspan(header);
    }
    if (packet.size() < kEchoSize || packet[0] != (from.is_v4() ? kEchoReply4 : kEchoReply6) || get16(&packet[4]) != id)
      return;
    for (auto& [peer, target] : targets) {
      if (target.address != from) continue;
      const Health before = target.monitor.health();
      target.monitor.on_reply(get16(&packet[6]), since_start(clock));
      if (target.monitor.health() != before) changed();
    }
  }

  async::Task<Result<void>> ping() {
    while (true) {
      for (auto& [peer, target] : targets) {
        const Health before = target.monitor.health();
        send(target);
        if (target.monitor.health() != before) changed();
      }
      if (!co_await async::sleep_for(clock, options.interval)) co_return Result<void>();
    }
  }

  async::Task<Result<void>> listen(Icmp::socket& socket) {
    std::array<std::uint8_t, 1500> buffer{};
    Icmp::endpoint from;
    while (true) {
      const auto [error, size] = co_await socket.async_receive_from(boost::asio::buffer(buffer), from,
                                                                    boost::asio::as_tuple(boost::asio::use_awaitable));
      if (error == boost::asio::error::operation_aborted || co_await async::cancelled()) co_return Result<void>();
      if (error) continue;
      if (const auto address = from_asio(from.address())) receive(*address, std::span(buffer).first(size));
    }
  }
};

Pinger::Pinger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Pinger::~Pinger() = default;

Result<std::unique_ptr<Pinger>> Pinger::open(async::Executor executor, async::Clock& clock, PingerOptions options,
                                             std::function<void()> changed) {
  auto impl = std::make_unique<Impl>(clock, options, std::move(changed), static_cast<std::uint16_t>(::getpid()));
  boost::system::error_code error;
  impl->ipv4.emplace(executor);
  impl->ipv4->open(Icmp::v4(), error);
  if (error) return fail_errno(error.value(), "raw ICMP socket (the container needs the capability NET_RAW)");
  impl->ipv6.emplace(executor);
  impl->ipv6->open(Icmp::v6(), error);
  if (error) impl->ipv6.reset();
  return std::unique_ptr<Pinger>(new Pinger(std::move(impl)));
}

void Pinger::start(async::TaskGroup& group) {
  group.spawn("ping", impl_->ping());
  group.spawn("echo replies IPv4", impl_->listen(*impl_->ipv4));
  if (impl_->ipv6) group.spawn("echo replies IPv6", impl_->listen(*impl_->ipv6));
}

void Pinger::set_targets(const std::map<crypto::GatewayId, net::IpAddress>& targets) {
  std::erase_if(impl_->targets, [&](const auto& entry) {
    const auto it = targets.find(entry.first);
    return it == targets.end() || it->second != entry.second.address;
  });
  for (const auto& [id, address] : targets)
    impl_->targets.try_emplace(id, address, PingMonitor(impl_->options.max_loss));
}

const PingMonitor* Pinger::monitor(const crypto::GatewayId& id) const {
  const auto it = impl_->targets.find(id);
  return it == impl_->targets.end() ? nullptr : &it->second.monitor;
}

}  // namespace fabric::gateway
