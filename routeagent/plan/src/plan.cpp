#include <fabric/netstate/ownership.hpp>
#include <fabric/routeagent/plan.hpp>

#include <algorithm>
#include <array>
#include <tuple>

#include <netinet/in.h>

namespace fabric::routeagent {

using net::Cidr;
using net::Family;
using net::IpAddress;
using netstate::ChainKey;
using netstate::FilterHook;
using netstate::FilterRule;

namespace {

constexpr std::array kFamilies{Family::ipv4, Family::ipv6};

std::string local_set(Family family) {
  return std::string(family == Family::ipv4 ? netstate::kLocalSet4 : netstate::kLocalSet6);
}

std::string remote_set(Family family) {
  return std::string(family == Family::ipv4 ? netstate::kRemoteSet4 : netstate::kRemoteSet6);
}

std::vector<Cidr> of_family(const std::vector<Cidr>& prefixes, Family family) {
  std::vector<Cidr> result;
  std::ranges::copy_if(prefixes, std::back_inserter(result), [&](const Cidr& c) { return c.family() == family; });
  return result;
}

std::string rp_filter_of(const std::string& interface) {
  return "net/ipv4/conf/" + interface + "/rp_filter";
}

/// Remote prefixes of all clusters that do not collide with ours, without duplicates.
std::vector<Cidr> routable(const Inputs& inputs, std::vector<Finding>& findings) {
  std::vector<Cidr> accepted;
  for (const auto& [cluster, prefixes] : inputs.remote_prefixes) {
    for (const Cidr& remote : prefixes) {
      const auto local = std::ranges::find_if(inputs.local_prefixes, [&](const Cidr& l) { return l.overlaps(remote); });
      if (local == inputs.local_prefixes.end()) {
        accepted.push_back(remote);
        continue;
      }
      findings.push_back({FindingKind::prefix_overlaps_local,
                          fmt::format("prefix {} of cluster '{}' overlaps {} of this cluster and is not routed; change "
                                      "one of the two CIDRs",
                                      remote, cluster, *local)});
    }
  }
  return net::canonical_set(accepted);
}

/// One pass over one node: each member function adds what its name says to the desired state.
class Planner {
 public:
  Planner(const Inputs& inputs, Plan& plan)
      : in_(inputs),
        plan_(plan),
        remotes_(routable(inputs, plan.findings)),
        uplink_(interface_of(in_.facts, in_.node_address)) {}

  void run() {
    if (uplink_ == nullptr) {
      plan_.findings.push_back({FindingKind::no_uplink, fmt::format("no interface of node '{}' holds its InternalIP {}",
                                                                    in_.node, in_.node_address)});
      return;
    }
    const auto gateway = choose_gateway(in_.node, in_.gateways);
    plan_.gateway = gateway ? gateway->node : "";
    add_link();
    add_sysctls();
    for (const Family family : kFamilies) {
      add_sets(family);
      add_rules(family);
    }
    if ((!gateway || !gateway->ready) && !remotes_.empty()) {
      plan_.findings.push_back({FindingKind::no_gateway,
                                "no gateway node of this cluster is ready; label a node with "
                                "submariner.io/gateway=true or mend the gateway pods"});
    }
    // Routes lead to a gateway that is not ready rather than nowhere: without them packets for other clusters would
    // take the default route, in clear.
    if (gateway) add_routes(*gateway);
  }

 private:
  bool is_gateway() const {
    return std::ranges::any_of(in_.gateways, [&](const GatewayNode& g) { return g.node == in_.node; });
  }

  std::uint32_t vxlan_mtu() const { return uplink_->mtu - vxlan_overhead(in_.node_address.family()); }

  /// What fits through the tunnel, and on workers through the VXLAN before it.
  std::uint32_t path_mtu() const {
    const std::uint32_t tunnel = uplink_->mtu - esp_overhead(in_.encapsulation);
    return plan_.gateway == in_.node ? tunnel : std::min(tunnel, vxlan_mtu());
  }

  void add_link() {
    plan_.desired.links[std::string(netstate::kVxlanLink)] = {.vni = netstate::kVxlanVni,
                                                              .port = netstate::kVxlanPort,
                                                              .local = in_.node_address,
                                                              .mac = vxlan_mac(in_.node_address),
                                                              .mtu = vxlan_mtu()};
  }

  /// The kernel uses the larger of conf/all and the interface's own value, so a loose interface beats a strict default.
  void loosen(const std::string& interface) {
    const auto value = [&](const std::string& key) {
      const auto it = in_.facts.sysctls.find(key);
      return it == in_.facts.sysctls.end() ? std::string("0") : it->second;
    };
    const std::string key = rp_filter_of(interface);
    const bool strict = std::max(value(key), value(rp_filter_of("all"))) == "1";
    if (strict || in_.changed_sysctls.contains(key)) plan_.desired.sysctls[key] = "2";
  }

  void add_sysctls() {
    for (const char* key : {"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"}) {
      const auto it = in_.facts.sysctls.find(key);
      const bool off = it != in_.facts.sysctls.end() && it->second == "0";
      if (off || in_.changed_sysctls.contains(key)) plan_.desired.sysctls[key] = "1";
    }
    // Replies take another interface than requests: the VXLAN towards the gateway, the CNI's own network back from it.
    loosen(std::string(netstate::kVxlanLink));
    loosen(uplink_->name);
    for (const auto& interface : in_.facts.interfaces) {
      const bool in_pod_network = std::ranges::any_of(interface.addresses, [&](const netstate::InterfaceAddress& a) {
        return std::ranges::any_of(in_.local_prefixes, [&](const Cidr& p) { return p.contains(a.address); });
      });
      if (in_pod_network && interface.name != "lo") loosen(interface.name);
    }
  }

  void add_sets(Family family) {
    const auto fill = [&](const std::string& name, const std::vector<Cidr>& prefixes) {
      auto& set = plan_.desired.ipsets[name];
      set.family = family;
      set.entries.insert(prefixes.begin(), prefixes.end());
    };
    fill(local_set(family), of_family(net::canonical_set(in_.local_prefixes), family));
    fill(remote_set(family), of_family(remotes_, family));
  }

  FilterRule between_clusters(Family family, bool outbound) const {
    FilterRule rule;
    rule.src_set = outbound ? local_set(family) : remote_set(family);
    rule.dst_set = outbound ? remote_set(family) : local_set(family);
    return rule;
  }

  void add_rules(Family family) {
    const auto mss = static_cast<std::uint16_t>(path_mtu() - tcp_header(family));
    for (const bool outbound : {true, false}) {
      FilterRule rule = between_clusters(family, outbound);
      rule.action = netstate::KeepSource{};
      chain(family, FilterHook::nat_postrouting).push_back(rule);
      rule.action = netstate::Accept{};
      chain(family, FilterHook::filter_forward).push_back(rule);
      rule.action = netstate::ClampMss{mss};  // Implies TCP SYN segments; a protocol beside it is not canonical.
      chain(family, FilterHook::mangle_forward).push_back(rule);
    }
    add_input_rules(family);
    if (is_gateway()) add_clear_text_rules(family);
  }

  /// Nothing for a remote prefix leaves a gateway unless a policy transforms it, also while policies are missing that
  /// somebody flushed.
  void add_clear_text_rules(Family family) {
    FilterRule to_remote;
    to_remote.dst_set = remote_set(family);
    FilterRule drop = to_remote;
    drop.untransformed = true;
    drop.action = netstate::Drop{};
    FilterRule to_gateway = to_remote;  // Another gateway of this cluster carries them.
    to_gateway.out_link = std::string(netstate::kVxlanLink);
    auto& forward = chain(family, FilterHook::mangle_forward);
    forward.insert(forward.end(), {to_gateway, drop});
    // Transformed packets leave like packets of this node that no policy transforms, to a gateway whose address may be
    // in a remote prefix. Pods cannot use these exceptions, as what is forwarded met the rules above before.
    FilterRule esp = to_remote;
    esp.protocol = std::uint8_t{IPPROTO_ESP};
    FilterRule esp_in_udp = to_remote;
    esp_in_udp.protocol = std::uint8_t{IPPROTO_UDP};
    esp_in_udp.sport = in_.natt_port;
    chain(family, FilterHook::mangle_postrouting) = {to_gateway, esp, esp_in_udp, drop};
  }

  void add_input_rules(Family family) {
    auto& input = chain(family, FilterHook::filter_input);
    // Health checks of other clusters end at the gateway's address in the pod network.
    FilterRule ping = between_clusters(family, /*outbound=*/false);
    ping.protocol = family == Family::ipv4 ? std::uint8_t{IPPROTO_ICMP} : std::uint8_t{IPPROTO_ICMPV6};
    input.push_back(ping);
    if (!is_gateway()) return;
    FilterRule records = between_clusters(family, /*outbound=*/false);
    records.protocol = std::uint8_t{IPPROTO_UDP};
    records.dport = in_.records_port;
    input.push_back(records);
    if (family == in_.node_address.family()) input.push_back({.protocol = IPPROTO_UDP, .dport = netstate::kVxlanPort});
    input.push_back({.protocol = IPPROTO_UDP, .dport = in_.natt_port});
    input.push_back({.protocol = IPPROTO_ESP});
  }

  void add_routes(const GatewayNode& gateway) {
    const bool local = gateway.node == in_.node;
    const net::Mac mac = vxlan_mac(gateway.address);
    const std::string link(netstate::kVxlanLink);
    for (const Family family : kFamilies) {
      const auto prefixes = of_family(remotes_, family);
      if (prefixes.empty()) continue;
      const auto source = cni_address(in_.facts, in_.node_pod_cidrs, family);
      if (!source) {
        plan_.findings.push_back(
            {FindingKind::no_cni_address, fmt::format("no interface of node '{}' holds an {} address of its pod CIDR; "
                                                      "pods are served, processes of the host network are not",
                                                      in_.node, net::to_string(family))});
      }
      netstate::Route route{.link = local ? uplink_->name : link, .source = source, .mtu = path_mtu()};
      if (!local) {
        route.via = vxlan_next_hop(mac, family);
        plan_.desired.neighbours.insert({.link = link, .address = *route.via, .mac = mac});
      }
      for (const Cidr& prefix : prefixes)
        plan_.desired.routes[{prefix}] = route;
    }
    if (!local && !remotes_.empty()) plan_.desired.fdb.insert({.link = link, .mac = mac, .remote = gateway.address});
  }

  std::vector<FilterRule>& chain(Family family, FilterHook hook) {
    return plan_.desired.chains[ChainKey{family, hook}];
  }

  const Inputs& in_;
  Plan& plan_;
  std::vector<Cidr> remotes_;
  const netstate::Interface* uplink_;
};

}  // namespace

Plan plan(const Inputs& inputs) {
  Plan result;
  Planner(inputs, result).run();
  return result;
}

std::optional<GatewayNode> choose_gateway(const std::string& node, const std::vector<GatewayNode>& gateways) {
  const auto rank = [&](const GatewayNode& g) { return std::tuple(!g.ready, g.node != node, g.node); };
  const auto best = std::ranges::min_element(gateways, {}, rank);
  if (best == gateways.end()) return std::nullopt;
  return *best;
}

const netstate::Interface* interface_of(const netstate::HostFacts& facts, const IpAddress& address) {
  const auto it = std::ranges::find_if(facts.interfaces, [&](const netstate::Interface& interface) {
    return std::ranges::any_of(interface.addresses, [&](const auto& a) { return a.address == address; });
  });
  return it == facts.interfaces.end() ? nullptr : &*it;
}

std::optional<IpAddress> cni_address(const netstate::HostFacts& facts, const std::vector<Cidr>& node_pod_cidrs,
                                     Family family) {
  for (const auto& interface : facts.interfaces) {
    for (const auto& a : interface.addresses) {
      if (a.address.family() != family) continue;
      if (std::ranges::any_of(node_pod_cidrs, [&](const Cidr& c) { return c.contains(a.address); })) return a.address;
    }
  }
  return std::nullopt;
}

std::vector<std::string> sysctls_of_interest(const std::vector<netstate::Interface>& interfaces) {
  std::vector<std::string> keys{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", rp_filter_of("all"),
                                rp_filter_of(std::string(netstate::kVxlanLink))};
  for (const auto& interface : interfaces)
    keys.push_back(rp_filter_of(interface.name));
  return keys;
}

}  // namespace fabric::routeagent
