#pragma once

#include <fabric/kernel/driver.hpp>
#include <fabric/kernel/kernel.hpp>
#include <fabric/kernel/report.hpp>

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fabric::async {
class Worker;
}

namespace fabric::kernel {

/// Reads facts of the host; called on the worker thread.
using FactsReader = std::function<Result<netstate::HostFacts>(const FactsRequest&)>;

/// Runs a script on drivers, synchronously: phases in order, each phase as one call per driver, steps whose
/// prerequisites failed (netstate::depends_on) skipped. A step whose slice no driver has fails with unsupported.
Report run_script(const netstate::Script& script, std::span<const std::unique_ptr<Driver>> drivers);

/// Observes with every driver that has a wanted slice; the first error is returned.
Result<netstate::State> observe_all(netstate::Slices wanted, std::span<const std::unique_ptr<Driver>> drivers);

/// The real kernel: drivers that live on one worker thread. The worker must outlive the returned object, and no call
/// may be pending when it is destroyed.
std::unique_ptr<Kernel> compose(async::Worker& worker, std::vector<std::unique_ptr<Driver>> drivers, FactsReader facts);

}  // namespace fabric::kernel
