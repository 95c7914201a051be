#include <fabric/base/assert.hpp>
#include <fabric/kernel/fake_kernel.hpp>
#include <fabric/netstate/diff.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fabric::kernel {

namespace {

using netstate::State;
using netstate::Verb;

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

Result<void> done() {
  return {};
}

/// Add and replace are the same for everything but SAs; remove does not mind absence.
template <class Map, class Key, class Value>
Result<void> put(Map& map, Verb verb, const Key& key, const Value& value) {
  if (verb == Verb::remove) {
    map.erase(key);
  } else {
    map.insert_or_assign(key, value);
  }
  return done();
}

}  // namespace

void FakeKernelState::fail_next(std::function<bool(const netstate::Step&)> matches, int errno_value, int times) {
  failures_.push_back({std::move(matches), errno_value, times});
}

void FakeKernelState::fail_next(netstate::Slice slice, int errno_value, int times) {
  fail_next([slice](const netstate::Step& step) { return netstate::slice_of(step.object) == slice; }, errno_value,
            times);
}

void FakeKernelState::fail_next_observe(int errno_value) {
  observe_failures_.push_back(errno_value);
}

Result<void> FakeKernelState::carry_out(const netstate::Step& step) {
  for (auto failure = failures_.begin(); failure != failures_.end(); ++failure) {
    if (!failure->matches(step)) continue;
    const auto errno_value = failure->errno_value;
    if (--failure->times == 0) failures_.erase(failure);
    return fail_errno(errno_value, "scripted failure");
  }
  FABRIC_CHECK(std::visit(Overloaded{[&](const netstate::SaObject& o) { return sa(step.verb, o); },
                                     [&](const netstate::PolicyObject& o) { return policy(step.verb, o); },
                                     [&](const netstate::LinkObject& o) { return link(step.verb, o); },
                                     [&](const netstate::FdbEntry& o) { return fdb(step.verb, o); },
                                     [&](const netstate::Neighbour& o) { return neighbour(step.verb, o); },
                                     [&](const netstate::RouteObject& o) { return route(step.verb, o); },
                                     [&](const netstate::IpSetObject& o) { return ipset(step.verb, o); },
                                     [&](const netstate::ChainObject& o) { return chain(step.verb, o); },
                                     [&](const netstate::SysctlObject& o) { return sysctl(step.verb, o); }},
                          step.object));
  history.push_back(step);
  return done();
}

Result<void> FakeKernelState::observe(netstate::Slices wanted, State& into) {
  using netstate::Slice;
  if (!observe_failures_.empty()) {
    const auto errno_value = observe_failures_.front();
    observe_failures_.pop_front();
    return fail_errno(errno_value, "scripted failure of observe");
  }
  if (wanted.has(Slice::sas)) into.sas = ours.sas;
  if (wanted.has(Slice::policies)) into.policies = ours.policies;
  if (wanted.has(Slice::links)) into.links = ours.links;
  if (wanted.has(Slice::fdb)) into.fdb = ours.fdb;
  if (wanted.has(Slice::neighbours)) into.neighbours = ours.neighbours;
  if (wanted.has(Slice::routes)) into.routes = ours.routes;
  if (wanted.has(Slice::ipsets)) into.ipsets = ours.ipsets;
  if (wanted.has(Slice::chains)) into.chains = ours.chains;
  if (wanted.has(Slice::sysctls)) into.sysctls = ours.sysctls;
  return done();
}

Result<void> FakeKernelState::sa(Verb verb, const netstate::SaObject& object) {
  if (verb == Verb::remove) {
    ours.sas.erase(object.key);
    return done();
  }
  if (verb == Verb::replace) return fail(Errc::invalid, "an SA is never replaced");
  if (object.sa.key == nullptr || object.sa.key->size() != netstate::kKeyMaterialBytes) {
    return fail(Errc::invalid, "an SA needs {} bytes of key material", netstate::kKeyMaterialBytes);
  }
  if (!has_esp) return fail_errno(EPROTONOSUPPORT, "no ESP in this kernel; on the node run: modprobe -a esp4 esp6");
  if (ours.sas.contains(object.key) || foreign.sas.contains(object.key)) {
    return fail_errno(EEXIST, "another SA has this destination address and SPI");
  }
  const auto bytes = object.sa.key->reveal();
  if (!installed_.emplace(object.key, std::vector<std::uint8_t>(bytes.begin(), bytes.end())).second) {
    installed_twice.push_back(object.key);
  }
  auto sa = object.sa;
  sa.key = nullptr;
  sa.counters = netstate::SaCounters{};
  sa.counters->added = now;
  ours.sas.emplace(object.key, std::move(sa));
  return done();
}

Result<void> FakeKernelState::policy(Verb verb, const netstate::PolicyObject& object) {
  if (object.key.src.family() != object.key.dst.family()) {
    return fail(Errc::invalid, "source and destination of a policy are of one family");
  }
  if (foreign.policies.contains(object.key)) {
    if (verb == Verb::remove) return done();
    return fail_errno(EEXIST, "another program has a policy with this selector");
  }
  return put(ours.policies, verb, object.key, object.policy);
}

Result<void> FakeKernelState::link(Verb verb, const netstate::LinkObject& object) {
  const auto found = ours.links.find(object.name);
  const bool gone = verb == Verb::remove || (found != ours.links.end() &&  //
                                             netstate::link_is_recreated(found->second, object.link));
  if (gone) drop_link(object.name);
  if (verb != Verb::remove) ours.links.insert_or_assign(object.name, object.link);
  return done();
}

void FakeKernelState::drop_link(const std::string& name) {
  ours.links.erase(name);
  std::erase_if(ours.fdb, [&](const auto& entry) { return entry.link == name; });
  std::erase_if(ours.neighbours, [&](const auto& entry) { return entry.link == name; });
  std::erase_if(ours.routes, [&](const auto& entry) { return entry.second.link == name; });
}

bool FakeKernelState::has_link(const std::string& name) const {
  return ours.links.contains(name) || interfaces.contains(name);
}

Result<void> FakeKernelState::fdb(Verb verb, const netstate::FdbEntry& entry) {
  if (verb == Verb::remove) {
    ours.fdb.erase(entry);
    return done();
  }
  if (!has_link(entry.link)) return fail_errno(ENODEV, fmt::format("no link {}", entry.link));
  std::erase_if(ours.fdb, [&](const auto& other) { return other.link == entry.link && other.mac == entry.mac; });
  ours.fdb.insert(entry);
  return done();
}

Result<void> FakeKernelState::neighbour(Verb verb, const netstate::Neighbour& entry) {
  if (verb == Verb::remove) {
    ours.neighbours.erase(entry);
    return done();
  }
  if (!has_link(entry.link)) return fail_errno(ENODEV, fmt::format("no link {}", entry.link));
  std::erase_if(ours.neighbours,
                [&](const auto& other) { return other.link == entry.link && other.address == entry.address; });
  ours.neighbours.insert(entry);
  return done();
}

Result<void> FakeKernelState::route(Verb verb, const netstate::RouteObject& object) {
  if (verb != Verb::remove && !has_link(object.route.link)) {
    return fail_errno(ENODEV, fmt::format("no link {}", object.route.link));
  }
  return put(ours.routes, verb, object.key, object.route);
}

bool FakeKernelState::set_in_use(const std::string& name) const {
  return std::ranges::any_of(ours.chains, [&](const auto& chain) {
    return std::ranges::any_of(chain.second,
                               [&](const auto& rule) { return rule.src_set == name || rule.dst_set == name; });
  });
}

Result<void> FakeKernelState::ipset(Verb verb, const netstate::IpSetObject& object) {
  if (verb == Verb::remove && set_in_use(object.name)) return fail_errno(EBUSY, "a chain uses the set");
  const bool foreign_family = std::ranges::any_of(
      object.set.entries, [&](const net::Cidr& entry) { return entry.family() != object.set.family; });
  if (foreign_family) return fail_errno(EINVAL, "a set holds prefixes of one family");
  return put(ours.ipsets, verb, object.name, object.set);
}

Result<void> FakeKernelState::chain(Verb verb, const netstate::ChainObject& object) {
  if (verb == Verb::remove) {
    ours.chains.erase(object.key);
    return done();
  }
  for (const auto& rule : object.rules) {
    for (const auto& set : {rule.src_set, rule.dst_set}) {
      if (set && !ours.ipsets.contains(*set)) return fail_errno(ENOENT, fmt::format("no set {}", *set));
    }
  }
  return put(ours.chains, verb, object.key, object.rules);
}

Result<void> FakeKernelState::sysctl(Verb verb, const netstate::SysctlObject& object) {
  const auto current = sysctls.find(object.name);
  if (verb == Verb::remove) {
    const auto saved = saved_sysctls_.find(object.name);
    if (saved != saved_sysctls_.end() && current != sysctls.end()) current->second = saved->second;
    saved_sysctls_.erase(object.name);
    ours.sysctls.erase(object.name);
    return done();
  }
  if (current == sysctls.end()) return fail_errno(ENOENT, fmt::format("no /proc/sys/{}", object.name));
  saved_sysctls_.emplace(object.name, current->second);
  current->second = object.value;
  ours.sysctls.insert_or_assign(object.name, object.value);
  return done();
}

void FakeKernelState::count(const netstate::SaKey& key, std::uint64_t packets, std::uint64_t bytes) {
  const auto found = ours.sas.find(key);
  FABRIC_ASSERT(found != ours.sas.end());
  auto& sa = found->second;
  const auto before = sa.counters->packets;
  const auto bytes_before = sa.counters->bytes;
  sa.counters->packets += packets;
  sa.counters->bytes += bytes;
  sa.counters->last_used = now;
  const auto reached = [&](std::uint64_t limit) { return limit != 0 && before < limit && before + packets >= limit; };
  const auto event = [&](SaEvent::Kind kind) {
    if (on_event) on_event(SaEvent{kind, key, sa.reqid});
  };
  const bool bytes_reached =
      sa.soft_bytes != 0 && bytes_before < sa.soft_bytes && bytes_before + bytes >= sa.soft_bytes;
  if (reached(sa.soft_packets) || bytes_reached) event(SaEvent::Kind::soft_expired);
  if (reached(sa.hard_packets)) {
    event(SaEvent::Kind::hard_expired);
    ours.sas.erase(found);
  }
}

}  // namespace fabric::kernel
