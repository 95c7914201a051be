#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/crypto/record.hpp>
#include <fabric/gateway/connection.hpp>

#include <functional>
#include <map>
#include <memory>

namespace fabric::gateway {

struct PingerOptions {
  std::chrono::seconds interval{1};
  std::uint32_t max_loss = 5;  ///< Requests lost in a row that make a target unreachable.
};

/// Echo requests through the tunnel to the health check addresses of other gateways. The source is the one of the route
/// to them: the node's address in the pod network, as the far side's policies demand. Needs CAP_NET_RAW. Belongs to the
/// io thread.
class Pinger {
 public:
  /// Opens a raw socket per family; IPv6 may be missing. `changed` is called when the health of a target changed.
  static Result<std::unique_ptr<Pinger>> open(async::Executor executor, async::Clock& clock, PingerOptions options,
                                              std::function<void()> changed);
  ~Pinger();

  void start(async::TaskGroup& group);
  /// Whom to ping from now on. Measurements of targets that stay are kept.
  void set_targets(const std::map<crypto::GatewayId, net::IpAddress>& targets);
  /// Null when it is no target.
  const PingMonitor* monitor(const crypto::GatewayId& id) const;

 private:
  struct Impl;
  explicit Pinger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fabric::gateway
