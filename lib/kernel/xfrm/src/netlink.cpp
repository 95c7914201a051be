#include "netlink.hpp"

#include <fabric/base/assert.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <unistd.h>
#include <utility>

#include <linux/xfrm.h>
#include <sys/socket.h>
#include <sys/time.h>

namespace fabric::kernel::xfrm {

namespace {

constexpr std::size_t kAlign = NLMSG_ALIGNTO;
/// A dump of 10,000 SAs or a burst of events fits; more than net.core.rmem_max needs CAP_NET_ADMIN, which we have.
constexpr int kSocketBufferBytes = 8 << 20;
/// The kernel writes dumps in pieces of at most 32 KiB.
constexpr std::size_t kReceiveBytes = 64 << 10;
/// Answers come while the request is sent, so that silence is a defect and not load.
constexpr timeval kReceiveTimeout{.tv_sec = 10, .tv_usec = 0};
constexpr int kDumpAttempts = 5;

constexpr std::size_t aligned(std::size_t size) {
  return (size + kAlign - 1) & ~(kAlign - 1);
}

Ack parse_ack(const nlmsghdr& header, std::span<const std::uint8_t> payload) {
  nlmsgerr error{};
  if (!read_body(payload, error)) return {EPROTO, "short answer"};
  Ack ack{-error.error, {}};
  if ((header.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return ack;
  const bool capped = (header.nlmsg_flags & NLM_F_CAPPED) != 0 || error.error == 0;
  const auto echoed = capped ? std::size_t{0} : std::size_t{error.msg.nlmsg_len} - sizeof(nlmsghdr);
  each_attribute(payload, sizeof(error) + echoed, [&](std::uint16_t type, std::span<const std::uint8_t> value) {
    if (type != NLMSGERR_ATTR_MSG) return;
    ack.text.assign(value.begin(), std::ranges::find(value, std::uint8_t{0}));
  });
  return ack;
}

/// Walks over the messages of one datagram.
template <class Visit>
void each_message(std::span<const std::uint8_t> bytes, Visit visit) {
  nlmsghdr header{};
  while (read_body(bytes, header) && header.nlmsg_len >= sizeof(header) && header.nlmsg_len <= bytes.size()) {
    visit(header, bytes.subspan(sizeof(header), header.nlmsg_len - sizeof(header)));
    bytes = bytes.subspan(std::min(aligned(header.nlmsg_len), bytes.size()));
  }
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) ::close(fd_);
}

Batch::Batch() : buffer_(kMaxMessages * kMaxMessageBytes) {
  offsets_.reserve(kMaxMessages);
}

void Batch::clear() {
  cleanse_memory(buffer_.writable().first(used_));
  used_ = 0;
  offsets_.clear();
}

void Batch::begin(std::uint16_t type, std::uint16_t flags) {
  FABRIC_ASSERT(!full());
  offsets_.push_back(used_);
  body(nlmsghdr{.nlmsg_len = 0, .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = 0, .nlmsg_pid = 0});
}

void Batch::attribute(std::uint16_t type, std::initializer_list<std::span<const std::uint8_t>> pieces) {
  std::size_t size = sizeof(nlattr);
  for (const auto piece : pieces)
    size += piece.size();
  body(nlattr{.nla_len = static_cast<std::uint16_t>(size), .nla_type = type});
  for (const auto piece : pieces)
    append(piece);
  pad();
}

void Batch::end() {
  FABRIC_ASSERT(!offsets_.empty());
  const auto length = static_cast<std::uint32_t>(used_ - offsets_.back());
  FABRIC_ASSERT(length <= kMaxMessageBytes);
  std::memcpy(&buffer_.writable()[offsets_.back() + offsetof(nlmsghdr, nlmsg_len)], &length, sizeof(length));
}

std::span<const std::uint8_t> Batch::seal(std::uint32_t first) {
  for (const auto offset : offsets_) {
    std::memcpy(&buffer_.writable()[offset + offsetof(nlmsghdr, nlmsg_seq)], &first, sizeof(first));
    ++first;
  }
  return buffer_.reveal().first(used_);
}

void Batch::append(std::span<const std::uint8_t> bytes) {
  FABRIC_ASSERT(used_ + bytes.size() <= buffer_.size());
  std::ranges::copy(bytes, buffer_.writable().subspan(used_).begin());
  used_ += bytes.size();
}

void Batch::pad() {
  used_ = aligned(used_);
}

void each_attribute(std::span<const std::uint8_t> payload, std::size_t body_size,
                    const std::function<void(std::uint16_t, std::span<const std::uint8_t>)>& visit) {
  payload = payload.subspan(std::min(aligned(body_size), payload.size()));
  nlattr header{};
  while (read_body(payload, header) && header.nla_len >= sizeof(header) && header.nla_len <= payload.size()) {
    visit(static_cast<std::uint16_t>(header.nla_type & NLA_TYPE_MASK),
          payload.subspan(sizeof(header), header.nla_len - sizeof(header)));
    payload = payload.subspan(std::min(aligned(header.nla_len), payload.size()));
  }
}

std::unexpected<Error> fail_ack(const Ack& ack, std::string context) {
  if (ack.text.empty()) return fail_errno(ack.error, std::move(context));
  if (context.empty()) return fail_errno(ack.error, fmt::format("the kernel says: {}", ack.text));
  return fail_errno(ack.error, fmt::format("{}; the kernel says: {}", context, ack.text));
}

Socket::Socket(Fd fd) : fd_(std::move(fd)), buffer_(kReceiveBytes) {}

Result<Socket> Socket::open(std::span<const int> groups) {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM));
  if (fd.get() < 0) {
    const auto error = errno;
    return fail_errno(error, "no IPsec in this kernel; on the node run: modprobe xfrm_user");
  }
  // A socket without a port of its own gets answers, but no multicast (do_one_broadcast()).
  sockaddr_nl any{};
  any.nl_family = AF_NETLINK;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) != 0) {
    const auto error = errno;
    return fail_errno(error, "binding a netlink socket");
  }
  const auto option = [&](int level, int name, const auto& value) {
    return ::setsockopt(fd.get(), level, name, &value, sizeof(value)) == 0;
  };
  const int on = 1;
  // Extended ACKs say what was wrong. Capped ACKs do not send the request back, which holds keys.
  const bool ok = option(SOL_NETLINK, NETLINK_EXT_ACK, on) && option(SOL_NETLINK, NETLINK_CAP_ACK, on) &&
                  option(SOL_SOCKET, SO_RCVTIMEO, kReceiveTimeout);
  if (!ok) {
    const auto error = errno;
    return fail_errno(error, "setting up a netlink socket");
  }
  for (const auto& [forced, plain] : {std::pair(SO_SNDBUFFORCE, SO_SNDBUF), std::pair(SO_RCVBUFFORCE, SO_RCVBUF)}) {
    // Smaller buffers are slower, not wrong.
    if (!option(SOL_SOCKET, forced, kSocketBufferBytes)) option(SOL_SOCKET, plain, kSocketBufferBytes);
  }
  for (const auto group : groups) {
    if (!option(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group)) {
      const auto error = errno;
      return fail_errno(error, fmt::format("joining the XFRM event group {}; it needs CAP_NET_ADMIN", group));
    }
  }
  return Socket(std::move(fd));
}

Result<void> Socket::send(std::span<const std::uint8_t> bytes) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = 0;
  do {
    sent =
        ::sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof(kernel));
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) {
    const auto error = errno;
    return fail_errno(error, "sending to the kernel");
  }
  return {};
}

Result<std::span<const std::uint8_t>> Socket::receive(int flags) {
  ssize_t received = 0;
  sockaddr_nl sender{};
  do {
    socklen_t size = sizeof(sender);
    received = ::recvfrom(fd_.get(), buffer_.writable().data(), buffer_.size(), flags,
                          reinterpret_cast<sockaddr*>(&sender), &size);
    // Other processes may write to our port; only the kernel has port 0.
  } while ((received < 0 && errno == EINTR) || (received >= 0 && sender.nl_pid != 0));
  if (received < 0) {
    const auto error = errno;
    return fail_errno(error, "reading from the kernel");
  }
  return buffer_.reveal().first(static_cast<std::size_t>(received));
}

Result<std::vector<Ack>> Socket::execute(Batch& batch, const OnMessage& on_message) {
  const auto first = sequence_ + 1;
  const auto count = batch.size();
  sequence_ += static_cast<std::uint32_t>(count);
  FABRIC_CHECK(send(batch.seal(first)));
  std::vector<Ack> acks(count);
  for (std::size_t outstanding = count; outstanding > 0;) {
    FABRIC_TRY(const auto datagram, receive(0));
    each_message(datagram, [&](const nlmsghdr& header, std::span<const std::uint8_t> payload) {
      const auto index = header.nlmsg_seq - first;
      if (index >= count) return;  // An answer to an earlier batch that was given up.
      if (header.nlmsg_type == NLMSG_ERROR) {
        acks[index] = parse_ack(header, payload);
        --outstanding;
      } else if (on_message) {
        on_message(Message{header.nlmsg_type, payload});
      }
    });
    cleanse_memory(buffer_.writable().first(datagram.size()));
  }
  return acks;
}

Result<bool> Socket::dump_once(Batch& request, const OnMessage& on_message) {
  const auto sequence = ++sequence_;
  FABRIC_CHECK(send(request.seal(sequence)));
  bool interrupted = false;
  Ack end;
  for (bool done = false; !done;) {
    FABRIC_TRY(const auto datagram, receive(0));
    each_message(datagram, [&](const nlmsghdr& header, std::span<const std::uint8_t> payload) {
      if (header.nlmsg_seq != sequence || done) return;
      interrupted = interrupted || (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
        done = true;
        if (header.nlmsg_type == NLMSG_ERROR) end = parse_ack(header, payload);
        int status = 0;
        if (header.nlmsg_type == NLMSG_DONE && read_body(payload, status)) end.error = -status;
      } else {
        on_message(Message{header.nlmsg_type, payload});
      }
    });
    cleanse_memory(buffer_.writable().first(datagram.size()));
  }
  if (end.error != 0) return fail_ack(end, "reading the IPsec databases");
  return !interrupted;
}

Result<void> Socket::dump(Batch& request, const OnMessage& on_message, const std::function<void()>& restart) {
  for (int attempt = 0; attempt < kDumpAttempts; ++attempt) {
    restart();
    FABRIC_TRY(const bool consistent, dump_once(request, on_message));
    if (consistent) return {};
  }
  return fail(Errc::unavailable, "the IPsec databases changed during each of {} reads", kDumpAttempts);
}

Result<bool> Socket::poll(const OnMessage& on_message) {
  const auto datagram = receive(MSG_DONTWAIT);
  if (!datagram) {
    if (datagram.error().cause.value() == EAGAIN) return false;
    return std::unexpected(datagram.error());
  }
  each_message(*datagram, [&](const nlmsghdr& header, std::span<const std::uint8_t> payload) {
    on_message(Message{header.nlmsg_type, payload});
  });
  cleanse_memory(buffer_.writable().first(datagram->size()));
  return true;
}

}  // namespace fabric::kernel::xfrm
