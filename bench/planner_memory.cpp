#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <malloc.h>
#include <string>

#include "world.hpp"

/// What the state of the planners weighs: planner_memory CLUSTERS PREFIXES. One line of JSON.
namespace fabric::bench {
namespace {

/// Resident memory of this process in KiB; free heap pages are given back first.
long resident_kib() {
  ::malloc_trim(0);
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

int run(std::uint32_t clusters, std::uint32_t prefixes) {
  const long empty = resident_kib();
  SaWorld world(clusters);
  world.settle();
  world.start_rotation();
  // What an agent holds at the end of a loop: observed and desired, both planners' plans, no script.
  const auto sas = world.plan();
  auto inputs = policy_inputs(clusters, prefixes);
  netstate::State observed = world.observed();
  observed.policies = gateway::plan_policies(inputs).policies;
  inputs.holders = gateway::holders_of(observed.policies);
  auto policies = gateway::plan_policies(inputs);
  netstate::State desired;
  desired.sas = sas.desired;
  desired.policies = std::move(policies.policies);
  const long full = resident_kib();
  fmt::print(
      "{{\"clusters\": {}, \"prefixes\": {}, \"sas\": {}, \"policies\": {}, \"empty_kib\": {}, \"full_kib\": {}}}\n",
      clusters, prefixes, observed.sas.size(), observed.policies.size(), empty, full);
  return 0;
}

}  // namespace
}  // namespace fabric::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: {} CLUSTERS PREFIXES\n", argv[0]);
    return 2;
  }
  return fabric::bench::run(static_cast<std::uint32_t>(std::stoul(argv[1])),
                            static_cast<std::uint32_t>(std::stoul(argv[2])));
}
