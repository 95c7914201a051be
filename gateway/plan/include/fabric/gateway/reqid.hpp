#pragma once

#include <fabric/netstate/state.hpp>

#include <map>
#include <set>
#include <string>

namespace fabric::gateway {

/// One reqid per remote cluster in our range: the low 24 bits are an FNV-1a hash of the id, clashes probe linearly in
/// the order of ids. 0 is not used.
std::map<std::string, netstate::Reqid> assign_reqids(const std::set<std::string>& cluster_ids);

}  // namespace fabric::gateway
