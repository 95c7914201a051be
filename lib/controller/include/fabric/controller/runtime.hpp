#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/time.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <functional>

namespace fabric::controller {

/// Uniform in [0, 1). Injected, so that tests are deterministic.
using RandomSource = std::function<double()>;

/// A RandomSource seeded once from the operating system; for main().
RandomSource system_random();

/// What every loop of this module runs on. A value; clock and metrics outlive every loop.
struct Runtime {
  async::Executor executor;
  async::Clock& clock;
  RandomSource random;
  telemetry::Registry& metrics;
  /// A collection that cannot be reached is tried again at least this often. As client-go; servers with few clients
  /// bear more.
  Duration max_wait{30'000};
};

}  // namespace fabric::controller
