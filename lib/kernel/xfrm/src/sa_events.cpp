#include <fabric/kernel/xfrm.hpp>
#include <fabric/netstate/ownership.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <deque>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

#include <arpa/inet.h>

#include "codec.hpp"
#include "netlink.hpp"

namespace fabric::kernel {

namespace {

std::optional<SaEvent> expiry(std::span<const std::uint8_t> payload) {
  xfrm_user_expire body{};
  if (!xfrm::read_body(payload, body) || !netstate::is_ours(body.state.reqid)) return std::nullopt;
  const auto daddr = xfrm::from_kernel(body.state.id.daddr, body.state.family);
  // Larval states, which have no SPI, expire too.
  if (!daddr || body.state.id.spi == 0) return std::nullopt;
  return SaEvent{body.hard != 0 ? SaEvent::Kind::hard_expired : SaEvent::Kind::soft_expired,
                 {*daddr, netstate::Spi(ntohl(body.state.id.spi))},
                 netstate::Reqid(body.state.reqid)};
}

std::optional<SaEvent> acquire(std::span<const std::uint8_t> payload) {
  std::optional<SaEvent> event;
  xfrm::each_attribute(
      payload, sizeof(xfrm_user_acquire), [&](std::uint16_t type, std::span<const std::uint8_t> value) {
        xfrm_user_tmpl tmpl{};
        if (type != XFRMA_TMPL || !xfrm::read_body(value, tmpl)) return;
        const auto daddr = xfrm::from_kernel(tmpl.id.daddr, tmpl.family);
        if (!daddr || !netstate::is_ours(tmpl.reqid)) return;
        event = SaEvent{SaEvent::Kind::acquire, {*daddr, netstate::Spi(0)}, netstate::Reqid(tmpl.reqid)};
      });
  return event;
}

std::optional<SaEvent> parse_event(const xfrm::Message& message) {
  if (message.type == XFRM_MSG_EXPIRE) return expiry(message.payload);
  if (message.type == XFRM_MSG_ACQUIRE) return acquire(message.payload);
  if (message.type == XFRM_MSG_FLUSHSA || message.type == XFRM_MSG_FLUSHPOLICY) {
    return SaEvent{SaEvent::Kind::flushed, {}, {}};
  }
  return std::nullopt;
}

class XfrmSaEvents final : public SaEvents {
 public:
  XfrmSaEvents(async::Executor executor, xfrm::Socket socket)
      : socket_(std::move(socket)), readable_(executor, socket_.fd()) {}

  XfrmSaEvents(const XfrmSaEvents&) = delete;
  XfrmSaEvents& operator=(const XfrmSaEvents&) = delete;

  // The descriptor belongs to the socket, which closes it.
  ~XfrmSaEvents() override { readable_.release(); }

  async::Task<Result<SaEvent>> next() override {
    while (events_.empty()) {
      FABRIC_CO_TRY(const bool more, read());
      if (more) continue;
      const auto [error] = co_await readable_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                                         boost::asio::as_tuple(boost::asio::use_awaitable));
      if (error == boost::asio::error::operation_aborted) co_return fail(Errc::cancelled, "waiting for SA events");
      if (error) co_return fail(Errc::unavailable, "waiting for SA events: {}", error.message());
    }
    auto event = events_.front();
    events_.pop_front();
    co_return event;
  }

 private:
  /// Whether something was read.
  Result<bool> read() {
    auto more = socket_.poll([this](const xfrm::Message& message) {
      if (const auto event = parse_event(message)) events_.push_back(*event);
    });
    // The kernel dropped events because we were slow; the next read works again.
    if (!more && more.error().cause.value() == ENOBUFS) {
      events_.push_back(SaEvent{});
      return true;
    }
    return more;
  }

  xfrm::Socket socket_;
  boost::asio::posix::stream_descriptor readable_;
  std::deque<SaEvent> events_;
};

}  // namespace

Result<std::unique_ptr<SaEvents>> open_sa_events(async::Executor executor, SaEventsOptions options) {
  std::vector<int> groups{XFRMNLGRP_EXPIRE};
  if (options.acquire) groups.push_back(XFRMNLGRP_ACQUIRE);
  if (options.flushes) groups.insert(groups.end(), {XFRMNLGRP_SA, XFRMNLGRP_POLICY});
  auto socket = xfrm::Socket::open(groups);
  if (!socket) return std::unexpected(std::move(socket).error());
  return std::make_unique<XfrmSaEvents>(std::move(executor), std::move(*socket));
}

}  // namespace fabric::kernel
