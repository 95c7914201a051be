#include <fabric/async/event.hpp>
#include <fabric/kernel/composition.hpp>
#include <fabric/kernel/fake_kernel.hpp>

#include <utility>

namespace fabric::kernel {

namespace {

class FakeDriver final : public Driver {
 public:
  explicit FakeDriver(FakeKernelState& state) : state_(state) {}

  netstate::Slices slices() const override { return netstate::Slices::all(); }

  Result<void> observe(netstate::Slices wanted, netstate::State& into) override { return state_.observe(wanted, into); }

  std::vector<Result<void>> apply(std::span<const netstate::Step> steps) override {
    std::vector<Result<void>> results;
    results.reserve(steps.size());
    for (const auto& step : steps)
      results.push_back(state_.carry_out(step));
    return results;
  }

 private:
  FakeKernelState& state_;
};

class FakeSaEvents final : public SaEvents {
 public:
  FakeSaEvents(FakeKernelState& state, async::Executor executor) : state_(state), arrived_(std::move(executor)) {
    state_.on_event = [this](const SaEvent& event) {
      events_.push_back(event);
      arrived_.notify();
    };
  }

  ~FakeSaEvents() override { state_.on_event = nullptr; }

  async::Task<Result<SaEvent>> next() override {
    while (events_.empty())
      FABRIC_CO_CHECK(co_await arrived_.wait());
    auto event = events_.front();
    events_.pop_front();
    co_return event;
  }

 private:
  FakeKernelState& state_;
  async::Notifier arrived_;
  std::deque<SaEvent> events_;
};

}  // namespace

std::unique_ptr<Driver> make_fake_driver(FakeKernelState& state) {
  return std::make_unique<FakeDriver>(state);
}

FakeKernel::FakeKernel(FakeKernelState& state) : state_(state) {
  drivers_.push_back(make_fake_driver(state));
}

async::Task<Result<netstate::State>> FakeKernel::observe(netstate::Slices slices) {
  co_return observe_all(slices, drivers_);
}

async::Task<Result<netstate::HostFacts>> FakeKernel::facts(FactsRequest request) {
  auto facts = state_.facts;
  for (const auto& name : request.sysctls) {
    const auto found = state_.sysctls.find(name);
    if (found != state_.sysctls.end()) facts.sysctls.insert_or_assign(name, found->second);
  }
  co_return facts;
}

async::Task<Report> FakeKernel::apply(netstate::Script script) {
  co_return run_script(script, drivers_);
}

std::unique_ptr<SaEvents> make_fake_sa_events(FakeKernelState& state, async::Executor executor) {
  return std::make_unique<FakeSaEvents>(state, std::move(executor));
}

}  // namespace fabric::kernel
