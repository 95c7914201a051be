#include <fabric/async/backoff.hpp>
#include <fabric/gateway/encap_socket.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <cerrno>
#include <optional>

#include <linux/udp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace fabric::gateway {

namespace {

using Udp = boost::asio::ip::udp;

Result<Udp::socket> open_one(const async::Executor& executor, const Udp& protocol, std::uint16_t port) {
  boost::system::error_code error;
  Udp::socket socket(executor);
  socket.open(protocol, error);
  if (!error && protocol == Udp::v6()) socket.set_option(boost::asio::ip::v6_only(true), error);
  if (!error) socket.bind(Udp::endpoint(protocol, port), error);
  if (error) return fail_errno(error.value(), fmt::format("UDP port {} for encapsulated ESP", port));
  const int kind = UDP_ENCAP_ESPINUDP;
  if (::setsockopt(socket.native_handle(), IPPROTO_UDP, UDP_ENCAP, &kind, sizeof kind) != 0) {
    return fail_errno(errno, fmt::format("UDP_ENCAP on port {}", port));
  }
  return socket;
}

async::Task<Result<void>> drain(Udp::socket& socket) {
  std::array<char, 2048> buffer{};
  while (true) {
    const auto [error, size] =
        co_await socket.async_receive(boost::asio::buffer(buffer), boost::asio::as_tuple(boost::asio::use_awaitable));
    if (error == boost::asio::error::operation_aborted) co_return Result<void>();
    if (co_await async::cancelled()) co_return Result<void>();
  }
}

}  // namespace

struct EncapSocket::Impl {
  Udp::socket ipv4;
  std::optional<Udp::socket> ipv6;
};

EncapSocket::EncapSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

EncapSocket::~EncapSocket() = default;

Result<std::unique_ptr<EncapSocket>> EncapSocket::open(async::Executor executor, std::uint16_t port) {
  FABRIC_TRY(auto ipv4, open_one(executor, Udp::v4(), port));
  auto ipv6 = open_one(executor, Udp::v6(), port);
  if (!ipv6 && ipv6.error().code != Errc::unsupported) return std::unexpected(std::move(ipv6).error());
  std::optional<Udp::socket> second;
  if (ipv6) second.emplace(*std::move(ipv6));
  return std::unique_ptr<EncapSocket>(new EncapSocket(std::make_unique<Impl>(std::move(ipv4), std::move(second))));
}

async::Task<std::unique_ptr<EncapSocket>> open_when_free(async::Executor executor, async::Clock& clock,
                                                         std::uint16_t port, std::function<double()> random,
                                                         std::function<void(std::string)> tell) {
  const async::Backoff backoff{.initial = Duration{500}, .max = Duration{30'000}};
  for (unsigned attempt = 0;; ++attempt) {
    auto socket = EncapSocket::open(executor, port);
    if (socket) {
      if (attempt > 0) log::info("the port of encapsulated ESP is free now", {{"port", port}});
      tell({});
      co_return *std::move(socket);
    }
    const std::string failure = socket.error().message() +
                                "; no encapsulated ESP is received until it works, ESP without UDP goes on: find the "
                                "program with ss -lunp";
    if (attempt == 0) log::warn("encapsulated ESP", {{"error", failure}});
    tell(failure);
    if (!co_await async::sleep_for(clock, backoff.delay(attempt, random()))) co_return nullptr;
  }
}

async::Task<Result<void>> EncapSocket::drain_ipv4() {
  co_return co_await drain(impl_->ipv4);
}

async::Task<Result<void>> EncapSocket::drain_ipv6() {
  if (!impl_->ipv6) co_return Result<void>();
  co_return co_await drain(*impl_->ipv6);
}

}  // namespace fabric::gateway
