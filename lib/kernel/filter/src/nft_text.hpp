#pragma once

#include <string>
#include <string_view>

#include "engine.hpp"

/// Our rules in the language of nft, as libnftables lists them with numeric output. Pure.
namespace fabric::kernel {

/// "ip" or "ip6": one table for each family, since chains of type nat in inet tables need Linux 5.2.
std::string_view nft_family(Family family);

/// "type nat hook postrouting priority 90; policy accept;"
std::string_view nft_chain_type(FilterHook hook);

/// The canonical text of a valid rule.
std::string nft_rule(const ChainKey& key, const FilterRule& rule);

/// Statements that create the set with its content.
std::string nft_new_set(std::string_view name, const IpSet& set);
/// "add element ip fabric NAME { a, b }" and the like; empty text for no prefixes.
std::string nft_elements(std::string_view verb, Family family, std::string_view name, std::span<const Cidr> prefixes);
/// Statements that make the chain what it shall be, whether it exists or not.
std::string nft_chain(const ChainKey& key, std::span<const FilterRule> rules);

/// Decodes the listing of one table. Whatever is not as we write it becomes an unrecognised rule of its chain; a set
/// with other properties is reported with the content of another family, so that it equals no plan.
FilterState parse_nft_table(Family family, std::string_view listing);

}  // namespace fabric::kernel
