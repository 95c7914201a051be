#include <fabric/netstate/ownership.hpp>

#include <algorithm>

#include <netinet/in.h>

#include "engine.hpp"

namespace fabric::kernel {

namespace {

// IPSET_MAXNAMELEN and IFNAMSIZ without the terminating zero; one byte of a set's name is kept for that of its
// stand-in.
constexpr std::size_t kMaxSetName = 31;
constexpr std::size_t kMaxLinkName = 15;

bool is_name(std::string_view text, std::size_t longest) {
  constexpr std::string_view kOthers = "-_.@";
  const auto usual = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kOthers.contains(c);
  };
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, usual);
}

/// A drop is for packets on their way out to a set. Without these conditions it would cut the node off.
Result<void> validate_drop(const ChainKey& key, const FilterRule& rule) {
  if (key.hook != FilterHook::mangle_forward && key.hook != FilterHook::mangle_postrouting) {
    return fail(Errc::invalid, "{}: only the mangle hooks drop", chain_name(key.hook));
  }
  if (!rule.untransformed || !rule.dst_set) {
    return fail(Errc::invalid, "{}: a drop of more than untransformed packets to a set", chain_name(key.hook));
  }
  return {};
}

Result<void> validate_action(const ChainKey& key, const FilterRule& rule) {
  const bool nat = key.hook == FilterHook::nat_postrouting;
  const bool keeps = std::holds_alternative<netstate::KeepSource>(rule.action);
  const auto* translation = std::get_if<netstate::SourceNat>(&rule.action);
  const bool clamps = std::holds_alternative<netstate::ClampMss>(rule.action);
  if (nat != (keeps || translation != nullptr)) {
    return fail(Errc::invalid, "{}: keeping or translating sources belongs to nat postrouting and nothing else does",
                chain_name(key.hook));
  }
  if (clamps && key.hook != FilterHook::mangle_forward) {
    return fail(Errc::invalid, "{}: only mangle forward clamps the MSS", chain_name(key.hook));
  }
  if (std::holds_alternative<netstate::Drop>(rule.action)) FABRIC_CHECK(validate_drop(key, rule));
  if (translation != nullptr && translation->to.family() != key.family) {
    return fail(Errc::invalid, "{}: {} is of another family", chain_name(key.hook), translation->to);
  }
  if (clamps && rule.protocol.value_or(IPPROTO_TCP) != IPPROTO_TCP) {
    return fail(Errc::invalid, "{}: the MSS of a protocol other than TCP", chain_name(key.hook));
  }
  return {};
}

}  // namespace

Result<void> validate(const ChainKey& key, const FilterRule& rule) {
  for (const auto* set : {&rule.src_set, &rule.dst_set}) {
    if (set->has_value() && !is_name(**set, kMaxSetName))
      return fail(Errc::invalid, "'{}' is not the name of a set", **set);
  }
  for (const auto* link : {&rule.in_link, &rule.out_link}) {
    if (link->has_value() && !is_name(**link, kMaxLinkName))
      return fail(Errc::invalid, "'{}' is not the name of a link", **link);
  }
  const bool postrouting = key.hook == FilterHook::nat_postrouting || key.hook == FilterHook::mangle_postrouting;
  if (postrouting && rule.in_link) {
    return fail(Errc::invalid, "{}: the incoming link is not known there", chain_name(key.hook));
  }
  if (key.hook == FilterHook::filter_input && rule.out_link) {
    return fail(Errc::invalid, "{}: there is no outgoing link", chain_name(key.hook));
  }
  const auto protocol = rule.protocol.value_or(0);
  for (const auto port : {rule.dport, rule.sport}) {
    if (port && protocol != IPPROTO_UDP && protocol != IPPROTO_TCP)
      return fail(Errc::invalid, "{}: port {} without UDP or TCP", chain_name(key.hook), *port);
  }
  if (rule.untransformed && key.hook == FilterHook::filter_input) {
    return fail(Errc::invalid, "{}: nothing leaves there that a policy could transform", chain_name(key.hook));
  }
  return validate_action(key, rule);
}

Result<void> validate(std::string_view set_name, const IpSet& set) {
  if (!is_name(set_name, kMaxSetName) || !set_name.starts_with(netstate::kSetPrefix)) {
    return fail(Errc::invalid, "'{}' is not the name of a set of ours", set_name);
  }
  for (const auto& prefix : set.entries) {
    if (prefix.family() != set.family) return fail(Errc::invalid, "set {}: {} is of another family", set_name, prefix);
  }
  return {};
}

std::string_view chain_name(FilterHook hook) {
  switch (hook) {
    case FilterHook::nat_postrouting:
      return "FABRIC-POSTROUTING";
    case FilterHook::filter_forward:
      return "FABRIC-FORWARD";
    case FilterHook::filter_input:
      return "FABRIC-INPUT";
    case FilterHook::mangle_forward:
      return "FABRIC-MANGLE";
    case FilterHook::mangle_postrouting:
      return "FABRIC-CLEAR-TEXT";
  }
  return "";
}

std::optional<FilterHook> hook_of(std::string_view name) {
  for (const auto hook : kHooks) {
    if (chain_name(hook) == name) return hook;
  }
  return std::nullopt;
}

FilterRule unrecognised(std::string_view text) {
  // The blank makes it no valid name of a set.
  FilterRule rule;
  rule.src_set = fmt::format("not ours: {}", text);
  return rule;
}

std::vector<Cidr> canonical(const IpSet& set) {
  const std::vector<Cidr> prefixes(set.entries.begin(), set.entries.end());
  return net::canonical_set(prefixes);
}

}  // namespace fabric::kernel
