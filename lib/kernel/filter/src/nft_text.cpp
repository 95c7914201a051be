#include "nft_text.hpp"

#include <fabric/netstate/ownership.hpp>

#include <charconv>

#include <netinet/in.h>

namespace fabric::kernel {

namespace {

/// The packet's route leads through no IPsec transformation; the second is how numeric listings write it.
constexpr std::string_view kUntransformed = "rt ipsec missing";
constexpr std::string_view kUntransformedListed = "rt ipsec 0";

using Words = std::span<const std::string_view>;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (const auto part = trim(text.substr(0, end)); !part.empty()) parts.push_back(part);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

template <class Number>
bool number(std::string_view text, Number& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// Takes words from the front of a rule.
class Reader {
 public:
  explicit Reader(Words words) : words_(words) {}

  bool done() const { return words_.empty(); }

  /// Takes these words if they come next.
  bool take(std::string_view expected) {
    const auto wanted = split(expected, ' ');
    if (words_.size() < wanted.size() || !std::ranges::equal(words_.first(wanted.size()), wanted)) return false;
    words_ = words_.subspan(wanted.size());
    return true;
  }

  std::string_view word() {
    if (words_.empty()) return {};
    const auto first = words_.front();
    words_ = words_.subspan(1);
    return first;
  }

 private:
  Words words_;
};

void read_set(Reader& reader, std::string_view field, std::optional<std::string>& into) {
  if (!reader.take(field)) return;
  auto name = reader.word();
  if (name.starts_with('@')) name.remove_prefix(1);
  into = std::string(name);
}

void read_link(Reader& reader, std::string_view field, std::optional<std::string>& into) {
  if (!reader.take(field)) return;
  auto name = reader.word();
  if (name.size() >= 2 && name.starts_with('"') && name.ends_with('"')) name = name.substr(1, name.size() - 2);
  into = std::string(name);
}

void read_ports(Reader& reader, std::string_view name, std::uint8_t protocol, FilterRule& rule) {
  for (const auto& [field, into] : {std::pair("sport", &rule.sport), std::pair("dport", &rule.dport)}) {
    if (!reader.take(fmt::format("{} {}", name, field))) continue;
    std::uint16_t port = 0;
    number(reader.word(), port);
    rule.protocol = protocol;
    *into = port;
  }
}

void read_action(Reader& reader, Family family, FilterRule& rule) {
  if (reader.take("accept")) {
    rule.action = netstate::Accept{};
  } else if (reader.take("drop")) {
    rule.action = netstate::Drop{};
  } else if (reader.take(fmt::format("snat to {} saddr", nft_family(family)))) {
    rule.action = netstate::KeepSource{};
  } else if (reader.take("snat to")) {
    if (const auto to = net::IpAddress::parse(reader.word())) rule.action = netstate::SourceNat{*to};
  } else if (reader.take("tcp flags 0x2 / 0x2,0x4 tcp option maxseg size >") ||
             reader.take("tcp flags & (0x2 | 0x4) == 0x2 tcp option maxseg size >")) {
    std::uint16_t mss = 0;
    number(reader.word(), mss);
    if (reader.take("tcp option maxseg size set")) number(reader.word(), mss);
    rule.action = netstate::ClampMss{mss};
  }
}

/// Spellings of a ClampMss rule and of the test for IPsec that libnftables may use for the same; everything else is
/// compared as text.
std::string without_spelling(std::string text) {
  constexpr std::string_view kNewer = "tcp flags 0x2 / 0x2,0x4";
  constexpr std::string_view kOlder = "tcp flags & (0x2 | 0x4) == 0x2";
  if (const auto at = text.find(kNewer); at != std::string::npos) text.replace(at, kNewer.size(), kOlder);
  if (const auto at = text.find(kUntransformedListed); at != std::string::npos)
    text.replace(at, kUntransformedListed.size(), kUntransformed);
  return text;
}

FilterRule parse_rule(const ChainKey& key, std::string_view line) {
  FilterRule rule;
  const auto words = split(line, ' ');
  Reader reader(words);
  const auto family = nft_family(key.family);
  read_link(reader, "iifname", rule.in_link);
  read_link(reader, "oifname", rule.out_link);
  read_set(reader, fmt::format("{} saddr", family), rule.src_set);
  read_set(reader, fmt::format("{} daddr", family), rule.dst_set);
  rule.untransformed = reader.take(kUntransformed) || reader.take(kUntransformedListed);
  read_ports(reader, "udp", IPPROTO_UDP, rule);
  read_ports(reader, "tcp", IPPROTO_TCP, rule);
  if (!rule.protocol && reader.take("meta l4proto")) {
    std::uint8_t protocol = 0;
    number(reader.word(), protocol);
    rule.protocol = protocol;
  }
  read_action(reader, key.family, rule);
  // Decoding forgives; encoding what was decoded and comparing does not.
  const bool ours = reader.done() && validate(key, rule) &&
                    without_spelling(nft_rule(key, rule)) == without_spelling(std::string(line));
  return ours ? rule : unrecognised(line);
}

std::optional<Cidr> parse_element(std::string_view text) {
  if (text.contains('/')) {
    const auto prefix = Cidr::parse(text);
    return prefix ? std::optional(*prefix) : std::nullopt;
  }
  const auto address = net::IpAddress::parse(text);
  return address ? std::optional(Cidr::host(*address)) : std::nullopt;
}

/// The body of "set NAME { ... }", lines joined.
IpSet parse_set(Family family, std::string_view body) {
  IpSet set{.family = family, .entries = {}};
  const auto open = body.find('{');
  const auto close = body.rfind('}');
  const auto properties = trim(body.substr(0, open == std::string_view::npos ? open : body.find("elements")));
  bool ours =
      properties == (family == Family::ipv4 ? "type ipv4_addr flags interval" : "type ipv6_addr flags interval");
  if (open != std::string_view::npos && close != std::string_view::npos && close > open) {
    for (const auto element : split(body.substr(open + 1, close - open - 1), ',')) {
      const auto prefix = parse_element(element);
      if (prefix) set.entries.insert(*prefix);
      ours = ours && prefix;
    }
  }
  if (!ours) return {.family = family == Family::ipv4 ? Family::ipv6 : Family::ipv4, .entries = {}};
  return set;
}

/// Reads a listing block by block: lines of "set NAME {" or "chain NAME {" up to the line "}" one level below the
/// table.
class TableParser {
 public:
  explicit TableParser(Family family) : family_(family) {}

  void line(std::string_view text) {
    if (text.starts_with("table ")) return;
    if (kind_ == Kind::none) return begin(text);
    if (kind_ != Kind::set && text == "}") return end();
    // Elements close on the line of the last one ("... }"), so a lone brace ends the set.
    if (kind_ == Kind::set && text == "}") return end();
    if (kind_ == Kind::chain) return rule(text);
    body_ += body_.empty() ? "" : " ";
    body_ += text;
  }

  FilterState state;

 private:
  enum class Kind : std::uint8_t { none, set, chain, foreign };

  void begin(std::string_view text) {
    const auto words = split(text, ' ');
    if (words.size() != 3 || words[2] != "{") return;
    name_ = std::string(words[1]);
    body_.clear();
    kind_ = words[0] == "set" ? Kind::set : Kind::foreign;
    if (words[0] != "chain") return;
    kind_ = Kind::chain;
    typed_ = false;
    const auto hook = hook_of(name_);
    key_ = {.family = family_, .hook = hook.value_or(FilterHook::nat_postrouting)};
    auto& rules = state.chains[key_];
    if (!hook) rules.push_back(unrecognised("chain " + name_));
  }

  void rule(std::string_view text) {
    auto& rules = state.chains[key_];
    if (text == nft_chain_type(key_.hook))
      typed_ = true;
    else
      rules.push_back(parse_rule(key_, text));
  }

  void end() {
    if (kind_ == Kind::set && name_.starts_with(netstate::kSetPrefix)) state.ipsets[name_] = parse_set(family_, body_);
    // A chain without rules reads like an absent one unless something marks it.
    if (kind_ == Kind::chain && (!typed_ || state.chains[key_].empty()))
      state.chains[key_].push_back(unrecognised("chain"));
    kind_ = Kind::none;
  }

  Family family_;
  Kind kind_ = Kind::none;
  std::string name_;
  std::string body_;
  ChainKey key_;
  bool typed_ = false;
};

}  // namespace

std::string_view nft_family(Family family) {
  return family == Family::ipv4 ? "ip" : "ip6";
}

std::string_view nft_chain_type(FilterHook hook) {
  // Ten before the usual place (NF_IP_PRI_NAT_SRC is 100, filter 0, mangle -150), so that ours come first.
  switch (hook) {
    case FilterHook::nat_postrouting:
      return "type nat hook postrouting priority 90; policy accept;";
    case FilterHook::filter_forward:
      return "type filter hook forward priority -10; policy accept;";
    case FilterHook::filter_input:
      return "type filter hook input priority -10; policy accept;";
    case FilterHook::mangle_forward:
      return "type filter hook forward priority -160; policy accept;";
    case FilterHook::mangle_postrouting:
      return "type filter hook postrouting priority -160; policy accept;";
  }
  return "";
}

std::string nft_rule(const ChainKey& key, const FilterRule& rule) {
  const auto family = nft_family(key.family);
  std::string text;
  if (rule.in_link) text += fmt::format("iifname \"{}\" ", *rule.in_link);
  if (rule.out_link) text += fmt::format("oifname \"{}\" ", *rule.out_link);
  if (rule.src_set) text += fmt::format("{} saddr @{} ", family, *rule.src_set);
  if (rule.dst_set) text += fmt::format("{} daddr @{} ", family, *rule.dst_set);
  const auto* clamp = std::get_if<netstate::ClampMss>(&rule.action);
  if (rule.untransformed) text += fmt::format("{} ", kUntransformed);
  const auto* ports = rule.protocol == IPPROTO_UDP ? "udp" : "tcp";
  if (rule.sport) text += fmt::format("{} sport {} ", ports, *rule.sport);
  if (rule.dport) text += fmt::format("{} dport {} ", ports, *rule.dport);
  // A port, and the test of TCP flags, imply the protocol.
  if (rule.protocol && !rule.sport && !rule.dport && clamp == nullptr)
    text += fmt::format("meta l4proto {} ", *rule.protocol);
  if (clamp != nullptr) {
    return text +
           fmt::format("tcp flags & (0x2 | 0x4) == 0x2 tcp option maxseg size > {0} tcp option maxseg size set {0}",
                       clamp->mss);
  }
  if (std::holds_alternative<netstate::Accept>(rule.action)) return text + "accept";
  if (std::holds_alternative<netstate::Drop>(rule.action)) return text + "drop";
  if (const auto* nat = std::get_if<netstate::SourceNat>(&rule.action))
    return text + fmt::format("snat to {}", nat->to);
  return text + fmt::format("snat to {} saddr", family);
}

std::string nft_elements(std::string_view verb, Family family, std::string_view name, std::span<const Cidr> prefixes) {
  if (prefixes.empty()) return {};
  std::string text = fmt::format("{} element {} {} {} {{ ", verb, nft_family(family), netstate::kNftTable, name);
  for (const auto& prefix : prefixes)
    text += fmt::format("{}, ", prefix);
  text.resize(text.size() - 2);
  return text + " }\n";
}

std::string nft_new_set(std::string_view name, const IpSet& set) {
  const auto type = set.family == Family::ipv4 ? "ipv4_addr" : "ipv6_addr";
  return fmt::format("add set {} {} {} {{ type {}; flags interval; }}\n", nft_family(set.family), netstate::kNftTable,
                     name, type) +
         nft_elements("add", set.family, name, canonical(set));
}

std::string nft_chain(const ChainKey& key, std::span<const FilterRule> rules) {
  const auto place = fmt::format("{} {} {}", nft_family(key.family), netstate::kNftTable, chain_name(key.hook));
  std::string text = fmt::format("add chain {} {{ {} }}\nflush chain {}\n", place, nft_chain_type(key.hook), place);
  for (const auto& rule : rules)
    text += fmt::format("add rule {} {}\n", place, nft_rule(key, rule));
  return text;
}

FilterState parse_nft_table(Family family, std::string_view listing) {
  TableParser parser(family);
  for (const auto line : split(listing, '\n'))
    parser.line(line);
  return std::move(parser.state);
}

}  // namespace fabric::kernel
