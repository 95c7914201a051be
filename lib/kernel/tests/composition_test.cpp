#include <fabric/async/testing.hpp>
#include <fabric/async/worker.hpp>
#include <fabric/kernel/composition.hpp>
#include <fabric/kernel/fake_kernel.hpp>
#include <fabric/netstate/diff.hpp>

#include <gmock/gmock.h>

#include <cerrno>
#include <thread>

#include "build.hpp"

namespace fabric::kernel {
namespace {

using namespace netstate;
using namespace netstate::test;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::unique_ptr<Driver>> fake_drivers(FakeKernelState& state) {
  std::vector<std::unique_ptr<Driver>> drivers;
  drivers.push_back(make_fake_driver(state));
  return drivers;
}

/// A worker node: everything that depends on everything.
State worker_node() {
  State state;
  state.links["vx-fabric"] = vxlan();
  state.fdb = {{"vx-fabric", net::Mac{{2, 0, 0, 0, 0, 9}}, ip("192.0.2.9")}};
  state.neighbours = {{"vx-fabric", ip("169.254.1.1"), net::Mac{{2, 0, 0, 0, 0, 9}}}};
  state.routes[{cidr("10.2.0.0/16")}] = {"vx-fabric", ip("169.254.1.1"), {}, 1400};
  state.ipsets["fabric-remote-4"] = {Family::ipv4, {cidr("10.2.0.0/16")}};
  FilterRule rule;
  rule.dst_set = "fabric-remote-4";
  state.chains[{Family::ipv4, FilterHook::filter_forward}] = {rule};
  state.chains[{Family::ipv6, FilterHook::filter_forward}] = {FilterRule{}};
  return state;
}

std::size_t index_of(const Script& script, std::string_view description) {
  for (std::size_t i = 0; i < script.steps.size(); ++i) {
    if (describe(script.steps[i]).find(description) != std::string::npos) return i;
  }
  ADD_FAILURE() << "no step " << description;
  return 0;
}

TEST(RunScript, DoesAllSteps) {
  FakeKernelState kernel;
  const auto script = diff({}, worker_node(), Slices::all());
  const auto report = run_script(script, fake_drivers(kernel));
  EXPECT_TRUE(report.ok()) << report.first_error()->message();
  EXPECT_EQ(report.results.size(), script.steps.size());
  EXPECT_EQ(kernel.ours, worker_node());
  EXPECT_EQ(kernel.history, script.steps);
}

TEST(RunScript, SkipsWhatHangsOnALinkThatFailedAndDoesTheRest) {
  FakeKernelState kernel;
  kernel.fail_next(Slice::links, EPERM);
  const auto script = diff({}, worker_node(), Slices::all());
  const auto report = run_script(script, fake_drivers(kernel));
  EXPECT_EQ(report.count(Outcome::failed), 1U);
  EXPECT_EQ(report.count(Outcome::skipped), 3U) << "FDB entry, neighbour, route";
  const auto& route = report.results[index_of(script, "route")];
  EXPECT_EQ(route.outcome, Outcome::skipped);
  EXPECT_THAT(route.error->message(), StartsWith("add route 10.2.0.0/16"));
  EXPECT_THAT(route.error->message(), HasSubstr("link vx-fabric"));
  EXPECT_EQ(report.first_error()->code, Errc::forbidden);
  EXPECT_THAT(report.first_error()->message(), StartsWith("add link vx-fabric"));
  EXPECT_EQ(kernel.ours.chains, worker_node().chains);
}

TEST(RunScript, SkipsTheChainWhoseSetFailed) {
  FakeKernelState kernel;
  kernel.fail_next(Slice::ipsets, ENOMEM);
  const auto script = diff({}, worker_node(), Slices::all());
  const auto report = run_script(script, fake_drivers(kernel));
  EXPECT_EQ(report.results[index_of(script, "chain IPv4")].outcome, Outcome::skipped);
  EXPECT_EQ(report.results[index_of(script, "chain IPv6")].outcome, Outcome::done);
}

TEST(RunScript, SkippedStepsHoldBackWhatDependsOnThem) {
  FakeKernelState kernel;
  ASSERT_TRUE(run_script(diff({}, worker_node(), Slices::all()), fake_drivers(kernel)).ok());
  auto desired = worker_node();
  desired.ipsets.erase("fabric-remote-4");
  desired.ipsets["fabric-new-4"] = {Family::ipv4, {}};
  desired.chains[{Family::ipv4, FilterHook::filter_forward}][0].dst_set = "fabric-new-4";
  kernel.fail_next(Slice::ipsets, ENOMEM);
  const auto script = diff(kernel.ours, desired, Slices::all());
  const auto report = run_script(script, fake_drivers(kernel));
  EXPECT_EQ(report.results[index_of(script, "replace chain")].outcome, Outcome::skipped);
  EXPECT_EQ(report.results[index_of(script, "remove set")].outcome, Outcome::skipped);
}

TEST(RunScript, OneFailureLeavesSiblingsOfTheSamePhase) {
  FakeKernelState kernel;
  State desired;
  desired.sas[sa_key("192.0.2.1", 0x1000)] = sa("198.51.100.1", 1);
  desired.sas[sa_key("192.0.2.1", 0x1001)] = sa("198.51.100.2", 2);
  kernel.fail_next(Slice::sas, ENOMEM);
  const auto report = run_script(diff({}, desired, Slices::all()), fake_drivers(kernel));
  EXPECT_EQ(report.count(Outcome::failed), 1U);
  EXPECT_EQ(report.count(Outcome::done), 1U);
}

TEST(RunScript, SaysThatAProgramHasNoDriverForASlice) {
  const auto script = diff({}, worker_node(), {Slice::links});
  const auto report = run_script(script, {});
  ASSERT_EQ(report.results.size(), 1U);
  EXPECT_EQ(report.results[0].error->code, Errc::unsupported);
}

TEST(FakeKernel, AnswersThePortsVerbs) {
  async::TestLoop loop;
  FakeKernelState state;
  state.sysctls["net/ipv4/ip_forward"] = "1";
  state.facts.filter_backend = FilterBackend::legacy;
  FakeKernel kernel(state);
  const auto script = diff({}, worker_node(), kRouteAgentSlices);
  const auto both = [](FakeKernel& k, Script s) -> async::Task<Result<State>> {
    const auto report = co_await k.apply(std::move(s));
    EXPECT_TRUE(report.ok());
    co_return co_await k.observe(kRouteAgentSlices);
  };
  EXPECT_EQ(loop.run(both(kernel, script)).value(), worker_node());
  const auto facts = loop.run(kernel.facts({{"net/ipv4/ip_forward", "net/ipv4/absent"}})).value();
  EXPECT_EQ(facts.filter_backend, FilterBackend::legacy);
  EXPECT_EQ(facts.sysctls, (std::map<std::string, std::string>{{"net/ipv4/ip_forward", "1"}}));
}

TEST(FakeKernel, ReportsAFailedObservation) {
  async::TestLoop loop;
  FakeKernelState state;
  state.fail_next_observe(ENOBUFS);
  FakeKernel kernel(state);
  EXPECT_EQ(loop.run(kernel.observe(Slices::all())).error().code, Errc::unavailable);
  EXPECT_TRUE(loop.run(kernel.observe(Slices::all())).has_value());
}

TEST(FakeKernel, TellsWhenAKeyIsInstalledTwice) {
  FakeKernelState state;
  const Step add{Phase::inbound_sas, Verb::add, SaObject{sa_key("192.0.2.1", 0x1000), sa("198.51.100.1", 1)}};
  ASSERT_TRUE(state.carry_out(add).has_value());
  state.ours.sas.clear();
  ASSERT_TRUE(state.carry_out(add).has_value());
  EXPECT_THAT(state.installed_twice, testing::ElementsAre(sa_key("192.0.2.1", 0x1000)));
}

TEST(FakeKernel, EmitsExpiryWhenTrafficReachesALimit) {
  async::TestLoop loop;
  FakeKernelState state;
  const auto events = make_fake_sa_events(state, loop.executor());
  auto limited = sa("198.51.100.1", 1);
  limited.soft_packets = 10;
  limited.hard_packets = 20;
  const auto key = sa_key("192.0.2.1", 0x1000);
  ASSERT_TRUE(state.carry_out({Phase::inbound_sas, Verb::add, SaObject{key, limited}}).has_value());
  std::optional<Result<SaEvent>> event;
  loop.start(events->next(), event);
  loop.settle();
  state.count(key, 9, 900);
  loop.settle();
  EXPECT_FALSE(event.has_value());
  state.count(key, 1, 100);
  loop.settle();
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->value(), (SaEvent{SaEvent::Kind::soft_expired, key, limited.reqid}));
  state.count(key, 10, 1000);
  EXPECT_EQ(loop.run(events->next()).value().kind, SaEvent::Kind::hard_expired);
  EXPECT_FALSE(state.ours.sas.contains(key));
}

/// Notes the thread it is called on.
class ThreadNote final : public Driver {
 public:
  explicit ThreadNote(std::thread::id& seen) : seen_(seen) {}

  Slices slices() const override { return {Slice::sas}; }

  Result<void> observe(Slices, State&) override {
    seen_ = std::this_thread::get_id();
    return {};
  }

  std::vector<Result<void>> apply(std::span<const Step> steps) override {
    seen_ = std::this_thread::get_id();
    return std::vector<Result<void>>(steps.size());
  }

 private:
  std::thread::id& seen_;
};

TEST(Composition, WorksOnTheWorkerThreadAndAnswersOnTheIoThread) {
  async::TestLoop loop;
  async::Worker worker("kernel");
  std::thread::id seen;
  std::vector<std::unique_ptr<Driver>> drivers;
  drivers.push_back(std::make_unique<ThreadNote>(seen));
  const auto kernel =
      compose(worker, std::move(drivers), [](const FactsRequest&) { return Result<HostFacts>(HostFacts{}); });
  const auto io_thread = std::this_thread::get_id();
  EXPECT_TRUE(loop.run_blocking(kernel->observe({Slice::sas})).has_value());
  EXPECT_NE(seen, std::thread::id());
  EXPECT_NE(seen, io_thread);
  EXPECT_TRUE(loop.run_blocking(kernel->facts({})).has_value());

  seen = {};
  State desired;
  desired.sas[sa_key("192.0.2.1", 0x1000)] = sa("198.51.100.1", 1);
  const auto apply = [](Kernel& k, Script script) -> async::Task<Result<Report>> {
    co_return co_await k.apply(std::move(script));
  };
  const auto report = loop.run_blocking(apply(*kernel, diff({}, desired, {Slice::sas})));
  EXPECT_EQ(report->results.size(), 1U);
  EXPECT_TRUE(report->ok());
  EXPECT_NE(seen, std::thread::id());
  EXPECT_NE(seen, io_thread);
}

}  // namespace
}  // namespace fabric::kernel
