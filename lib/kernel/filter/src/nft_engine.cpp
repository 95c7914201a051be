#include <fabric/base/unique_resource.hpp>
#include <fabric/netstate/ownership.hpp>

#include <nftables/libnftables.h>

#include <algorithm>
#include <iterator>

#include "engine.hpp"
#include "nft_listing.hpp"
#include "nft_text.hpp"

namespace fabric::kernel {

namespace {

using Context = UniqueResource<&nft_ctx_free>;

Context new_context() {
  Context context(nft_ctx_new(NFT_CTX_DEFAULT));
  if (context == nullptr) return context;
  nft_ctx_output_set_flags(context.get(), NFT_CTX_OUTPUT_NUMERIC_ALL | NFT_CTX_OUTPUT_STATELESS);
  if (nft_ctx_buffer_output(context.get()) != 0 || nft_ctx_buffer_error(context.get()) != 0) context.reset();
  return context;
}

/// The first line of libnftables' error; the rest repeats the input.
std::string_view first_line(const char* text) {
  const std::string_view whole(text == nullptr ? "" : text);
  return whole.substr(0, whole.find('\n'));
}

class NftEngine final : public FilterEngine {
 public:
  Result<FilterState> observe() override;
  Result<void> apply(const FilterChange& change) override;
  Result<void> remove_all() override;

 private:
  Result<std::string> run(const std::string& commands);
  Result<std::set<Family>> tables();
};

/// A context keeps a cache of the ruleset that goes stale with the network namespace, so each transaction has its own.
Result<std::string> NftEngine::run(const std::string& commands) {
  const auto context = new_context();
  if (context == nullptr) return fail(Errc::unavailable, "out of memory for libnftables");
  if (nft_run_cmd_from_buffer(context.get(), commands.c_str()) != 0) {
    return fail(Errc::unavailable, "nftables: {}", first_line(nft_ctx_get_error_buffer(context.get())));
  }
  return std::string(nft_ctx_get_output_buffer(context.get()));
}

Result<std::set<Family>> NftEngine::tables() {
  FABRIC_TRY(const auto listing, run("list tables"));
  std::set<Family> found;
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    const auto line = fmt::format("table {} {}\n", nft_family(family), netstate::kNftTable);
    if (("\n" + listing).contains("\n" + line)) found.insert(family);
  }
  return found;
}

Result<FilterState> NftEngine::observe() {
  FABRIC_TRY(const auto present, tables());
  FilterState state;
  for (const auto family : present) {
    FABRIC_TRY(const auto listing, run(fmt::format("list table {} {}", nft_family(family), netstate::kNftTable)));
    auto part = parse_nft_table(family, listing);
    state.ipsets.merge(part.ipsets);
    state.chains.merge(part.chains);
  }
  return state;
}

FilterState merged(FilterState state, const FilterChange& change) {
  for (const auto& [name, set] : change.ipsets) {
    if (set)
      state.ipsets[name] = *set;
    else
      state.ipsets.erase(name);
  }
  for (const auto& [key, rules] : change.chains) {
    if (rules)
      state.chains[key] = *rules;
    else
      state.chains.erase(key);
  }
  return state;
}

bool holds_anything(const FilterState& state, Family family) {
  return std::ranges::any_of(state.ipsets, [&](const auto& set) { return set.second.family == family; }) ||
         std::ranges::any_of(state.chains, [&](const auto& chain) { return chain.first.family == family; });
}

/// Whether there are rules, or whole chains, that we did not write.
bool drifted(const FilterState& state) {
  return std::ranges::any_of(state.chains, [](const auto& chain) {
    return !std::ranges::all_of(chain.second,
                                [&](const FilterRule& rule) { return validate(chain.first, rule).has_value(); });
  });
}

std::string update_set(const std::string& name, const IpSet& before, const IpSet& after) {
  const auto wanted = canonical(after);
  std::vector<Cidr> gone;
  std::vector<Cidr> fresh;
  std::ranges::set_difference(before.entries, wanted, std::back_inserter(gone));
  std::ranges::set_difference(wanted, before.entries, std::back_inserter(fresh));
  return nft_elements("delete", after.family, name, gone) + nft_elements("add", after.family, name, fresh);
}

/// Only what changes. Deletions of sets come last, when no rule uses them any more.
std::string incremental(const FilterState& before, const FilterState& after, const FilterChange& change) {
  std::string text;
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    const auto table = fmt::format("table {} {}\n", nft_family(family), netstate::kNftTable);
    if (holds_anything(after, family)) text += "add " + table;
  }
  for (const auto& [name, set] : change.ipsets) {
    if (!set) continue;
    const auto present = before.ipsets.find(name);
    const bool exists = present != before.ipsets.end() && present->second.family == set->family;
    text += exists ? update_set(name, present->second, *set) : nft_new_set(name, *set);
  }
  for (const auto& [key, rules] : change.chains) {
    const auto place = fmt::format("{} {} {}\n", nft_family(key.family), netstate::kNftTable, chain_name(key.hook));
    if (rules)
      text += nft_chain(key, *rules);
    else if (before.chains.contains(key))
      text += fmt::format("flush chain {0}delete chain {0}", place);
  }
  for (const auto& [name, set] : change.ipsets) {
    const auto present = before.ipsets.find(name);
    if (set || present == before.ipsets.end()) continue;
    text += fmt::format("delete set {} {} {}\n", nft_family(present->second.family), netstate::kNftTable, name);
  }
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    if (!holds_anything(before, family) || holds_anything(after, family)) continue;
    text += fmt::format("delete table {} {}\n", nft_family(family), netstate::kNftTable);
  }
  return text;
}

/// Our tables anew. Rules that are not ours do not survive, as the tables are ours as a whole.
std::string whole(const FilterState& after) {
  std::string text;
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    const auto table = fmt::format("table {} {}\n", nft_family(family), netstate::kNftTable);
    text += fmt::format("add {0}delete {0}", table);
    if (holds_anything(after, family)) text += "add " + table;
  }
  for (const auto& [name, set] : after.ipsets)
    text += nft_new_set(name, set);
  for (auto [key, rules] : after.chains) {
    std::erase_if(rules, [&](const FilterRule& rule) { return !validate(key, rule); });
    if (!rules.empty()) text += nft_chain(key, rules);
  }
  return text;
}

Result<void> NftEngine::apply(const FilterChange& change) {
  FABRIC_TRY(const auto before, observe());
  const auto after = merged(before, change);
  if (!drifted(before)) {
    const auto update = incremental(before, after, change);
    if (update.empty() || run(update)) return {};
  }
  // Somebody changed our tables, or an older kernel sees overlaps with elements that the same transaction deletes: make
  // all of it anew.
  FABRIC_CHECK(run(whole(after)));
  return {};
}

Result<void> NftEngine::remove_all() {
  FABRIC_TRY(const auto present, tables());
  std::string text;
  for (const auto family : present)
    text += fmt::format("delete table {} {}\n", nft_family(family), netstate::kNftTable);
  if (!text.empty()) FABRIC_CHECK(run(text));
  return {};
}

}  // namespace

Result<std::unique_ptr<FilterEngine>> open_nft_engine() {
  if (new_context() == nullptr) return fail(Errc::unavailable, "out of memory for libnftables");
  return std::make_unique<NftEngine>();
}

std::string list_nft_chains() {
  const auto context = new_context();
  if (context == nullptr || nft_run_cmd_from_buffer(context.get(), "list chains") != 0) return {};
  return nft_ctx_get_output_buffer(context.get());
}

bool nft_supported() {
  const auto context = new_context();
  if (context == nullptr) return false;
  std::string probe;
  for (const auto family : {Family::ipv4, Family::ipv6}) {
    // A name of its own, so that the answer does not depend on what is there.
    const auto place = fmt::format("{} fabric-probe", nft_family(family));
    const auto type = family == Family::ipv4 ? "ipv4_addr" : "ipv6_addr";
    probe += fmt::format("add table {0}\nadd set {0} s {{ type {1}; flags interval; }}\n", place, type);
    probe += fmt::format("add chain {0} n {{ {1} }}\nadd rule {0} n {2} saddr @s snat to {2} saddr\n", place,
                         nft_chain_type(FilterHook::nat_postrouting), nft_family(family));
    probe += fmt::format(
        "add chain {0} m {{ {1} }}\nadd rule {0} m tcp option maxseg size > 1000 tcp option maxseg size set 1000\n",
        place, nft_chain_type(FilterHook::mangle_forward));
    probe += fmt::format("add chain {0} p {{ {1} }}\nadd rule {0} p rt ipsec missing drop\n", place,
                         nft_chain_type(FilterHook::mangle_postrouting));
  }
  nft_ctx_set_dry_run(context.get(), true);
  return nft_run_cmd_from_buffer(context.get(), probe.c_str()) == 0;
}

}  // namespace fabric::kernel
