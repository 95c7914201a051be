#include <fabric/netstate/diff.hpp>
#include <fabric/netstate/ownership.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fabric::netstate {

namespace {

bool marked(const Sa& sa) {
  return is_ours(sa.reqid.value());
}

bool marked(const XfrmPolicy& policy) {
  if (const auto* esp = std::get_if<EspTemplate>(&policy.action)) return is_ours(esp->reqid.value());
  return policy.priority == kBlockPriority;
}

bool marked_set(const std::string& name) {
  return name.starts_with(kSetPrefix);
}

Phase policy_phase(const XfrmPolicy& policy, Verb verb) {
  const bool block = std::holds_alternative<BlockAction>(policy.action);
  if (verb == Verb::remove) return block ? Phase::remove_block_policies : Phase::remove_esp_policies;
  return block ? Phase::block_policies : Phase::esp_policies;
}

/// Addresses of this node that SAs start from. A state does not say which SAs are outbound, but the templates of its
/// outbound policies hold concrete addresses, and only outbound SAs start from one of those.
std::set<IpAddress> local_addresses(const State& observed, const State& desired) {
  std::set<IpAddress> result;
  for (const auto* state : {&observed, &desired}) {
    for (const auto& [key, policy] : state->policies) {
      const auto* esp = std::get_if<EspTemplate>(&policy.action);
      if (key.direction == Direction::out && esp != nullptr) result.insert(esp->saddr);
    }
  }
  return result;
}

std::string mismatch(const Sa& observed, const Sa& desired) {
  if (observed.saddr != desired.saddr) {
    return fmt::format("source: desired {}, installed {}", desired.saddr, observed.saddr);
  }
  if (observed.reqid != desired.reqid) {
    return fmt::format("reqid: desired {:#010x}, installed {:#010x}", desired.reqid.value(), observed.reqid.value());
  }
  if (observed.aead != desired.aead) return "suite: desired and installed differ";
  const auto encap = [](const Sa& sa) {
    return sa.encap ? fmt::format("UDP {} -> {}", sa.encap->sport, sa.encap->dport) : std::string("none");
  };
  return fmt::format("encapsulation: desired {}, installed {}", encap(desired), encap(observed));
}

/// Builds one script; each function appends the steps of one slice, and the phases are joined at the end.
class Differ {
 public:
  Differ(const State& observed, const State& desired, Slices owned)
      : observed_(observed), desired_(desired), owned_(owned) {}

  Script run() && {
    if (owned_.has(Slice::sysctls)) sysctls();
    if (owned_.has(Slice::links)) links();
    if (owned_.has(Slice::fdb)) fdb();
    if (owned_.has(Slice::neighbours)) neighbours();
    if (owned_.has(Slice::ipsets)) ipsets();
    if (owned_.has(Slice::sas)) sas();
    if (owned_.has(Slice::policies)) policies();
    if (owned_.has(Slice::routes)) routes();
    if (owned_.has(Slice::chains)) chains();
    for (auto& [phase, steps] : phases_)
      std::ranges::move(steps, std::back_inserter(script_.steps));
    return std::move(script_);
  }

 private:
  void emit(Phase phase, Verb verb, Object object) { phases_[phase].push_back({phase, verb, std::move(object)}); }

  /// The common case: a map whose values are compared as a whole. `make` builds the object; `lost` says that an
  /// observed value will be gone by the time its step runs.
  template <class Map, class Make, class Lost>
  void compare(const Map& observed, const Map& desired, Phase make_phase, Phase remove_phase, Make make, Lost lost) {
    for (const auto& [key, value] : desired) {
      const auto found = observed.find(key);
      if (found == observed.end()) {
        emit(make_phase, Verb::add, make(key, value));
      } else if (found->second != value || lost(found->second)) {
        emit(make_phase, Verb::replace, make(key, value));
      }
    }
    for (const auto& [key, value] : observed) {
      if (!desired.contains(key) && !lost(value)) emit(remove_phase, Verb::remove, make(key, value));
    }
  }

  void sysctls() {
    compare(
        observed_.sysctls, desired_.sysctls, Phase::sysctls, Phase::remove_sysctls,
        [](const auto& name, const auto& value) { return SysctlObject{name, value}; },
        [](const auto&) { return false; });
  }

  void links() {
    for (const auto& [name, link] : desired_.links) {
      const auto found = observed_.links.find(name);
      if (found == observed_.links.end()) {
        emit(Phase::links, Verb::add, LinkObject{name, link});
      } else if (found->second != link) {
        emit(Phase::links, Verb::replace, LinkObject{name, link});
        if (link_is_recreated(found->second, link)) lost_links_.insert(name);
      }
    }
    for (const auto& [name, link] : observed_.links) {
      if (desired_.links.contains(name) || name != kVxlanLink) continue;
      emit(Phase::remove_links, Verb::remove, LinkObject{name, link});
    }
  }

  bool lost(const std::string& link) const { return lost_links_.contains(link); }

  /// FDB entries by (link, mac) and neighbours by (link, address): the kernel replaces the rest in place, and removing
  /// the old one afterwards would hit the new one.
  template <class Entry, class Key>
  void compare_entries(const std::set<Entry>& observed, const std::set<Entry>& desired, Key key_of) {
    const auto by_key = [&](const std::set<Entry>& entries) {
      std::map<decltype(key_of(*entries.begin())), Entry> result;
      for (const auto& entry : entries)
        result.emplace(key_of(entry), entry);
      return result;
    };
    compare(
        by_key(observed), by_key(desired), Phase::forwarding, Phase::remove_forwarding,
        [](const auto&, const Entry& entry) { return entry; }, [this](const Entry& entry) { return lost(entry.link); });
  }

  void fdb() {
    compare_entries(observed_.fdb, desired_.fdb, [](const FdbEntry& e) { return std::pair(e.link, e.mac); });
  }

  void neighbours() {
    compare_entries(observed_.neighbours, desired_.neighbours,
                    [](const Neighbour& n) { return std::pair(n.link, n.address); });
  }

  void ipsets() {
    auto observed = observed_.ipsets;
    std::erase_if(observed, [](const auto& entry) { return !marked_set(entry.first); });
    compare(
        observed, desired_.ipsets, Phase::ipsets, Phase::remove_ipsets,
        [](const auto& name, const IpSet& set) { return IpSetObject{name, set}; }, [](const IpSet&) { return false; });
  }

  void sas() {
    const auto local = local_addresses(observed_, desired_);
    const auto outbound = [&](const Sa& sa) { return local.contains(sa.saddr); };
    for (const auto& [key, sa] : desired_.sas) {
      const auto found = observed_.sas.find(key);
      if (found != observed_.sas.end()) {
        if (found->second != sa) script_.findings.push_back({key, mismatch(found->second, sa)});
      } else if (sa.key != nullptr) {
        emit(outbound(sa) ? Phase::outbound_sas : Phase::inbound_sas, Verb::add, SaObject{key, sa});
      }
    }
    for (const auto& [key, sa] : observed_.sas) {
      if (desired_.sas.contains(key) || !marked(sa)) continue;
      emit(outbound(sa) ? Phase::remove_outbound_sas : Phase::remove_inbound_sas, Verb::remove, SaObject{key, sa});
    }
  }

  void policies() {
    for (const auto& [key, policy] : desired_.policies) {
      const auto found = observed_.policies.find(key);
      const bool present = found != observed_.policies.end() && marked(found->second);
      if (present && found->second == policy) continue;
      const auto verb = present ? Verb::replace : Verb::add;
      emit(policy_phase(policy, verb), verb, PolicyObject{key, policy});
    }
    for (const auto& [key, policy] : observed_.policies) {
      if (desired_.policies.contains(key) || !marked(policy)) continue;
      emit(policy_phase(policy, Verb::remove), Verb::remove, PolicyObject{key, policy});
    }
  }

  void routes() {
    compare(
        observed_.routes, desired_.routes, Phase::routes, Phase::remove_routes,
        [](const RouteKey& key, const Route& route) { return RouteObject{key, route}; },
        [this](const Route& route) { return lost(route.link); });
  }

  void chains() {
    compare(
        observed_.chains, desired_.chains, Phase::chains, Phase::remove_chains,
        [](const ChainKey& key, const auto& rules) { return ChainObject{key, rules}; },
        [](const auto&) { return false; });
  }

  const State& observed_;
  const State& desired_;
  Slices owned_;
  std::set<std::string> lost_links_;
  std::map<Phase, std::vector<Step>> phases_;
  Script script_;
};

}  // namespace

bool link_is_recreated(const VxlanLink& before, const VxlanLink& after) {
  return before.vni != after.vni || before.port != after.port || before.local != after.local;
}

Script diff(const State& observed, const State& desired, Slices owned) {
  return Differ(observed, desired, owned).run();
}

}  // namespace fabric::netstate
