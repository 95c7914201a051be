#pragma once

#include <fabric/net/cidr.hpp>
#include <fabric/operator/finding.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fabric::operators {

/// A ServiceCIDR object (networking.k8s.io/v1).
struct ServiceCidrFacts {
  std::string name{};
  std::vector<std::string> cidrs{};
};

struct NodeCidrFacts {
  std::string name{};
  std::vector<std::string> pod_cidrs{};
};

/// The command line (command and args joined) of a control plane or kube-proxy pod in kube-system.
struct ComponentFacts {
  std::string pod{};        ///< "kube-controller-manager-cp1"
  std::string component{};  ///< "kube-controller-manager"
  std::vector<std::string> arguments{};
};

/// Everything that discovery looks at, gathered by the shell. A source that is absent or may not be read is left empty.
struct DiscoveryFacts {
  std::string fabric{};                   ///< "default/join", for messages.
  std::string configured_pod_cidr{};      ///< joinConfig.clusterCIDR
  std::string configured_service_cidr{};  ///< joinConfig.serviceCIDR
  std::vector<ServiceCidrFacts> service_cidrs{};
  std::vector<NodeCidrFacts> nodes{};
  std::vector<ComponentFacts> components{};
  std::optional<std::string>
      kubeadm_configuration{};  ///< ConfigMap kube-system/kubeadm-config, key ClusterConfiguration.
  std::optional<std::string> kube_proxy_configuration{};  ///< ConfigMap kube-system/kube-proxy, key config.conf.
  std::vector<std::string> daemonsets{};  ///< "namespace/name" of all DaemonSets, for the name of the network plugin.
};

/// Prefixes and where they were found: "joinConfig.clusterCIDR", "nodes' spec.podCIDRs (3 nodes)".
struct SourcedPrefixes {
  std::vector<net::Cidr> prefixes{};
  std::string source{};
  bool operator==(const SourcedPrefixes&) const = default;
};

struct Discovery {
  SourcedPrefixes pods{};
  SourcedPrefixes services{};
  /// flannel, calico, canal, weave, kindnet, cilium, ovn-kubernetes or generic.
  std::string network_plugin{};
  /// Blocking: nothing found, a configured value that does not parse. Notice: sources that disagree.
  std::vector<Finding> findings{};
};

/// The first source that gives something wins. Pods: joinConfig, kube-controller-manager's --cluster-cidr,
/// kubeadm-config, kube-proxy's --cluster-cidr and ConfigMap, the nodes' podCIDRs. Services: joinConfig, ServiceCIDR
/// objects, kube-apiserver's
/// --service-cluster-ip-range, kubeadm-config. Prefixes of nodes are listed one by one (adjacent halves merged), since
/// nothing says that the space between them belongs to the cluster. A later source that names a prefix outside the
/// chosen ones is reported as a notice.
Discovery discover(const DiscoveryFacts& facts);

/// Joins adjacent halves until none is left: 10.0.0.0/24 and 10.0.1.0/24 become 10.0.0.0/23. Sorted.
std::vector<net::Cidr> merge_adjacent(std::vector<net::Cidr> prefixes);

}  // namespace fabric::operators
