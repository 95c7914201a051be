#include <benchmark/benchmark.h>

#include "world.hpp"

/// How long one run of a planner takes. The gateway agent plans when something changed and once a second.
namespace fabric::bench {
namespace {

using namespace std::chrono_literals;

void plan_repeatedly(benchmark::State& state, const SaWorld& world) {
  std::size_t sas = 0;
  for (auto _ : state)
    sas = world.plan().desired.size();
  state.counters["sas"] = static_cast<double>(sas);
}

void plan_sas_steady(benchmark::State& state) {
  SaWorld world(static_cast<std::uint32_t>(state.range(0)));
  world.settle();
  plan_repeatedly(state, world);
}

/// The plan after the first generation was drawn: every inbound SA is made.
void plan_sas_start(benchmark::State& state) {
  SaWorld world(static_cast<std::uint32_t>(state.range(0)));
  world.step();
  plan_repeatedly(state, world);
}

/// Two generations on every side, all of their SAs in the kernel.
void plan_sas_rotation(benchmark::State& state) {
  SaWorld world(static_cast<std::uint32_t>(state.range(0)));
  world.settle();
  world.start_rotation();
  plan_repeatedly(state, world);
}

/// As above, while nothing comes from anybody: the uplink is cut.
void plan_sas_rotation_cut(benchmark::State& state) {
  SaWorld world(static_cast<std::uint32_t>(state.range(0)));
  world.settle();
  world.start_rotation();
  world.fall_silent(10min);
  plan_repeatedly(state, world);
}

/// After a restart of the agent: every SA in the kernel is adopted.
void plan_sas_restart(benchmark::State& state) {
  SaWorld world(static_cast<std::uint32_t>(state.range(0)));
  world.settle();
  world.restart();
  plan_repeatedly(state, world);
}

/// As planned when all of it is in the kernel.
gateway::PolicyInputs installed(std::uint32_t clusters) {
  auto inputs = policy_inputs(clusters, 20);
  inputs.holders = gateway::holders_of(gateway::plan_policies(inputs).policies);
  return inputs;
}

void plan_policies_steady(benchmark::State& state) {
  const auto inputs = installed(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state)
    benchmark::DoNotOptimize(gateway::plan_policies(inputs));
  state.counters["policies"] = static_cast<double>(gateway::plan_policies(inputs).policies.size());
}

netstate::State whole_state(std::uint32_t clusters) {
  SaWorld world(clusters);
  world.settle();
  netstate::State out = world.observed();
  out.policies = gateway::plan_policies(installed(clusters)).policies;
  return out;
}

void diff_of(benchmark::State& state, const netstate::State& observed, const netstate::State& desired) {
  std::size_t steps = 0;
  for (auto _ : state)
    steps = netstate::diff(observed, desired, netstate::kGatewaySlices).steps.size();
  state.counters["steps"] = static_cast<double>(steps);
}

void diff_steady(benchmark::State& state) {
  const auto whole = whole_state(static_cast<std::uint32_t>(state.range(0)));
  diff_of(state, whole, whole);
}

void diff_from_nothing(benchmark::State& state) {
  auto whole = whole_state(static_cast<std::uint32_t>(state.range(0)));
  whole.sas.clear();
  diff_of(state, {}, whole);
}

/// 200 clusters are what the design asks for; 1,000 show how the cost grows.
#define FABRIC_BENCH_BY_PEERS(name) BENCHMARK(name)->Arg(200)->Arg(1000)->Unit(benchmark::kMillisecond)

FABRIC_BENCH_BY_PEERS(plan_sas_start);
FABRIC_BENCH_BY_PEERS(plan_sas_steady);
FABRIC_BENCH_BY_PEERS(plan_sas_rotation);
FABRIC_BENCH_BY_PEERS(plan_sas_rotation_cut);
FABRIC_BENCH_BY_PEERS(plan_sas_restart);
FABRIC_BENCH_BY_PEERS(plan_policies_steady);
FABRIC_BENCH_BY_PEERS(diff_steady);
FABRIC_BENCH_BY_PEERS(diff_from_nothing);

}  // namespace
}  // namespace fabric::bench
