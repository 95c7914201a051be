#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <linux/netlink.h>

namespace fabric::kernel::xfrm {

/// A file descriptor that is closed.
class Fd {
 public:
  Fd() = default;

  explicit Fd(int fd) : fd_(fd) {}

  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

  Fd& operator=(Fd&& other) noexcept;
  ~Fd();

  int get() const { return fd_; }

  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

template <class T>
std::span<const std::uint8_t> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof(T)};
}

/// Netlink messages back to back in one buffer, for one system call. The buffer never moves and is cleansed, since
/// messages carry keys.
class Batch {
 public:
  /// The cost per message is flat from here on, and the answers to so many fit into any receive buffer.
  static constexpr std::size_t kMaxMessages = 128;
  /// The largest of ours is a new SA: about 500 bytes.
  static constexpr std::size_t kMaxMessageBytes = 1024;

  Batch();

  bool full() const { return offsets_.size() == kMaxMessages; }

  std::size_t size() const { return offsets_.size(); }

  void clear();

  /// Opens a message; body and attributes follow, in this order.
  void begin(std::uint16_t type, std::uint16_t flags);

  template <class T>
  void body(const T& value) {
    append(bytes_of(value));
    pad();
  }

  /// The value is given in pieces, so that keys need not be copied together first.
  void attribute(std::uint16_t type, std::initializer_list<std::span<const std::uint8_t>> pieces);

  template <class T>
  void attribute(std::uint16_t type, const T& value) {
    attribute(type, {bytes_of(value)});
  }

  void end();

  /// Numbers the messages from `first` on and returns the bytes to send.
  std::span<const std::uint8_t> seal(std::uint32_t first);

 private:
  void append(std::span<const std::uint8_t> bytes);
  void pad();

  Secret buffer_;
  std::size_t used_ = 0;
  std::vector<std::size_t> offsets_;
};

/// One message as received. The bytes live as long as the callback that gets it.
struct Message {
  std::uint16_t type = 0;
  std::span<const std::uint8_t> payload;
};

/// The fixed part of a payload, or null when it is too short. Copied out, as payloads are aligned to four bytes only.
template <class T>
bool read_body(std::span<const std::uint8_t> payload, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (payload.size() < sizeof(T)) return false;
  std::memcpy(&value, payload.data(), sizeof(T));
  return true;
}

/// Calls `visit` for every well-formed attribute behind a fixed part of `body_size` bytes.
void each_attribute(std::span<const std::uint8_t> payload, std::size_t body_size,
                    const std::function<void(std::uint16_t type, std::span<const std::uint8_t> value)>& visit);

/// The kernel's verdict on one message.
struct Ack {
  int error = 0;     ///< A positive errno; 0: done.
  std::string text;  ///< The extended ACK, in the kernel's words; often empty.
};

/// "text (errno message)" as an Error, with the caller's remedy in `context`.
std::unexpected<Error> fail_ack(const Ack& ack, std::string context);

/// A NETLINK_XFRM socket of one thread.
class Socket {
 public:
  using OnMessage = std::function<void(const Message&)>;

  /// `groups` are multicast groups (XFRMNLGRP_*) to join.
  static Result<Socket> open(std::span<const int> groups = {});

  /// Sends all messages of a batch, each of which must ask for an ACK, in one call, and waits for one verdict per
  /// message. Other answers go to `on_message`. An error says that some verdicts are unknown.
  Result<std::vector<Ack>> execute(Batch& batch, const OnMessage& on_message = {});

  /// Sends one dump request and calls back for each message; dumps again when the kernel says that it changed
  /// meanwhile, after `restart`, which forgets what was seen.
  Result<void> dump(Batch& request, const OnMessage& on_message, const std::function<void()>& restart);

  /// Reads what is there without waiting; false when nothing is. ENOBUFS is an error with that cause.
  Result<bool> poll(const OnMessage& on_message);

  int fd() const { return fd_.get(); }

 private:
  explicit Socket(Fd fd);
  Result<void> send(std::span<const std::uint8_t> bytes);
  Result<std::span<const std::uint8_t>> receive(int flags);
  Result<bool> dump_once(Batch& request, const OnMessage& on_message);

  Fd fd_;
  Secret buffer_;  ///< Dumps of SAs hold their keys.
  std::uint32_t sequence_ = 0;
};

}  // namespace fabric::kernel::xfrm
