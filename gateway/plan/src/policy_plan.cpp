#include <fabric/gateway/policy_plan.hpp>
#include <fabric/netstate/ownership.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

namespace fabric::gateway {

namespace {

using net::Cidr;
using netstate::Direction;
using netstate::PolicyKey;

/// INEXACT_PREFIXLEN_IPV4 and _IPV6 in net/xfrm/xfrm_policy.c: policies with a shorter selector are searched one by
/// one.
constexpr int kInexactIpv4 = 16;
constexpr int kInexactIpv6 = 48;

/// A prefix that a remote cluster wants carried.
struct Claim {
  std::string cluster;
  Cidr prefix;
};

bool is_coarse(const Cidr& cidr) {
  return cidr.length() < (cidr.family() == net::Family::ipv4 ? kInexactIpv4 : kInexactIpv6);
}

class Run {
 public:
  explicit Run(const PolicyInputs& inputs) : in_(inputs), local_(net::canonical_set(inputs.local_prefixes)) {}

  PolicyPlan run() {
    for (const auto& claim : claims()) {
      if (accept(claim)) plan_.carried[claim.cluster].push_back(claim.prefix);
    }
    for (auto& [cluster, prefixes] : plan_.carried) {
      std::ranges::sort(prefixes);
      for (const auto& prefix : prefixes)
        carry(cluster, in_.remotes.at(cluster), prefix);
    }
    for (const auto& [cluster, remote] : in_.remotes) {
      for (const auto& gateway : remote.gateways)
        probe(cluster, remote, gateway);
      choose_for_status(cluster, remote);
    }
    return std::move(plan_);
  }

 private:
  /// Those that are carried already come first, then in the order of cluster ids.
  std::vector<Claim> claims() const {
    std::vector<Claim> held;
    std::vector<Claim> fresh;
    for (const auto& [cluster, remote] : in_.remotes) {
      std::vector<Cidr> all;
      for (const auto& gateway : remote.gateways) {
        all.insert(all.end(), gateway.prefixes.begin(), gateway.prefixes.end());
      }
      for (const auto& prefix : net::canonical_set(all)) {
        (in_.holders.contains({prefix, remote.reqid}) ? held : fresh).push_back({cluster, prefix});
      }
    }
    held.insert(held.end(), fresh.begin(), fresh.end());
    return held;
  }

  bool accept(const Claim& claim) {
    for (const auto& local : local_) {
      if (local.overlaps(claim.prefix)) return refuse(claim, in_.local_cluster, local);
    }
    // What was accepted is disjoint and ordered by address: what contains the claim comes right before it, and what it
    // contains right after. A walk over all would make 4,000 prefixes take seconds.
    const auto after = accepted_.lower_bound(claim.prefix);
    for (const auto& near : {after == accepted_.begin() ? after : std::prev(after), after}) {
      if (near != accepted_.end() && near->first.overlaps(claim.prefix))
        return refuse(claim, near->second, near->first);
    }
    accepted_.emplace_hint(after, claim.prefix, claim.cluster);
    return true;
  }

  bool refuse(const Claim& claim, const std::string& other, const Cidr& prefix) {
    plan_.findings.push_back(
        {.kind = FindingKind::prefix_overlap,
         .subject = claim.cluster,
         .message =
             fmt::format("cluster {}: prefix {} overlaps {} of cluster {} and is not carried; change one of them, "
                         "or join with globalnet",
                         claim.cluster, claim.prefix, prefix, other)});
    return false;
  }

  /// Among gateways that announce the prefix or one that contains it. Null when none has a path.
  static const RemoteGateway* choose(const RemoteCluster& remote, const Cidr* prefix) {
    const RemoteGateway* best = nullptr;
    for (const auto& gateway : remote.gateways) {
      const bool announces = prefix == nullptr || std::ranges::any_of(gateway.prefixes, [&](const Cidr& announced) {
                               return announced.contains(*prefix);
                             });
      if (!gateway.path || !announces) continue;
      if (best == nullptr || rank(*best) < rank(gateway)) best = &gateway;
    }
    return best;
  }

  struct Rank {
    bool outbound;
    Health health;
    const std::string* name;

    /// A lower name ranks higher, so that all nodes choose alike.
    bool operator<(const Rank& other) const {
      return std::tie(outbound, health, *other.name) < std::tie(other.outbound, other.health, *name);
    }
  };

  static Rank rank(const RemoteGateway& gateway) { return {gateway.outbound, gateway.health, &gateway.name}; }

  void carry(const std::string& cluster, const RemoteCluster& remote, const Cidr& prefix) {
    const auto any = Cidr::any(prefix.family());
    put({Direction::out, any, prefix}, {netstate::kBlockPriority, netstate::BlockAction{}});
    put({Direction::in, prefix, any}, {netstate::kBlockPriority, netstate::BlockAction{}});
    put({Direction::fwd, prefix, any}, {netstate::kBlockPriority, netstate::BlockAction{}});
    const auto* gateway = choose(remote, &prefix);
    if (gateway == nullptr) {
      plan_.findings.push_back(
          {.kind = FindingKind::no_gateway,
           .subject = cluster,
           .message = fmt::format("cluster {}: none of its gateways that announce {} can be reached "
                                  "from this node; packets to it are dropped",
                                  cluster, prefix)});
      return;
    }
    const auto wildcard = net::IpAddress::any(gateway->path->remote.family());
    const netstate::EspTemplate out{gateway->path->local, gateway->path->remote, remote.reqid};
    const netstate::EspTemplate in{wildcard, wildcard, remote.reqid};
    for (const auto& local : local_) {
      if (local.family() != prefix.family()) continue;
      put({Direction::out, local, prefix}, {netstate::kEspPriority, out});
      put({Direction::in, prefix, local}, {netstate::kEspPriority, in});
      put({Direction::fwd, prefix, local}, {netstate::kEspPriority, in});
    }
  }

  void probe(const std::string& cluster, const RemoteCluster& remote, const RemoteGateway& gateway) {
    const auto carried = plan_.carried.find(cluster);
    if (!gateway.path || carried == plan_.carried.end()) return;
    for (const auto& target : gateway.probes) {
      const bool inside =
          std::ranges::any_of(carried->second, [&](const Cidr& prefix) { return prefix.contains(target); });
      if (!inside) continue;
      for (const auto& own : in_.local_probes) {
        if (own.family() != target.family()) continue;
        put({Direction::out, Cidr::host(own), Cidr::host(target)},
            {netstate::kProbePriority, netstate::EspTemplate{gateway.path->local, gateway.path->remote, remote.reqid}});
      }
    }
  }

  void put(const PolicyKey& key, const netstate::XfrmPolicy& policy) {
    plan_.policies.insert_or_assign(key, policy);
    if (is_coarse(key.src) || is_coarse(key.dst)) ++plan_.coarse_policies;
  }

  void choose_for_status(const std::string& cluster, const RemoteCluster& remote) {
    if (const auto* gateway = choose(remote, nullptr)) plan_.chosen.emplace(cluster, gateway->name);
  }

  const PolicyInputs& in_;
  std::vector<Cidr> local_;
  std::map<Cidr, std::string> accepted_;
  PolicyPlan plan_;
};

}  // namespace

Holders holders_of(const std::map<PolicyKey, netstate::XfrmPolicy>& installed) {
  Holders result;
  for (const auto& [key, policy] : installed) {
    const auto* esp = std::get_if<netstate::EspTemplate>(&policy.action);
    if (esp != nullptr && key.direction == Direction::in) result.emplace(key.src, esp->reqid);
  }
  return result;
}

PolicyPlan plan_policies(const PolicyInputs& inputs) {
  return Run(inputs).run();
}

}  // namespace fabric::gateway
