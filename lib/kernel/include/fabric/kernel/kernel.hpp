#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/kernel/report.hpp>
#include <fabric/netstate/script.hpp>
#include <fabric/netstate/state.hpp>

#include <string>
#include <vector>

namespace fabric::kernel {

/// Which facts beyond interfaces, default routes and filter backend are read.
struct FactsRequest {
  std::vector<std::string> sysctls;  ///< Names below /proc/sys; absent files are left out of HostFacts::sysctls.
};

/// The kernel of this node as a program sees it. Called on the io thread; the work is done on the worker thread.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  /// Our own objects in these slices, read anew. Errors: unsupported (kernel or program lacks it; the message names the
  /// remedy), forbidden (no CAP_NET_ADMIN), unavailable (retry).
  virtual async::Task<Result<netstate::State>> observe(netstate::Slices slices) = 0;

  virtual async::Task<Result<netstate::HostFacts>> facts(FactsRequest request) = 0;

  /// Runs all steps that can run; the report has one result for each step, in order.
  virtual async::Task<Report> apply(netstate::Script script) = 0;
};

}  // namespace fabric::kernel
