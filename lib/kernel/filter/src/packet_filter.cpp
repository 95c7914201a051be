#include <algorithm>
#include <utility>

#include "engine.hpp"

namespace fabric::kernel {

namespace {

using netstate::ChainObject;
using netstate::FilterBackend;
using netstate::IpSetObject;
using netstate::Slice;
using netstate::Step;
using netstate::Verb;

/// Adds a step to a change after checking that it may be written.
Result<void> add(const Step& step, FilterChange& change) {
  const bool remove = step.verb == Verb::remove;
  if (const auto* set = std::get_if<IpSetObject>(&step.object)) {
    FABRIC_CHECK(validate(set->name, remove ? IpSet{} : set->set));
    change.ipsets[set->name] = remove ? std::nullopt : std::optional(set->set);
    return {};
  }
  const auto* chain = std::get_if<ChainObject>(&step.object);
  if (chain == nullptr) return fail(Errc::unsupported, "not an object of a packet filter");
  if (remove || chain->rules.empty()) {
    change.chains[chain->key] = std::nullopt;
    return {};
  }
  for (const auto& rule : chain->rules)
    FABRIC_CHECK(validate(chain->key, rule));
  change.chains[chain->key] = chain->rules;
  return {};
}

}  // namespace

PacketFilter::PacketFilter(FilterDetection detection, std::unique_ptr<FilterEngine> chosen,
                           std::unique_ptr<FilterEngine> other)
    : detection_(std::move(detection)), chosen_(std::move(chosen)), other_(std::move(other)) {}

PacketFilter::~PacketFilter() = default;

Result<std::unique_ptr<PacketFilter>> PacketFilter::open(const FilterOptions& options) {
  auto detection = detect_filter_backend();
  if (options.backend) {
    detection.backend = *options.backend;
    detection.reason += "; the backend is configured";
  }
  auto nft = open_nft_engine();
  auto legacy = open_legacy_engine(options);
  auto& chosen = detection.backend == FilterBackend::nft ? nft : legacy;
  auto& other = detection.backend == FilterBackend::nft ? legacy : nft;
  if (!chosen) return std::unexpected(std::move(chosen).error().with("opening the packet filter"));
  // What cannot be opened or read holds nothing of ours.
  std::unique_ptr<FilterEngine> rest;
  if (other) {
    const auto left = (*other)->observe();
    if (left && !left->empty()) rest = *std::move(other);
  }
  return std::unique_ptr<PacketFilter>(new PacketFilter(std::move(detection), *std::move(chosen), std::move(rest)));
}

netstate::Slices PacketFilter::slices() const {
  return {Slice::ipsets, Slice::chains};
}

Result<void> PacketFilter::observe(netstate::Slices wanted, netstate::State& into) {
  FABRIC_TRY(auto state, chosen_->observe());
  if (other_ != nullptr) {
    // Reported as drift, so that a diff leads to a write and that to sweep().
    FABRIC_TRY(const auto left, other_->observe());
    for (const auto& [key, rules] : left.chains)
      state.chains[key].push_back(unrecognised("left in the other backend"));
    for (const auto& [name, set] : left.ipsets)
      state.ipsets.insert({name, {.family = set.family, .entries = {}}});
  }
  if (wanted.has(Slice::ipsets)) into.ipsets = std::move(state.ipsets);
  if (wanted.has(Slice::chains)) into.chains = std::move(state.chains);
  return {};
}

std::vector<Result<void>> PacketFilter::apply(std::span<const Step> steps) {
  std::vector<Result<void>> results;
  FilterChange change;
  for (const auto& step : steps)
    results.push_back(add(step, change));
  if (auto written = chosen_->apply(change); !written && steps.size() == 1) {
    if (results.front()) results.front() = std::move(written);
  } else if (!written) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (results[i]) results[i] = std::move(apply(steps.subspan(i, 1)).front());
    }
    return results;
  }
  const bool all = std::ranges::all_of(results, [](const auto& result) { return result.has_value(); });
  if (all && other_ != nullptr) {
    if (auto swept = sweep(steps); !swept) results.back() = std::move(swept);
  }
  return results;
}

Result<void> PacketFilter::sweep(std::span<const Step> steps) {
  const bool chains =
      std::ranges::any_of(steps, [](const Step& s) { return std::holds_alternative<ChainObject>(s.object); });
  FABRIC_TRY(const auto left, other_->observe());
  // Sets are written before the chains that use them: the old chains stay until then.
  if (!chains && !left.chains.empty()) return {};
  FABRIC_CHECK(other_->remove_all().with("removing what is left in the other backend"));
  other_.reset();
  return {};
}

}  // namespace fabric::kernel
