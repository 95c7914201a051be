#pragma once

#include <fabric/base/error.hpp>
#include <fabric/kernel/filter.hpp>
#include <fabric/netstate/state.hpp>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::kernel {

using netstate::ChainKey;
using netstate::Cidr;
using netstate::Family;
using netstate::FilterHook;
using netstate::FilterRule;
using netstate::IpSet;

/// The slices of netstate::State that a packet filter holds.
struct FilterState {
  std::map<std::string, IpSet> ipsets;
  std::map<ChainKey, std::vector<FilterRule>> chains;

  bool empty() const { return ipsets.empty() && chains.empty(); }
};

/// What to write: sets and chains that are not named stay, nullopt removes.
struct FilterChange {
  std::map<std::string, std::optional<IpSet>> ipsets;
  std::map<ChainKey, std::optional<std::vector<FilterRule>>> chains;
};

/// One way to have rules in the kernel.
class FilterEngine {
 public:
  FilterEngine() = default;
  FilterEngine(const FilterEngine&) = delete;
  FilterEngine& operator=(const FilterEngine&) = delete;
  virtual ~FilterEngine() = default;
  virtual Result<FilterState> observe() = 0;
  /// Fills sets, then writes and removes chains, then removes sets. Rules were validated.
  virtual Result<void> apply(const FilterChange& change) = 0;
  /// Takes away everything of ours.
  virtual Result<void> remove_all() = 0;
};

Result<std::unique_ptr<FilterEngine>> open_legacy_engine(const FilterOptions& options);
Result<std::unique_ptr<FilterEngine>> open_nft_engine();
bool nft_supported();

/// Refuses what no backend may write: actions in hooks where they mean nothing, ports without protocol, foreign names.
Result<void> validate(const ChainKey& key, const FilterRule& rule);
Result<void> validate(std::string_view set_name, const IpSet& set);

/// "FABRIC-POSTROUTING", in both backends.
std::string_view chain_name(FilterHook hook);
std::optional<FilterHook> hook_of(std::string_view chain_name);
inline constexpr std::array kHooks{FilterHook::nat_postrouting, FilterHook::filter_forward, FilterHook::filter_input,
                                   FilterHook::mangle_forward, FilterHook::mangle_postrouting};

/// A rule that equals none of any plan; the text says what was found.
FilterRule unrecognised(std::string_view text);

/// Without the prefixes that others contain.
std::vector<Cidr> canonical(const IpSet& set);

}  // namespace fabric::kernel
