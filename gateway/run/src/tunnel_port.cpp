#include <fabric/gateway/tunnel_frame.hpp>
#include <fabric/gateway/tunnel_port.hpp>
#include <fabric/gateway/tunnel_schedule.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <map>
#include <optional>

#include <netinet/in.h>
#include <sys/socket.h>

#include "asio_address.hpp"

namespace fabric::gateway {

namespace {

using Udp = boost::asio::ip::udp;

/// Reads of a socket in a second. A gateway hears each of its peers a few times in an hour.
constexpr double kReads = 500;
constexpr Duration kFullPause{100};
/// Room for the announcements of a hundred peers that come at once; the kernel gives what net.core.rmem_max allows.
constexpr int kReceiveBuffer = 4 << 20;

/// Datagrams larger than the path leave in fragments; a path that loses "fragmentation needed" must not stop them.
void allow_fragments(Udp::socket& socket, net::Family family) {
  const int level = family == net::Family::ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
  const int option = family == net::Family::ipv4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER;
  static_assert(IP_PMTUDISC_DONT == IPV6_PMTUDISC_DONT);
  const int value = IP_PMTUDISC_DONT;
  // Without it only the largest announcements suffer.
  (void)::setsockopt(socket.native_handle(), level, option, &value, sizeof value);
}

Result<Udp::socket> open_one(const async::Executor& executor, const net::IpAddress& own, std::uint16_t port) {
  const Udp::endpoint here(to_asio(own), port);
  boost::system::error_code error;
  Udp::socket socket(executor);
  socket.open(here.protocol(), error);
  if (!error && !own.is_v4()) socket.set_option(boost::asio::ip::v6_only(true), error);
  if (!error) socket.bind(here, error);
  if (!error) socket.non_blocking(true, error);
  if (error) return fail_errno(error.value(), fmt::format("UDP port {} of {}", port, own));
  boost::system::error_code smaller;
  socket.set_option(boost::asio::socket_base::receive_buffer_size(kReceiveBuffer), smaller);
  allow_fragments(socket, own.family());
  return socket;
}

}  // namespace

struct UdpTunnelPort::Impl {
  async::TaskGroup& group;
  async::Executor executor;
  async::Clock& clock;
  std::uint16_t port;
  Receive receive;
  std::map<net::IpAddress, std::shared_ptr<Udp::socket>> sockets;
};

namespace {

/// Ends when the socket is closed, or with its group. `receive` is looked up for each datagram, as it may change.
async::Task<Result<void>> take_datagrams(std::shared_ptr<Udp::socket> socket, net::IpAddress own, async::Clock& clock,
                                         std::function<void(const Datagram&)> receive) {
  crypto::Bytes buffer(kMaxFrame + 1);
  TokenBucket reads(kReads, kReads);
  Udp::endpoint from;
  while (socket->is_open()) {
    const auto [error, size] = co_await socket->async_receive_from(boost::asio::buffer(buffer), from,
                                                                   boost::asio::as_tuple(boost::asio::use_awaitable));
    if (error == boost::asio::error::operation_aborted || co_await async::cancelled()) co_return Result<void>();
    // Other errors tell of an earlier datagram that nobody took.
    const auto sender = error ? std::nullopt : from_asio(from.address());
    if (sender) receive({.from = *sender, .to = own, .bytes = crypto::ByteView(buffer).first(size)});
    if (!reads.take(clock.steady()) && !co_await async::sleep_for(clock, kFullPause)) co_return Result<void>();
  }
  co_return Result<void>();
}

}  // namespace

UdpTunnelPort::UdpTunnelPort(async::TaskGroup& group, async::Executor executor, async::Clock& clock, std::uint16_t port)
    : impl_(new Impl{.group = group,
                     .executor = std::move(executor),
                     .clock = clock,
                     .port = port,
                     .receive = nullptr,
                     .sockets = {}}) {}

UdpTunnelPort::~UdpTunnelPort() {
  impl_->receive = nullptr;
  boost::system::error_code ignored;
  for (const auto& [own, socket] : impl_->sockets)
    socket->close(ignored);
}

void UdpTunnelPort::on_receive(Receive receive) {
  impl_->receive = std::move(receive);
}

Result<void> UdpTunnelPort::listen_at(const std::vector<net::IpAddress>& own) {
  boost::system::error_code ignored;
  std::erase_if(impl_->sockets, [&](const auto& entry) {
    const bool unwanted = std::ranges::find(own, entry.first) == own.end();
    if (unwanted) entry.second->close(ignored);
    return unwanted;
  });
  Result<void> first;
  for (const auto& address : own) {
    if (impl_->sockets.contains(address)) continue;
    auto opened = open_one(impl_->executor, address, impl_->port);
    if (!opened) {
      if (first) first = std::unexpected(std::move(opened).error());
      continue;
    }
    const auto socket = std::make_shared<Udp::socket>(*std::move(opened));
    impl_->sockets.emplace(address, socket);
    const auto pass_on = [weak = std::weak_ptr(impl_)](const Datagram& datagram) {
      const auto impl = weak.lock();
      if (impl && impl->receive) impl->receive(datagram);
    };
    impl_->group.spawn("records at " + address.to_string(), take_datagrams(socket, address, impl_->clock, pass_on));
  }
  return first;
}

Result<void> UdpTunnelPort::send(const net::IpAddress& own, const net::IpAddress& to, crypto::ByteView bytes) {
  const auto found = impl_->sockets.find(own);
  if (found == impl_->sockets.end()) return fail(Errc::not_found, "no socket at {}", own);
  boost::system::error_code error;
  found->second->send_to(boost::asio::buffer(bytes.data(), bytes.size()), Udp::endpoint(to_asio(to), impl_->port), 0,
                         error);
  if (error) return fail_errno(error.value(), fmt::format("sending to {}", to));
  return {};
}

}  // namespace fabric::gateway
