#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <memory>

namespace fabric::kernel {

/// Tells that links, addresses or routes of this network namespace changed, by anybody including us. Lives on the io
/// thread. A lost notification (full socket buffer) counts as a change.
class RouteMonitor {
 public:
  static Result<RouteMonitor> open(async::Executor executor);
  RouteMonitor(const RouteMonitor&) = delete;
  RouteMonitor& operator=(const RouteMonitor&) = delete;
  RouteMonitor(RouteMonitor&&) noexcept;
  RouteMonitor& operator=(RouteMonitor&&) noexcept;
  ~RouteMonitor();

  /// Waits for the next change and takes all that are queued; the caller debounces. Route changes count only for
  /// default routes and routes of ours, so that a node with a busy routing daemon does not plan all day.
  /// Errc::cancelled after close() or cancellation of the coroutine. The monitor must outlive the call.
  async::Task<Result<void>> wait();
  void close();

 private:
  struct Impl;
  explicit RouteMonitor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fabric::kernel
