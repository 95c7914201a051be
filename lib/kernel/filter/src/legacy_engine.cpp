#include <array>
#include <utility>

#include "engine.hpp"
#include "ipset.hpp"
#include "legacy_table.hpp"

namespace fabric::kernel {

namespace {

constexpr std::array<std::string_view, 3> kTables{"nat", "filter", "mangle"};

class LegacyEngine final : public FilterEngine {
 public:
  LegacyEngine(IpsetSession sets, KernelSetNumbers numbers, LockOptions lock)
      : sets_(std::move(sets)), numbers_(std::move(numbers)), lock_(std::move(lock)) {}

  Result<FilterState> observe() override {
    FilterState state;
    FABRIC_TRY(state.ipsets, sets_.observe());
    for (const auto family : {Family::ipv4, Family::ipv6}) {
      for (const auto table : kTables) {
        if (!legacy_table_exists(family, table)) continue;
        FABRIC_TRY(auto chains, observe_legacy_table(family, table, numbers_));
        state.chains.merge(chains);
      }
    }
    return state;
  }

  Result<void> apply(const FilterChange& change) override {
    for (const auto& [name, set] : change.ipsets) {
      if (set) FABRIC_CHECK(sets_.put(name, *set));
    }
    std::map<std::pair<Family, std::string_view>, LegacyChange> tables;
    for (const auto& [key, rules] : change.chains) {
      const auto table = table_of(key.hook);
      if (rules || legacy_table_exists(key.family, table)) tables[{key.family, table}][key] = rules;
    }
    for (const auto& [table, chains] : tables) {
      FABRIC_CHECK(change_legacy_table(table.first, table.second, chains, numbers_, lock_));
    }
    for (const auto& [name, set] : change.ipsets) {
      if (!set) FABRIC_CHECK(sets_.remove(name));
    }
    return {};
  }

  Result<void> remove_all() override {
    FilterChange change;
    for (const auto family : {Family::ipv4, Family::ipv6}) {
      for (const auto hook : kHooks)
        change.chains[{family, hook}] = std::nullopt;
    }
    FABRIC_TRY(const auto names, sets_.names());
    for (const auto& name : names)
      change.ipsets[name] = std::nullopt;
    return apply(change);
  }

 private:
  IpsetSession sets_;
  KernelSetNumbers numbers_;
  LockOptions lock_;
};

}  // namespace

Result<std::unique_ptr<FilterEngine>> open_legacy_engine(const FilterOptions& options) {
  FABRIC_TRY(auto sets, IpsetSession::open());
  FABRIC_TRY(auto numbers, KernelSetNumbers::open());
  return std::make_unique<LegacyEngine>(std::move(sets), std::move(numbers),
                                        LockOptions{options.xtables_lock, options.lock_patience});
}

}  // namespace fabric::kernel
