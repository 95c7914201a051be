#include <fabric/async/worker.hpp>
#include <fabric/base/assert.hpp>
#include <fabric/kernel/composition.hpp>
#include <fabric/netstate/diff.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace fabric::kernel {

namespace {

using netstate::Slice;
using netstate::Slices;
using netstate::Step;

Driver* driver_of(Slice slice, std::span<const std::unique_ptr<Driver>> drivers) {
  const auto found = std::ranges::find_if(drivers, [&](const auto& driver) { return driver->slices().has(slice); });
  return found == drivers.end() ? nullptr : found->get();
}

/// Runs one script; a step's result is known when its phase is over.
class Run {
 public:
  Run(const netstate::Script& script, std::span<const std::unique_ptr<Driver>> drivers)
      : script_(script), drivers_(drivers) {
    report_.results.resize(script.steps.size());
  }

  Report run() && {
    const auto& steps = script_.steps;
    for (std::size_t begin = 0; begin < steps.size();) {
      auto end = begin;
      while (end < steps.size() && steps[end].phase == steps[begin].phase)
        ++end;
      phase(begin, end);
      begin = end;
    }
    return std::move(report_);
  }

 private:
  void phase(std::size_t begin, std::size_t end) {
    std::map<Driver*, std::vector<std::size_t>> by_driver;
    for (auto i = begin; i < end; ++i) {
      if (const auto* cause = prerequisite_lost(script_.steps[i])) {
        settle(i, Outcome::skipped,
               Error{Errc::cancelled, fmt::format("not tried, since this failed: {}", netstate::describe(*cause)), {}});
        continue;
      }
      auto* driver = driver_of(netstate::slice_of(script_.steps[i].object), drivers_);
      if (driver == nullptr) {
        settle(i, Outcome::failed, Error{Errc::unsupported, "this program has no driver for it", {}});
        continue;
      }
      by_driver[driver].push_back(i);
    }
    for (const auto& [driver, indices] : by_driver)
      hand_over(*driver, indices);
  }

  void hand_over(Driver& driver, const std::vector<std::size_t>& indices) {
    std::vector<Step> steps;
    steps.reserve(indices.size());
    for (const auto index : indices)
      steps.push_back(script_.steps[index]);
    auto results = driver.apply(steps);
    FABRIC_ASSERT(results.size() == steps.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) settle(indices[i], Outcome::failed, std::move(results[i]).error());
    }
  }

  const Step* prerequisite_lost(const Step& step) const {
    const auto found =
        std::ranges::find_if(unfinished_, [&](std::size_t i) { return netstate::depends_on(step, script_.steps[i]); });
    return found == unfinished_.end() ? nullptr : &script_.steps[*found];
  }

  void settle(std::size_t index, Outcome outcome, Error error) {
    auto& result = report_.results[index];
    result.outcome = outcome;
    result.error = std::move(error).with(netstate::describe(script_.steps[index]));
    unfinished_.push_back(index);
  }

  const netstate::Script& script_;
  std::span<const std::unique_ptr<Driver>> drivers_;
  std::vector<std::size_t> unfinished_;  ///< Failed or skipped so far.
  Report report_;
};

/// The worker did not run the script at all, since the caller was cancelled before.
Report nothing_done(const netstate::Script& script, const Error& error) {
  return Report{std::vector<StepResult>(script.steps.size(), StepResult{Outcome::failed, error})};
}

class ComposedKernel final : public Kernel {
 public:
  ComposedKernel(async::Worker& worker, std::vector<std::unique_ptr<Driver>> drivers, FactsReader facts)
      : worker_(worker), drivers_(std::move(drivers)), facts_(std::move(facts)) {}

  async::Task<Result<netstate::State>> observe(Slices slices) override {
    co_return co_await worker_.run([this, slices] { return observe_all(slices, drivers_); });
  }

  async::Task<Result<netstate::HostFacts>> facts(FactsRequest request) override {
    co_return co_await worker_.run([this, request = std::move(request)] { return facts_(request); });
  }

  async::Task<Report> apply(netstate::Script script) override {
    auto report = co_await worker_.run([this, &script] { return run_script(script, drivers_); });
    if (report) co_return std::move(*report);
    co_return nothing_done(script, report.error());
  }

 private:
  async::Worker& worker_;
  std::vector<std::unique_ptr<Driver>> drivers_;
  FactsReader facts_;
};

}  // namespace

Report run_script(const netstate::Script& script, std::span<const std::unique_ptr<Driver>> drivers) {
  return Run(script, drivers).run();
}

Result<netstate::State> observe_all(Slices wanted, std::span<const std::unique_ptr<Driver>> drivers) {
  netstate::State state;
  for (const auto& driver : drivers) {
    if ((driver->slices() & wanted).empty()) continue;
    FABRIC_CHECK(driver->observe(wanted, state));
  }
  return state;
}

std::unique_ptr<Kernel> compose(async::Worker& worker, std::vector<std::unique_ptr<Driver>> drivers,
                                FactsReader facts) {
  return std::make_unique<ComposedKernel>(worker, std::move(drivers), std::move(facts));
}

}  // namespace fabric::kernel
