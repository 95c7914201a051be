#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <cstdint>
#include <memory>

namespace fabric::gateway {

/// The UDP sockets, one per family, by which the kernel receives ESP in UDP (RFC 3948, UDP_ENCAP). The kernel takes the
/// ESP packets before they reach a process; what is left (keepalives, strangers) is read and dropped. Belongs to the io
/// thread.
class EncapSocket {
 public:
  /// Binds both families on all addresses; IPv6 may be missing on the node. Errc::already_exists or unavailable name
  /// the port.
  static Result<std::unique_ptr<EncapSocket>> open(async::Executor executor, std::uint16_t port);
  ~EncapSocket();

  /// Until cancelled.
  async::Task<Result<void>> drain_ipv4();
  async::Task<Result<void>> drain_ipv6();

 private:
  struct Impl;
  explicit EncapSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fabric::gateway
