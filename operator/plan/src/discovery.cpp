#include <fabric/operator/discovery.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace fabric::operators {
namespace {

using net::Cidr;

/// One place that may know prefixes, with the text found there.
struct Candidate {
  std::string source;
  std::string text;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\"'";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// The value of `--flag=value` or `--flag value`.
std::string flag_value(const std::vector<std::string>& arguments, std::string_view flag) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (!argument.starts_with(flag)) continue;
    const std::string_view rest = argument.substr(flag.size());
    if (rest.starts_with('=')) return std::string(trimmed(rest.substr(1)));
    if (rest.empty() && i + 1 < arguments.size()) return std::string(trimmed(arguments[i + 1]));
  }
  return {};
}

/// The value of the first `key: value` line of a YAML text, at any depth. kubeadm and kube-proxy write their
/// configuration with one scalar per line, and each of the keys looked for occurs once, so that no YAML parser is
/// needed here.
std::string yaml_scalar(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':')) {
      const std::string_view value = line.substr(key.size() + 1);
      return std::string(trimmed(value.substr(0, value.find(" #"))));
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return {};
}

void add_flags(std::vector<Candidate>& candidates, const DiscoveryFacts& facts, std::string_view component,
               std::string_view flag) {
  for (const ComponentFacts& each : facts.components) {
    if (each.component != component) continue;
    candidates.push_back({fmt::format("pod kube-system/{} {}", each.pod, flag), flag_value(each.arguments, flag)});
  }
}

void add_yaml(std::vector<Candidate>& candidates, const std::optional<std::string>& text, std::string_view object,
              std::string_view key) {
  if (text) candidates.push_back({fmt::format("ConfigMap kube-system/{} {}", object, key), yaml_scalar(*text, key)});
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts.begin(), parts.end(), ","));
}

std::vector<Candidate> pod_candidates(const DiscoveryFacts& facts) {
  std::vector<Candidate> candidates;
  add_flags(candidates, facts, "kube-controller-manager", "--cluster-cidr");
  add_yaml(candidates, facts.kubeadm_configuration, "kubeadm-config", "podSubnet");
  add_flags(candidates, facts, "kube-proxy", "--cluster-cidr");
  add_yaml(candidates, facts.kube_proxy_configuration, "kube-proxy", "clusterCIDR");
  std::vector<std::string> of_nodes;
  std::size_t nodes = 0;
  for (const NodeCidrFacts& node : facts.nodes) {
    nodes += node.pod_cidrs.empty() ? 0U : 1U;
    of_nodes.insert(of_nodes.end(), node.pod_cidrs.begin(), node.pod_cidrs.end());
  }
  candidates.push_back({fmt::format("spec.podCIDRs of {} node{}", nodes, nodes == 1 ? "" : "s"), joined(of_nodes)});
  return candidates;
}

std::vector<Candidate> service_candidates(const DiscoveryFacts& facts) {
  std::vector<Candidate> candidates;
  std::vector<std::string> names;
  std::vector<std::string> cidrs;
  for (const ServiceCidrFacts& object : facts.service_cidrs) {
    names.push_back(object.name);
    cidrs.insert(cidrs.end(), object.cidrs.begin(), object.cidrs.end());
  }
  candidates.push_back({fmt::format("ServiceCIDR {}", fmt::join(names, ", ")), joined(cidrs)});
  add_flags(candidates, facts, "kube-apiserver", "--service-cluster-ip-range");
  add_yaml(candidates, facts.kubeadm_configuration, "kubeadm-config", "serviceSubnet");
  return candidates;
}

bool covered(const Cidr& prefix, const std::vector<Cidr>& by) {
  return std::ranges::any_of(by, [&](const Cidr& each) { return each.contains(prefix); });
}

/// What kind of prefixes are looked for, in the words of messages.
struct Wanted {
  std::string_view noun;   ///< "pod"
  std::string_view field;  ///< "joinConfig.clusterCIDR"
  std::string_view where;  ///< where we looked
};

Finding blocking(std::string reason, std::string message) {
  return {Finding::Severity::blocking, std::move(reason), std::move(message)};
}

SourcedPrefixes choose(const DiscoveryFacts& facts, const Wanted& wanted, const std::string& configured,
                       const std::vector<Candidate>& candidates, std::vector<Finding>& findings) {
  SourcedPrefixes chosen;
  if (!trimmed(configured).empty()) {
    auto parsed = net::parse_cidr_list(configured);
    if (!parsed) {
      findings.push_back(
          blocking("InvalidCIDR", fmt::format("Fabric {}: spec.{} '{}': {}; write prefixes like 10.0.0.0/16 or "
                                              "fd00::/48, separated by commas",
                                              facts.fabric, wanted.field, configured, parsed.error().message())));
      return chosen;
    }
    chosen = {net::canonical_set(*parsed), std::string("spec.").append(wanted.field)};
  }
  for (const Candidate& candidate : candidates) {
    if (candidate.text.empty()) continue;
    const auto parsed = net::parse_cidr_list(candidate.text);
    if (!parsed) {
      findings.push_back({Finding::Severity::notice, "UnreadableSource",
                          fmt::format("Fabric {}: {} '{}' was ignored: {}", facts.fabric, candidate.source,
                                      candidate.text, parsed.error().message())});
      continue;
    }
    if (chosen.prefixes.empty()) {
      chosen = {merge_adjacent(net::canonical_set(*parsed)), candidate.source};
      continue;
    }
    for (const Cidr& prefix : *parsed) {
      if (covered(prefix, chosen.prefixes)) continue;
      findings.push_back(
          {Finding::Severity::notice, "SourcesDisagree",
           fmt::format("Fabric {}: {} names the {} prefix {}, which is outside {} from {}; set spec.{} if it "
                       "belongs to this cluster",
                       facts.fabric, candidate.source, wanted.noun, prefix, net::join(chosen.prefixes), chosen.source,
                       wanted.field)});
    }
  }
  if (chosen.prefixes.empty()) {
    findings.push_back(blocking("CIDRNotFound", fmt::format("Fabric {}: no {} prefixes were found in {}: set spec.{}",
                                                            facts.fabric, wanted.noun, wanted.where, wanted.field)));
  }
  return chosen;
}

std::string plugin_of(const std::vector<std::string>& daemonsets) {
  // Canal runs Calico's node agent too, and OVN-Kubernetes and Cilium may run beside kube-proxy: the order decides.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kPlugins{{{"ovnkube-node", "ovn-kubernetes"},
                                                                                   {"cilium", "cilium"},
                                                                                   {"canal", "canal"},
                                                                                   {"calico-node", "calico"},
                                                                                   {"flannel", "flannel"},
                                                                                   {"weave-net", "weave"},
                                                                                   {"kindnet", "kindnet"}}};
  for (const auto& [part, plugin] : kPlugins) {
    for (const std::string& daemonset : daemonsets) {
      const std::string_view name = std::string_view(daemonset).substr(daemonset.find('/') + 1);
      if (name.contains(part)) return std::string(plugin);
    }
  }
  return "generic";
}

/// The prefix one bit shorter, when both halves of it are given.
std::optional<Cidr> parent_of(const Cidr& low, const Cidr& high) {
  if (low.family() != high.family() || low.length() != high.length() || low.length() == 0) return std::nullopt;
  const auto parent = Cidr::of(low.address(), low.length() - 1);
  if (!parent || !parent->contains(high) || low == high) return std::nullopt;
  return *parent;
}

}  // namespace

std::vector<Cidr> merge_adjacent(std::vector<Cidr> prefixes) {
  std::ranges::sort(prefixes);
  std::vector<Cidr> merged;
  for (const Cidr& prefix : prefixes) {
    merged.push_back(prefix);
    while (merged.size() >= 2) {
      const auto parent = parent_of(merged[merged.size() - 2], merged.back());
      if (!parent) break;
      merged.pop_back();
      merged.back() = *parent;
    }
  }
  return merged;
}

Discovery discover(const DiscoveryFacts& facts) {
  Discovery discovery;
  discovery.pods =
      choose(facts, {"pod", "joinConfig.clusterCIDR", "control plane flags, kubeadm-config, kube-proxy and nodes"},
             facts.configured_pod_cidr, pod_candidates(facts), discovery.findings);
  discovery.services = choose(
      facts, {"service", "joinConfig.serviceCIDR", "ServiceCIDR objects, control plane flags and kubeadm-config"},
      facts.configured_service_cidr, service_candidates(facts), discovery.findings);
  discovery.network_plugin = plugin_of(facts.daemonsets);
  if (const auto overlap = net::first_overlap(discovery.pods.prefixes, discovery.services.prefixes)) {
    discovery.findings.push_back(blocking(
        "CIDRsOverlap",
        fmt::format("Fabric {}: pod prefix {} ({}) and service prefix {} ({}) overlap: correct "
                    "spec.joinConfig.clusterCIDR or spec.joinConfig.serviceCIDR",
                    facts.fabric, *overlap.left, discovery.pods.source, *overlap.right, discovery.services.source)));
  }
  return discovery;
}

}  // namespace fabric::operators
