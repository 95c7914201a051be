#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "legacy_rule.hpp"

/// Our chains in the legacy tables through libiptc and libip6tc.
namespace fabric::kernel {

/// "nat", "filter" or "mangle".
std::string_view table_of(FilterHook hook);
/// Whether the kernel has this legacy table in this namespace already; reading one that it lacks would create it.
bool legacy_table_exists(Family family, std::string_view table);
/// Whether an existing legacy table has such a chain.
bool legacy_chain_exists(Family family, std::string_view table, const std::string& chain);

struct LockOptions {
  std::string file;
  Duration patience{};
};

using LegacyChains = std::map<ChainKey, std::vector<FilterRule>>;
using LegacyChange = std::map<ChainKey, std::optional<std::vector<FilterRule>>>;

/// Our chains in one existing table.
Result<LegacyChains> observe_legacy_table(Family family, std::string_view table, const SetNumbers& numbers);

/// Writes and removes chains of one table in one commit, with the jumps to them, under the node's lock.
Result<void> change_legacy_table(Family family, std::string_view table, const LegacyChange& change,
                                 const SetNumbers& numbers, const LockOptions& lock);

}  // namespace fabric::kernel
