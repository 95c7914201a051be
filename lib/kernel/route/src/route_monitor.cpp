#include <fabric/kernel/route_monitor.hpp>
#include <fabric/netstate/ownership.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <netlink/netlink.h>

#include <array>
#include <cerrno>

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include "netlink.hpp"

namespace fabric::kernel {

namespace {

bool matters(nlmsghdr& header) {
  if (header.nlmsg_type != RTM_NEWROUTE && header.nlmsg_type != RTM_DELROUTE) return true;
  if (nlmsg_datalen(&header) < static_cast<int>(sizeof(rtmsg))) return true;
  const auto& route = *static_cast<const rtmsg*>(nlmsg_data(&header));
  return route.rtm_dst_len == 0 || route.rtm_protocol == netstate::kRouteProtocol;
}

/// Takes all queued notifications; true when one of them matters.
Result<bool> drain(int fd) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): recv() says how much of it is filled.
  alignas(nlmsghdr) std::array<unsigned char, 1 << 16> buffer;
  bool changed = false;
  while (true) {
    const auto size = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size < 0) {
      const int saved = errno;
      if (saved == EINTR) continue;
      if (saved == EAGAIN) return changed;
      if (saved != ENOBUFS) return fail_errno(saved, "receiving notifications from rtnetlink");
      changed = true;  // Some were lost.
      continue;
    }
    auto rest = static_cast<int>(size);
    for (auto* header = reinterpret_cast<nlmsghdr*>(buffer.data()); nlmsg_ok(header, rest) != 0;
         header = nlmsg_next(header, &rest)) {
      changed = matters(*header) || changed;
    }
  }
}

}  // namespace

struct RouteMonitor::Impl {
  Impl(UniqueResource<&nl_socket_free> netlink, boost::asio::posix::stream_descriptor stream)
      : socket(std::move(netlink)), descriptor(std::move(stream)) {}

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() { descriptor.release(); }  // The file belongs to the libnl socket.

  UniqueResource<&nl_socket_free> socket;
  boost::asio::posix::stream_descriptor descriptor;
};

RouteMonitor::RouteMonitor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RouteMonitor::RouteMonitor(RouteMonitor&&) noexcept = default;
RouteMonitor& RouteMonitor::operator=(RouteMonitor&&) noexcept = default;
RouteMonitor::~RouteMonitor() = default;

Result<RouteMonitor> RouteMonitor::open(async::Executor executor) {
  UniqueResource<&nl_socket_free> socket(nl_socket_alloc());
  if (socket == nullptr) return fail(Errc::unavailable, "out of memory for a netlink socket");
  nl_socket_disable_seq_check(socket.get());
  if (nl_connect(socket.get(), NETLINK_ROUTE) < 0) return fail_errno(errno, "opening a rtnetlink socket");
  const int joined = nl_socket_add_memberships(socket.get(), RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
                                               RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, 0);
  if (joined < 0) return fail_errno(errno, "subscribing to rtnetlink notifications");
  nl_socket_set_nonblocking(socket.get());
  boost::asio::posix::stream_descriptor descriptor(executor, nl_socket_get_fd(socket.get()));
  return RouteMonitor(std::make_unique<Impl>(std::move(socket), std::move(descriptor)));
}

async::Task<Result<void>> RouteMonitor::wait() {
  while (true) {
    boost::system::error_code error;
    co_await impl_->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                          boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (error) co_return fail(Errc::cancelled, "waiting for rtnetlink notifications: {}", error.message());
    FABRIC_CO_TRY(const bool changed, drain(nl_socket_get_fd(impl_->socket.get())));
    if (changed) co_return Result<void>();
  }
}

void RouteMonitor::close() {
  impl_->descriptor.cancel();
}

}  // namespace fabric::kernel
