#pragma once

#include <fabric/api/submariner.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <set>
#include <string>
#include <vector>

/// What Gateway.status.keys says, for people and for waiting. Pure.
namespace fabric::ctl {

/// One row for each gateway with its newest generation; empty when no gateway says anything about keys.
std::string keys_table(const std::vector<api::Gateway>& gateways, TimePoint now);

/// Names of the generations that a gateway holds now.
std::set<std::string> generations(const api::Gateway& gateway);

enum class RekeyPhase {
  asked,     ///< No generation that is newer than those at the time of the command.
  draining,  ///< A newer one carries traffic, an older one may still be in use.
  done,      ///< Only newer ones.
};

/// How far a gateway is that held the generations `before` when it was asked.
RekeyPhase rekey_phase(const std::set<std::string>& before, const api::Gateway& now);

/// "generation 1700000000000/3, drawn 12s ago because it was requested", of the newest generation.
std::string describe_newest(const api::Gateway& gateway, TimePoint now);

/// The gateways that are meant, by node name. Errc::not_found names those that there are; Errc::invalid when none was
/// named and not all were asked for.
Result<std::vector<api::Gateway>> choose_gateways(std::vector<api::Gateway> gateways,
                                                  const std::vector<std::string>& wanted, bool all);

}  // namespace fabric::ctl
