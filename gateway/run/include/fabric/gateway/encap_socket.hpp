#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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

/// Opens the socket, again and again with backoff while another program has the port, since ESP without UDP does not
/// need it. `tell` hears each failure, and an empty text with the success. Ends with the socket, or when cancelled with
/// null.
async::Task<std::unique_ptr<EncapSocket>> open_when_free(async::Executor executor, async::Clock& clock,
                                                         std::uint16_t port, std::function<double()> random,
                                                         std::function<void(std::string)> tell);

}  // namespace fabric::gateway
