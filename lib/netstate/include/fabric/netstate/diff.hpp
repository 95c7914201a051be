#pragma once

#include <fabric/netstate/script.hpp>
#include <fabric/netstate/state.hpp>

namespace fabric::netstate {

/// The steps that turn the observed state into the desired one, for the owned slices only. Pure; the order of steps is
/// a function of the arguments. Objects in `observed` that do not carry our mark (ownership.hpp) are ignored.
///
/// SAs differ from everything else, because adding one twice repeats nonces and resets a replay window:
/// - desired with key material and absent: added;
/// - desired without key material and absent: no step, only the planner can answer with a new generation;
/// - observed and not desired: removed;
/// - observed with other attributes than desired: a finding, no step.
Script diff(const State& observed, const State& desired, Slices owned);

/// Whether a later step must not run because an earlier one failed or was skipped: a chain needs its sets, a route its
/// link, and nothing old is removed while its replacement is missing. Steps about unrelated objects stay independent.
bool depends_on(const Step& later, const Step& failed);

/// Whether changing one link into the other means creating it anew.
bool link_is_recreated(const VxlanLink& before, const VxlanLink& after);

}  // namespace fabric::netstate
