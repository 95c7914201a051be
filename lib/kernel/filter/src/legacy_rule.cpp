#include "legacy_rule.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

// clang-format off: libc's headers must come before the kernel's, which know them and not the other way round.
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_TCPMSS.h>
#include <linux/netfilter/xt_policy.h>
#include <linux/netfilter/xt_set.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
// clang-format on

namespace fabric::kernel {

namespace {

// The newest revision of the set match, in all kernels since 3.19: iptables prints no other, and what it cannot print
// makes everybody's iptables-save useless.
constexpr std::uint8_t kSetRevision = 4;
// Source NAT: revision 0 is the IPv4 one that iptables prints, revision 1 the one for IPv6.
constexpr std::uint8_t kSnat4Revision = 0;
constexpr std::uint8_t kSnat6Revision = 1;
constexpr std::uint16_t kAllPorts = 0xffff;
// Bits of xt_set_info::flags since revision 1 (enum ip_set_dim): bit 0 inverts, bit 1 takes the source of the one
// dimension. IPSET_SRC of xt_set.h is that of revision 0.
constexpr std::uint8_t kMatchSource = IPSET_DIM_ONE_SRC;
constexpr std::uint8_t kMatchDestination = 0;

constexpr std::size_t align(std::size_t size) {
  constexpr std::size_t unit = alignof(_xt_align);
  return (size + unit - 1) / unit * unit;
}

struct Extension {
  std::string name;
  std::uint8_t revision = 0;
  std::vector<std::uint8_t> payload;
  bool operator==(const Extension&) const = default;
};

template <class Payload>
Extension extension(std::string_view name, std::uint8_t revision, const Payload& payload) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&payload);
  return {std::string(name), revision, {bytes, bytes + sizeof payload}};
}

template <class Payload>
bool payload_of(std::span<const std::uint8_t> bytes, Payload& into) {
  if (bytes.size() < sizeof into) return false;
  std::memcpy(&into, bytes.data(), sizeof into);
  return true;
}

/// struct xt_entry_match and xt_entry_target have the same shape.
std::vector<std::uint8_t> serialise(const Extension& part) {
  std::vector<std::uint8_t> bytes(align(sizeof(xt_entry_match)) + align(part.payload.size()));
  xt_entry_match header{};
  header.u.user.match_size = static_cast<std::uint16_t>(bytes.size());
  header.u.user.revision = part.revision;
  std::copy_n(part.name.begin(), std::min(part.name.size(), sizeof header.u.user.name - 1), header.u.user.name);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!part.payload.empty()) std::memcpy(bytes.data() + align(sizeof header), part.payload.data(), part.payload.size());
  return bytes;
}

void put_link(std::span<char, IFNAMSIZ> name, std::span<unsigned char, IFNAMSIZ> mask,
              const std::optional<std::string>& link) {
  if (!link) return;
  const auto size = std::min<std::size_t>(link->size(), IFNAMSIZ - 1);
  std::copy_n(link->begin(), size, name.begin());
  std::fill_n(mask.begin(), size + 1, static_cast<unsigned char>(0xff));  // With the terminating zero: the whole name.
}

/// False when the mask is one of a prefix of names.
bool get_link(std::span<const char, IFNAMSIZ> name, std::span<const unsigned char, IFNAMSIZ> mask,
              std::optional<std::string>& link) {
  if (name[0] == 0) return true;
  link = std::string(name.data(), strnlen(name.data(), IFNAMSIZ));
  return mask[std::min<std::size_t>(link->size(), IFNAMSIZ - 1)] == 0xff;
}

template <class Address, class Header>
Header address_part(const FilterRule& rule) {
  Header header{};
  put_link(header.iniface, header.iniface_mask, rule.in_link);
  put_link(header.outiface, header.outiface_mask, rule.out_link);
  header.proto = rule.protocol.value_or(0);
  if (std::holds_alternative<netstate::ClampMss>(rule.action)) header.proto = IPPROTO_TCP;
  return header;
}

/// The entry from its address part, matches and target.
template <class Entry, class Header>
EntryBytes assemble(const Header& header, Header Entry::* member, std::span<const Extension> matches,
                    const Extension& target) {
  Entry entry{};
  entry.*member = header;
  std::vector<std::uint8_t> parts;
  for (const auto& match : matches) {
    const auto bytes = serialise(match);
    parts.insert(parts.end(), bytes.begin(), bytes.end());
  }
  entry.target_offset = static_cast<std::uint16_t>(sizeof entry + parts.size());
  const auto bytes = serialise(target);
  parts.insert(parts.end(), bytes.begin(), bytes.end());
  entry.next_offset = static_cast<std::uint16_t>(sizeof entry + parts.size());
  EntryBytes result((entry.next_offset + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
  auto* start = reinterpret_cast<std::uint8_t*>(result.data());
  std::memcpy(start, &entry, sizeof entry);
  std::memcpy(start + sizeof entry, parts.data(), parts.size());
  return result;
}

EntryBytes assemble(Family family, const FilterRule& rule, std::span<const Extension> matches,
                    const Extension& target) {
  if (family == Family::ipv4) {
    return assemble<ipt_entry>(address_part<in_addr, ipt_ip>(rule), &ipt_entry::ip, matches, target);
  }
  auto header = address_part<in6_addr, ip6t_ip6>(rule);
  if (header.proto != 0) header.flags |= IP6T_F_PROTO;
  return assemble<ip6t_entry>(header, &ip6t_entry::ipv6, matches, target);
}

Result<Extension> set_match(const std::string& name, std::uint8_t direction, const SetNumbers& numbers) {
  FABRIC_TRY(const auto number, numbers.number(name));
  xt_set_info_match_v4 match{};
  std::memset(&match, 0, sizeof match);  // Padding included, as the kernel keeps and returns it.
  match.match_set = {.index = number, .dim = 1, .flags = direction};
  return extension("set", kSetRevision, match);
}

/// `-m policy --dir out --pol none`: the route of the packet leads through no IPsec transformation.
Extension untransformed_match() {
  xt_policy_info policy{};
  std::memset(&policy, 0, sizeof policy);  // Padding too.
  policy.flags = XT_POLICY_MATCH_OUT | XT_POLICY_MATCH_NONE;
  return extension("policy", 0, policy);
}

Extension port_match(const FilterRule& rule) {
  const std::uint16_t first = rule.dport.value_or(0);
  const std::uint16_t last = rule.dport.value_or(kAllPorts);
  const std::uint16_t first_source = rule.sport.value_or(0);
  const std::uint16_t last_source = rule.sport.value_or(kAllPorts);
  if (rule.protocol == IPPROTO_UDP) {
    xt_udp udp{};
    std::memset(&udp, 0, sizeof udp);  // Padding too.
    udp.spts[0] = first_source;
    udp.spts[1] = last_source;
    udp.dpts[0] = first;
    udp.dpts[1] = last;
    return extension("udp", 0, udp);
  }
  xt_tcp tcp{.spts = {first_source, last_source},
             .dpts = {first, last},
             .option = 0,
             .flg_mask = 0,
             .flg_cmp = 0,
             .invflags = 0};
  if (std::holds_alternative<netstate::ClampMss>(rule.action)) {
    tcp.flg_mask = TH_SYN | TH_RST;
    tcp.flg_cmp = TH_SYN;
  }
  return extension("tcp", 0, tcp);
}

Extension target_of(const FilterRule& rule) {
  if (const auto* clamp = std::get_if<netstate::ClampMss>(&rule.action)) {
    return extension("TCPMSS", 0, xt_tcpmss_info{.mss = clamp->mss});
  }
  const auto* nat = std::get_if<netstate::SourceNat>(&rule.action);
  if (nat == nullptr) {
    return {std::holds_alternative<netstate::Drop>(rule.action) ? "DROP" : "ACCEPT", 0,
            std::vector<std::uint8_t>(sizeof(xt_standard_target) - sizeof(xt_entry_target))};
  }
  const auto bytes = nat->to.bytes();
  if (nat->to.is_v4()) {
    nf_nat_ipv4_multi_range_compat range{};
    range.rangesize = 1;
    range.range[0].flags = NF_NAT_RANGE_MAP_IPS;
    std::memcpy(&range.range[0].min_ip, bytes.data(), bytes.size());
    std::memcpy(&range.range[0].max_ip, bytes.data(), bytes.size());
    return extension("SNAT", kSnat4Revision, range);
  }
  nf_nat_range range{};
  range.flags = NF_NAT_RANGE_MAP_IPS;
  std::memcpy(&range.min_addr, bytes.data(), bytes.size());
  std::memcpy(&range.max_addr, bytes.data(), bytes.size());
  return extension("SNAT", kSnat6Revision, range);
}

bool read_set(std::span<const std::uint8_t> payload, std::uint8_t revision, FilterRule& rule,
              const SetNumbers& numbers) {
  xt_set_info_match_v4 match{};
  if (revision != kSetRevision || !payload_of(payload, match)) return false;
  const auto& set = match.match_set;
  auto& side = set.flags == kMatchSource ? rule.src_set : rule.dst_set;
  if (set.dim != 1 || (set.flags != kMatchSource && set.flags != kMatchDestination) || side) return false;
  const auto name = numbers.name(set.index);
  if (name) side = *name;
  return name.has_value();
}

bool read_match(const Extension& match, FilterRule& rule, const SetNumbers& numbers) {
  const auto& [name, revision, payload] = match;
  if (name == "set") return read_set(payload, revision, rule, numbers);
  if (name == "policy") {
    rule.untransformed = true;
    return true;
  }
  xt_udp udp{};
  xt_tcp tcp{};
  const auto ports = [&](const auto& found) {
    // From 0: all ports.
    if (found.dpts[0] != 0) rule.dport = found.dpts[0];
    if (found.spts[0] != 0) rule.sport = found.spts[0];
    return true;
  };
  if (name == "udp" && payload_of(payload, udp)) return ports(udp);
  return name == "tcp" && payload_of(payload, tcp) && ports(tcp);
}

bool read_target(const ChainKey& key, std::string_view target, std::span<const std::uint8_t> payload,
                 FilterRule& rule) {
  if (target == "ACCEPT") {
    if (key.hook == FilterHook::nat_postrouting) rule.action = netstate::KeepSource{};
    return true;
  }
  if (target == "DROP") {
    rule.action = netstate::Drop{};
    return true;
  }
  xt_tcpmss_info mss{};
  if (target == "TCPMSS" && payload_of(payload, mss)) {
    rule.action = netstate::ClampMss{mss.mss};
    return true;
  }
  if (target != "SNAT") return false;
  nf_nat_ipv4_multi_range_compat range4{};
  nf_nat_range range6{};
  std::span<const std::uint8_t> bytes;
  if (key.family == Family::ipv4 && payload_of(payload, range4)) {
    bytes = {reinterpret_cast<const std::uint8_t*>(&range4.range[0].min_ip), 4};
  } else if (key.family == Family::ipv6 && payload_of(payload, range6)) {
    bytes = {reinterpret_cast<const std::uint8_t*>(&range6.min_addr), 16};
  }
  const auto to = net::IpAddress::from_bytes(bytes);
  if (to) rule.action = netstate::SourceNat{*to};
  return to.has_value();
}

/// The matches of an entry; behind the zero of a name, libiptc leaves what was in memory.
template <class Entry>
std::vector<Extension> matches_of(const Entry& entry) {
  std::vector<Extension> matches;
  const auto* start = reinterpret_cast<const std::uint8_t*>(&entry);
  for (std::size_t at = sizeof entry; at < entry.target_offset;) {
    xt_entry_match header{};
    std::memcpy(&header, start + at, sizeof header);
    const auto* payload = start + at + align(sizeof header);
    const std::size_t size = header.u.user.match_size;
    if (size < align(sizeof header)) break;
    matches.push_back({header.u.user.name, header.u.user.revision, {payload, start + at + size}});
    at += size;
  }
  return matches;
}

template <class Entry>
bool read_entry(const ChainKey& key, const Entry& entry, const auto& header, std::string_view target, FilterRule& rule,
                const SetNumbers& numbers) {
  if (!get_link(header.iniface, header.iniface_mask, rule.in_link) ||
      !get_link(header.outiface, header.outiface_mask, rule.out_link)) {
    return false;
  }
  if (header.proto != 0) rule.protocol = static_cast<std::uint8_t>(header.proto);
  for (const auto& match : matches_of(entry)) {
    if (!read_match(match, rule, numbers)) return false;
  }
  const auto* start = reinterpret_cast<const std::uint8_t*>(&entry);
  constexpr auto kHeader = align(sizeof(xt_entry_target));
  const std::size_t payload = entry.target_offset + kHeader;
  return payload <= entry.next_offset && read_target(key, target, {start + payload, entry.next_offset - payload}, rule);
}

bool same_entry(Family family, const void* seen, const void* ours) {
  const auto same = [](const auto& a, const auto& b, const auto& head_a, const auto& head_b) {
    const auto bytes = [](const auto& head) { return std::as_bytes(std::span(&head, 1)); };
    return std::ranges::equal(bytes(head_a), bytes(head_b)) && matches_of(a) == matches_of(b);
  };
  if (family == Family::ipv4) {
    const auto& a = *static_cast<const ipt_entry*>(seen);
    const auto& b = *static_cast<const ipt_entry*>(ours);
    return same(a, b, a.ip, b.ip);
  }
  const auto& a = *static_cast<const ip6t_entry*>(seen);
  const auto& b = *static_cast<const ip6t_entry*>(ours);
  return same(a, b, a.ipv6, b.ipv6);
}

}  // namespace

Result<EntryBytes> encode_entry(const ChainKey& key, const FilterRule& rule, const SetNumbers& numbers) {
  FABRIC_CHECK(validate(key, rule));
  std::vector<Extension> matches;
  if (rule.src_set) {
    FABRIC_TRY(auto match, set_match(*rule.src_set, kMatchSource, numbers));
    matches.push_back(std::move(match));
  }
  if (rule.dst_set) {
    FABRIC_TRY(auto match, set_match(*rule.dst_set, kMatchDestination, numbers));
    matches.push_back(std::move(match));
  }
  if (rule.untransformed) matches.push_back(untransformed_match());
  const bool tcp_or_udp = rule.dport || rule.sport || std::holds_alternative<netstate::ClampMss>(rule.action);
  if (tcp_or_udp) matches.push_back(port_match(rule));
  return assemble(key.family, rule, matches, target_of(rule));
}

EntryBytes encode_jump(Family family, std::string_view chain) {
  const Extension jump{std::string(chain), 0,
                       std::vector<std::uint8_t>(sizeof(xt_standard_target) - sizeof(xt_entry_target))};
  return assemble(family, FilterRule{}, {}, jump);
}

FilterRule decode_entry(const ChainKey& key, const void* entry, std::string_view target, const SetNumbers& numbers) {
  FilterRule rule;
  const auto& v4 = *static_cast<const ipt_entry*>(entry);
  const auto& v6 = *static_cast<const ip6t_entry*>(entry);
  const bool read = key.family == Family::ipv4 ? read_entry(key, v4, v4.ip, target, rule, numbers)
                                               : read_entry(key, v6, v6.ipv6, target, rule, numbers);
  // TCPMSS works on TCP only, so the protocol of a clamp says nothing; a plan that names it too means the same.
  if (std::holds_alternative<netstate::ClampMss>(rule.action)) rule.protocol.reset();
  if ((rule.dport || rule.sport) && !rule.protocol) rule.protocol = IPPROTO_TCP;
  if (!read) return unrecognised(target);
  // Decoding forgives; encoding what was decoded and comparing does not.
  const auto again = encode_entry(key, rule, numbers);
  return again && same_entry(key.family, entry, again->data()) ? rule : unrecognised(target);
}

Result<KernelSetNumbers> KernelSetNumbers::open() {
  const int fd = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  if (fd < 0) return fail_errno(errno, "opening a socket to ask for ipsets");
  ip_set_req_version request{.op = IP_SET_OP_VERSION, .version = 0};
  socklen_t size = sizeof request;
  if (::getsockopt(fd, SOL_IP, SO_IP_SET, &request, &size) != 0) {
    const int saved = errno;
    ::close(fd);
    return fail_errno(saved, "asking for the version of ipset");
  }
  return KernelSetNumbers(fd, request.version);
}

KernelSetNumbers::KernelSetNumbers(KernelSetNumbers&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), version_(other.version_) {}

KernelSetNumbers::~KernelSetNumbers() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::uint16_t> KernelSetNumbers::number(const std::string& name) const {
  ip_set_req_get_set request{.op = IP_SET_OP_GET_BYNAME, .version = version_, .set = {}};
  std::copy_n(name.begin(), std::min(name.size(), sizeof request.set.name - 1), request.set.name);
  socklen_t size = sizeof request;
  if (::getsockopt(fd_, SOL_IP, SO_IP_SET, &request, &size) != 0) return fail_errno(errno, "asking for ipset " + name);
  if (request.set.index == IPSET_INVALID_ID) return fail(Errc::not_found, "there is no ipset {}", name);
  return request.set.index;
}

Result<std::string> KernelSetNumbers::name(std::uint16_t number) const {
  ip_set_req_get_set request{.op = IP_SET_OP_GET_BYINDEX, .version = version_, .set = {.index = number}};
  socklen_t size = sizeof request;
  if (::getsockopt(fd_, SOL_IP, SO_IP_SET, &request, &size) != 0) {
    return fail_errno(errno, fmt::format("asking for ipset number {}", number));
  }
  const std::string_view name(request.set.name, strnlen(request.set.name, sizeof request.set.name));
  if (name.empty()) return fail(Errc::not_found, "there is no ipset number {}", number);
  return std::string(name);
}

}  // namespace fabric::kernel
