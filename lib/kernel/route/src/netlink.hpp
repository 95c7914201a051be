#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/unique_resource.hpp>
#include <fabric/net/ip_address.hpp>
#include <fabric/net/mac.hpp>

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/socket.h>

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The part of rtnetlink that all drivers of this folder share. libnl carries and builds messages; they are made and
/// read here by hand, because libnl-route's objects hide errno, the kernel's extended error texts and dump filters.
namespace fabric::kernel {

/// A request under construction. A message that does not fit libnl's one-page buffer is a programming error.
class Message {
 public:
  Message(int type, int flags);

  /// The family header (ifinfomsg, rtmsg, ndmsg...), first after construction.
  template <class Header>
  Message& header(const Header& value) {
    append(&value, sizeof value);
    return *this;
  }

  Message& put(int attribute, const void* bytes, std::size_t size);
  Message& put(int attribute, std::string_view text);  ///< With the terminating zero.

  Message& put(int attribute, std::uint8_t value) { return put(attribute, &value, sizeof value); }

  Message& put(int attribute, std::uint16_t value) { return put(attribute, &value, sizeof value); }

  Message& put(int attribute, std::uint32_t value) { return put(attribute, &value, sizeof value); }

  Message& put(int attribute, const net::IpAddress& address);

  Message& put(int attribute, const net::Mac& mac) { return put(attribute, mac.bytes.data(), mac.bytes.size()); }

  Message& nest(int attribute, const std::function<void(Message&)>& fill);

  nl_msg* raw() const { return message_.get(); }

 private:
  void append(const void* bytes, std::size_t size);
  UniqueResource<&nlmsg_free> message_;
};

class NetlinkSocket {
 public:
  static Result<std::unique_ptr<NetlinkSocket>> open();

  /// Sends a request, calls for each answer (of a get) and waits for the acknowledgement. The error carries errno as
  /// cause and the kernel's text.
  Result<void> transact(const Message& message, const std::function<void(nlmsghdr&)>& each = [](nlmsghdr&) {});

  /// Sends a dump request and calls for each answer; begins again when the dump was inconsistent, so `each` starts
  /// by `begin`, which forgets what was gathered.
  Result<void> dump(const Message& message, const std::function<void()>& begin,
                    const std::function<void(nlmsghdr&)>& each);

 private:
  explicit NetlinkSocket(UniqueResource<&nl_socket_free> socket) : socket_(std::move(socket)) {}

  Result<bool> receive(std::uint32_t sequence, const std::function<void(nlmsghdr&)>& each, bool& interrupted);
  Result<std::uint32_t> send(const Message& message);
  UniqueResource<&nl_socket_free> socket_;
};

/// The errno in an error, or 0.
int errno_of(const Error& error);

/// Attributes behind a family header of this size, by number; absent ones are null.
template <std::size_t Max>
std::array<nlattr*, Max + 1> parse_attributes(nlmsghdr& header, std::size_t family_header_size) {
  std::array<nlattr*, Max + 1> attributes{};
  nlmsg_parse(&header, static_cast<int>(family_header_size), attributes.data(), static_cast<int>(Max), nullptr);
  return attributes;
}

std::optional<net::IpAddress> address_in(const nlattr* attribute);
std::optional<net::Mac> mac_in(const nlattr* attribute);
std::string text_in(const nlattr* attribute);

/// `absent` also for one that is too short.
template <std::unsigned_integral T>
T number_in(const nlattr* attribute, T absent = 0) {
  if (attribute == nullptr || nla_len(attribute) < static_cast<int>(sizeof(T))) return absent;
  T value;
  std::memcpy(&value, nla_data(attribute), sizeof value);
  return value;
}

constexpr std::uint16_t to_network(std::uint16_t value) {
  return std::endian::native == std::endian::little ? std::byteswap(value) : value;
}

std::uint8_t family_number(net::Family family);

}  // namespace fabric::kernel
