#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/state.hpp>

#include <memory>
#include <span>
#include <string>

namespace fabric::kernel {

class NetlinkSocket;
class SysctlDriver;

/// Reads what planners must know of the node. Blocking, kernel thread.
class HostFactsReader {
 public:
  static Result<HostFactsReader> open();
  HostFactsReader(HostFactsReader&&) noexcept;
  HostFactsReader& operator=(HostFactsReader&&) noexcept;
  ~HostFactsReader();

  /// Everything but filter_backend, which the packet filter knows. Interfaces are ordered by index, their addresses as
  /// the kernel orders them (primary first); tentative and failed IPv6 addresses are left out. The default link of a
  /// family is that of its default route with the lowest metric in the main table. Sysctls that do not exist are left
  /// out.
  Result<netstate::HostFacts> read(const SysctlDriver& sysctls, std::span<const std::string> sysctl_keys);

 private:
  explicit HostFactsReader(std::unique_ptr<NetlinkSocket> socket);
  std::unique_ptr<NetlinkSocket> socket_;
};

}  // namespace fabric::kernel
