#include "netlink.hpp"

#include <fabric/base/assert.hpp>

#include <netlink/errno.h>
#include <netlink/netlink.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include <linux/netlink.h>
#include <sys/socket.h>

namespace fabric::kernel {

namespace {

// Large enough for any single message of ours and for dumps in 32 KiB pieces, the most that the kernel sends at once.
constexpr int kSocketBuffer = 1 << 20;

using ReceiveBuffer = std::unique_ptr<unsigned char, decltype([](unsigned char* p) { std::free(p); })>;

std::unexpected<Error> libnl_error(int code, std::string_view what) {
  const int saved = errno;
  if (code == -NLE_NOMEM) return fail(Errc::unavailable, "{}: {}", what, nl_geterror(code));
  return fail_errno(saved, fmt::format("{}: {}", what, nl_geterror(code)));
}

// NLMSGERR_ATTR_MSG follows the error header, and the echoed request unless NLM_F_CAPPED is set.
std::string extended_text(nlmsghdr& header, const nlmsgerr& error) {
  if ((header.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return {};
  std::size_t skip = sizeof(nlmsgerr);
  if ((header.nlmsg_flags & NLM_F_CAPPED) == 0) {
    if (error.msg.nlmsg_len < sizeof(nlmsghdr) || error.msg.nlmsg_len > header.nlmsg_len) return {};
    skip += error.msg.nlmsg_len - sizeof(nlmsghdr);
  }
  const auto attributes = parse_attributes<NLMSGERR_ATTR_MSG>(header, NLMSG_ALIGN(skip));
  return text_in(attributes[NLMSGERR_ATTR_MSG]);
}

}  // namespace

Message::Message(int type, int flags) : message_(nlmsg_alloc()) {
  FABRIC_ASSERT(message_ != nullptr);
  FABRIC_ASSERT(nlmsg_put(message_.get(), NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, flags | NLM_F_REQUEST) != nullptr);
}

void Message::append(const void* bytes, std::size_t size) {
  FABRIC_ASSERT(nlmsg_append(message_.get(), const_cast<void*>(bytes), size, NLMSG_ALIGNTO) == 0);
}

Message& Message::put(int attribute, const void* bytes, std::size_t size) {
  FABRIC_ASSERT(nla_put(message_.get(), attribute, static_cast<int>(size), bytes) == 0);
  return *this;
}

Message& Message::put(int attribute, std::string_view text) {
  const std::string terminated(text);
  return put(attribute, terminated.c_str(), terminated.size() + 1);
}

Message& Message::put(int attribute, const net::IpAddress& address) {
  return put(attribute, address.bytes().data(), address.bytes().size());
}

Message& Message::nest(int attribute, const std::function<void(Message&)>& fill) {
  auto* start = nla_nest_start(message_.get(), attribute);
  FABRIC_ASSERT(start != nullptr);
  fill(*this);
  nla_nest_end(message_.get(), start);
  return *this;
}

Result<std::unique_ptr<NetlinkSocket>> NetlinkSocket::open() {
  UniqueResource<&nl_socket_free> socket(nl_socket_alloc());
  if (socket == nullptr) return fail(Errc::unavailable, "out of memory for a netlink socket");
  if (const int code = nl_connect(socket.get(), NETLINK_ROUTE); code < 0)
    return libnl_error(code, "opening a rtnetlink socket");
  nl_socket_set_buffer_size(socket.get(), kSocketBuffer, kSocketBuffer);
  const int fd = nl_socket_get_fd(socket.get());
  // Both are hints: kernels without them send no text and dump everything, and every reader here filters by itself.
  constexpr int on = 1;
  setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof on);
  setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof on);
  setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof on);
  return std::unique_ptr<NetlinkSocket>(new NetlinkSocket(std::move(socket)));
}

Result<std::uint32_t> NetlinkSocket::send(const Message& message) {
  if (const int code = nl_send_auto(socket_.get(), message.raw()); code < 0)
    return libnl_error(code, "sending to rtnetlink");
  return nlmsg_hdr(message.raw())->nlmsg_seq;
}

Result<bool> NetlinkSocket::receive(std::uint32_t sequence, const std::function<void(nlmsghdr&)>& each,
                                    bool& interrupted) {
  sockaddr_nl sender{};
  unsigned char* bytes = nullptr;
  int size = nl_recv(socket_.get(), &sender, &bytes, nullptr);
  const ReceiveBuffer owner(bytes);
  if (size < 0) return libnl_error(size, "receiving from rtnetlink");
  if (size == 0) return fail(Errc::unavailable, "rtnetlink closed the socket");
  for (auto* header = reinterpret_cast<nlmsghdr*>(bytes); nlmsg_ok(header, size) != 0;
       header = nlmsg_next(header, &size)) {
    if (header->nlmsg_seq != sequence) continue;  // The rest of an answer that an earlier call gave up on.
    if ((header->nlmsg_flags & NLM_F_DUMP_INTR) != 0) interrupted = true;
    if (header->nlmsg_type == NLMSG_DONE) {
      // Since Linux 4.20 a dump that fails half-way says so here.
      const int code =
          nlmsg_datalen(header) >= static_cast<int>(sizeof(int)) ? *static_cast<int*>(nlmsg_data(header)) : 0;
      if (code < 0) return fail_errno(-code, "dump");
      return true;
    }
    if (header->nlmsg_type == NLMSG_ERROR) {
      const auto& error = *static_cast<const nlmsgerr*>(nlmsg_data(header));
      if (error.error == 0) return true;
      auto text = extended_text(*header, error);
      return fail_errno(-error.error, text.empty() ? "the kernel refused" : std::move(text));
    }
    each(*header);
  }
  return false;
}

Result<void> NetlinkSocket::transact(const Message& message, const std::function<void(nlmsghdr&)>& each) {
  nlmsg_hdr(message.raw())->nlmsg_flags |= NLM_F_ACK;
  FABRIC_TRY(const auto sequence, send(message));
  bool interrupted = false;
  while (true) {
    FABRIC_TRY(const bool done, receive(sequence, each, interrupted));
    if (done) return {};
  }
}

Result<void> NetlinkSocket::dump(const Message& message, const std::function<void()>& begin,
                                 const std::function<void(nlmsghdr&)>& each) {
  // A table that changes under every one of this many dumps is not worth waiting for on this thread.
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    begin();
    nlmsg_hdr(message.raw())->nlmsg_flags |= NLM_F_DUMP;
    nlmsg_hdr(message.raw())->nlmsg_seq = NL_AUTO_SEQ;
    FABRIC_TRY(const auto sequence, send(message));
    bool interrupted = false;
    bool done = false;
    while (!done) {
      FABRIC_TRY(done, receive(sequence, each, interrupted));
    }
    if (!interrupted) return {};
  }
  return fail(Errc::unavailable, "the kernel's table changed during each of {} dumps", kAttempts);
}

int errno_of(const Error& error) {
  return error.cause.category() == std::system_category() ? error.cause.value() : 0;
}

std::optional<net::IpAddress> address_in(const nlattr* attribute) {
  if (attribute == nullptr) return std::nullopt;
  const auto size = static_cast<std::size_t>(nla_len(attribute));
  auto address = net::IpAddress::from_bytes({static_cast<const std::uint8_t*>(nla_data(attribute)), size});
  if (!address) return std::nullopt;
  return *std::move(address);
}

std::optional<net::Mac> mac_in(const nlattr* attribute) {
  net::Mac mac;
  if (attribute == nullptr || static_cast<std::size_t>(nla_len(attribute)) != mac.bytes.size()) return std::nullopt;
  std::copy_n(static_cast<const std::uint8_t*>(nla_data(attribute)), mac.bytes.size(), mac.bytes.begin());
  return mac;
}

std::string text_in(const nlattr* attribute) {
  if (attribute == nullptr) return {};
  const auto* text = static_cast<const char*>(nla_data(attribute));
  return {text, strnlen(text, static_cast<std::size_t>(nla_len(attribute)))};
}

std::uint8_t family_number(net::Family family) {
  return family == net::Family::ipv4 ? AF_INET : AF_INET6;
}

}  // namespace fabric::kernel
