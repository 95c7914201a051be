#pragma once

#include <fabric/base/error.hpp>
#include <fabric/kernel/kernel.hpp>
#include <fabric/kernel/sysctl.hpp>
#include <fabric/netstate/state.hpp>

#include <memory>

namespace fabric::kernel {

class NetlinkSocket;

/// Reads what planners must know of the node. Blocking; one thread uses an object.
class HostFactsReader {
 public:
  /// For the network namespace of the calling thread.
  static Result<std::unique_ptr<HostFactsReader>> open(SysctlOptions sysctls = {});
  ~HostFactsReader();

  /// Everything but filter_backend, which PacketFilter::backend() tells. Interfaces are ordered by index, their
  /// addresses as the kernel orders them (primary first); IPv6 addresses that are not yet or never usable are left out.
  /// The default link of a family is that of its default route with the lowest metric in the main table.
  Result<netstate::HostFacts> read(const FactsRequest& request);

 private:
  HostFactsReader(std::unique_ptr<NetlinkSocket> socket, SysctlOptions sysctls);
  std::unique_ptr<NetlinkSocket> socket_;
  SysctlOptions sysctls_;
};

}  // namespace fabric::kernel
