#pragma once

#include <fabric/gateway/sa_plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Two gateways that run the real planner over fake kernels and an eventually consistent board: a read may return any
/// version that is not older than the last one. explore() visits every interleaving breadth first.
namespace fabric::gateway::model {

/// Steps that are done wrong on purpose, to see that the model notices.
enum class Mistake {
  none,
  publish_before_install,  ///< A generation is published when it is drawn.
  switch_without_proof,    ///< The planner is told that the peer has seen everything.
  drain_while_in_use,      ///< The planner is told that no SA has traffic.
};

struct Bounds {
  int rotations = 1;  ///< Per gateway.
  int restarts = 0;   ///< Per gateway; the kernel stays as it is.
  /// Per gateway: all its SAs are removed by hand. Packets are lost then, so that delivery is demanded only of a world
  /// that came to rest.
  int flushes = 0;
  /// Both gateways hold PSK 1 at first, and each gets PSK 2 beside it at a moment of its own.
  bool psk_arrives = false;
  /// Each loses PSK 1 at a moment of its own, once every record on the board lists PSK 2.
  bool psk_leaves = false;
  /// A read and the plan after it are one step. Fewer states; what lies between them is a gateway that is slow to plan.
  bool plan_at_once = false;
  std::size_t max_states = 1'000'000;
  std::size_t converge_every = 64;  ///< From every n-th state the world is left to itself and must come to rest.
  Mistake mistake = Mistake::none;
};

struct Outcome {
  std::size_t states = 0;
  bool exhausted = false;          ///< Every reachable state was visited.
  std::string violation;           ///< Empty when all invariants hold.
  std::vector<std::string> trace;  ///< Steps that lead to the violation.
};

Outcome explore(const Bounds& bounds);

/// One random interleaving of so many steps: deeper than explore() comes, and not complete. The same seed walks the
/// same way.
Outcome wander(const Bounds& bounds, std::uint32_t seed, std::size_t steps);

}  // namespace fabric::gateway::model
