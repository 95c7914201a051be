#include "ipset.hpp"

#include <fabric/netstate/ownership.hpp>

#include <net/if.h>

extern "C" {
#include <libipset/data.h>
#include <libipset/linux_ip_set.h>
#include <libipset/session.h>
#include <libipset/types.h>
}

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

namespace fabric::kernel {

namespace {

// The default of 65,536 prefixes would be met by large meshes; the kernel allocates by use.
constexpr std::uint32_t kMaxElements = 1U << 20;
constexpr std::string_view kStandIn = "fabric-new";

int print_into(ipset_session*, void* text, const char* format, ...) {
  // libipset hands over at most one of its output buffers (IPSET_OUTBUFLEN is 8192).
  std::array<char, IPSET_OUTBUFLEN + 1024> buffer{};
  va_list arguments;
  va_start(arguments, format);
  const int size = std::vsnprintf(buffer.data(), buffer.size(), format, arguments);
  va_end(arguments);
  if (size > 0)
    static_cast<std::string*>(text)->append(buffer.data(), std::min(static_cast<std::size_t>(size), buffer.size() - 1));
  return size;
}

Family other(Family family) {
  return family == Family::ipv4 ? Family::ipv6 : Family::ipv4;
}

void add_entry(IpSet& set, std::string_view text) {
  if (text.contains('/')) {
    if (const auto prefix = Cidr::parse(text)) set.entries.insert(*prefix);
  } else if (const auto address = net::IpAddress::parse(text)) {
    set.entries.insert(Cidr::host(*address));
  }
}

/// hash:net refuses prefixes of length 0, so each is stored as its halves.
std::vector<Cidr> stored(const IpSet& set) {
  std::vector<Cidr> prefixes;
  for (const auto& prefix : canonical(set)) {
    if (prefix.length() != 0) {
      prefixes.push_back(prefix);
      continue;
    }
    std::array<std::uint8_t, 16> upper{0x80};
    const auto bytes = std::span(upper).first(set.family == Family::ipv4 ? 4U : 16U);
    prefixes.push_back(*Cidr::of(net::IpAddress::any(set.family), 1));
    prefixes.push_back(*Cidr::of(*net::IpAddress::from_bytes(bytes), 1));
  }
  return prefixes;
}

void join_halves(IpSet& set) {
  std::array<std::uint8_t, 16> upper{0x80};
  const auto bytes = std::span(upper).first(set.family == Family::ipv4 ? 4U : 16U);
  const auto low = *Cidr::of(net::IpAddress::any(set.family), 1);
  const auto high = *Cidr::of(*net::IpAddress::from_bytes(bytes), 1);
  if (!set.entries.contains(low) || !set.entries.contains(high)) return;
  set.entries.erase(low);
  set.entries.erase(high);
  set.entries.insert(Cidr::any(set.family));
}

}  // namespace

IpSet parse_saved_set(std::string_view text) {
  IpSet set;
  bool plain = true;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with("create ")) {
      set.family = line.contains(" family inet6 ") ? Family::ipv6 : Family::ipv4;
      plain = line.contains(" hash:net family ");
    } else if (line.starts_with("add ")) {
      const auto entry = line.substr(line.rfind(' ') + 1);
      plain = plain && std::count(line.begin(), line.end(), ' ') == 2;  // No options such as nomatch.
      add_entry(set, entry);
    }
  }
  if (!plain) return {.family = other(set.family), .entries = {}};
  join_halves(set);
  return set;
}

void IpsetSession::Close::operator()(ipset_session* session) const noexcept {
  ipset_session_fini(session);
}

Result<IpsetSession> IpsetSession::open() {
  static const bool loaded = [] {
    ipset_load_types();
    return true;
  }();
  static_cast<void>(loaded);
  auto output = std::make_unique<std::string>();
  std::unique_ptr<ipset_session, Close> session(ipset_session_init(&print_into, output.get()));
  if (session == nullptr) return fail(Errc::unsupported, "opening an ipset session: the kernel has no ipset");
  return IpsetSession(std::move(session), std::move(output));
}

Result<void> IpsetSession::failed(std::string_view what) {
  const int saved = errno;
  const auto* report = ipset_session_report_msg(session_.get());
  std::string_view text(report == nullptr ? "" : report);
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  // libipset leaves a sentence; errno is the kernel's only if it is one that errno may hold.
  const auto code = saved > 0 && saved < 4096 ? errc_of_errno(saved) : Errc::internal;
  auto result = fail(code, "ipset: {}: {}", what, text);
  ipset_session_report_reset(session_.get());
  return result;
}

Result<void> IpsetSession::command(int command, std::string_view what) {
  errno = 0;
  if (ipset_cmd(session_.get(), static_cast<enum ipset_cmd>(command), 0) != 0) return failed(what);
  return {};
}

Result<std::vector<std::string>> IpsetSession::names() {
  output_->clear();
  ipset_session_output(session_.get(), IPSET_LIST_PLAIN);
  ipset_envopt_set(session_.get(), IPSET_ENV_LIST_SETNAME);
  auto listed = command(IPSET_CMD_LIST, "listing names");
  ipset_envopt_unset(session_.get(), IPSET_ENV_LIST_SETNAME);
  FABRIC_CHECK(std::move(listed));
  std::vector<std::string> found;
  std::string_view text(*output_);
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(netstate::kSetPrefix)) found.emplace_back(line);
  }
  return found;
}

Result<std::string> IpsetSession::save(const std::string& name) {
  output_->clear();
  ipset_session_output(session_.get(), IPSET_LIST_SAVE);
  ipset_session_data_set(session_.get(), IPSET_SETNAME, name.c_str());
  FABRIC_CHECK(command(IPSET_CMD_SAVE, "reading " + name));
  return *output_;
}

Result<std::map<std::string, IpSet>> IpsetSession::observe() {
  FABRIC_TRY(const auto found, names());
  std::map<std::string, IpSet> sets;
  for (const auto& name : found) {
    if (name == kStandIn) continue;
    FABRIC_TRY(const auto saved, save(name));
    sets[name] = parse_saved_set(saved);
  }
  return sets;
}

Result<void> IpsetSession::create(const std::string& name, Family family) {
  auto* session = session_.get();
  const std::uint8_t number = family == Family::ipv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
  ipset_session_data_set(session, IPSET_SETNAME, name.c_str());
  ipset_session_data_set(session, IPSET_OPT_TYPENAME, "hash:net");
  ipset_session_data_set(session, IPSET_OPT_FAMILY, &number);
  errno = 0;
  const auto* type = ipset_type_get(session, IPSET_CMD_CREATE);
  if (type == nullptr) return failed("the kernel has no hash:net sets");
  ipset_session_data_set(session, IPSET_OPT_TYPE, type);
  ipset_session_data_set(session, IPSET_OPT_MAXELEM, &kMaxElements);
  return command(IPSET_CMD_CREATE, "creating " + name);
}

Result<void> IpsetSession::fill(const std::string& name, const IpSet& set) {
  auto* session = session_.get();
  const std::uint8_t number = set.family == Family::ipv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
  std::uint32_t line = 0;
  for (const auto& prefix : stored(set)) {
    ipset_session_data_set(session, IPSET_SETNAME, name.c_str());
    errno = 0;
    const auto* type = ipset_type_get(session, IPSET_CMD_ADD);
    if (type == nullptr) return failed("adding to " + name);
    nf_inet_addr address{};
    const auto bytes = prefix.address().bytes();
    std::ranges::copy(bytes, reinterpret_cast<std::uint8_t*>(&address));
    const auto length = static_cast<std::uint8_t>(prefix.length());
    ipset_session_data_set(session, IPSET_OPT_FAMILY, &number);
    ipset_session_data_set(session, IPSET_OPT_IP, &address);
    ipset_session_data_set(session, IPSET_OPT_CIDR, &length);
    // A line number makes libipset gather commands into full messages.
    if (ipset_cmd(session, IPSET_CMD_ADD, ++line) != 0) return failed(fmt::format("adding {} to {}", prefix, name));
  }
  errno = 0;
  if (ipset_commit(session) != 0) return failed("adding to " + name);
  return {};
}

Result<void> IpsetSession::put(const std::string& name, const IpSet& set) {
  const std::string stand_in(kStandIn);
  FABRIC_CHECK(remove(stand_in));
  FABRIC_TRY(const auto present, names());
  const bool exists = std::ranges::find(present, name) != present.end();
  if (!exists) FABRIC_CHECK(create(name, set.family));
  FABRIC_CHECK(create(stand_in, set.family));
  auto done = fill(stand_in, set);
  if (done) {
    ipset_session_data_set(session_.get(), IPSET_SETNAME, stand_in.c_str());
    ipset_session_data_set(session_.get(), IPSET_OPT_SETNAME2, name.c_str());
    done = command(IPSET_CMD_SWAP, "swapping in " + name);
  }
  auto cleared = remove(stand_in);
  return done ? cleared : done;
}

Result<void> IpsetSession::remove(const std::string& name) {
  FABRIC_TRY(const auto present, names());
  if (std::ranges::find(present, name) == present.end()) return {};
  ipset_session_data_set(session_.get(), IPSET_SETNAME, name.c_str());
  return command(IPSET_CMD_DESTROY, "destroying " + name);
}

}  // namespace fabric::kernel
