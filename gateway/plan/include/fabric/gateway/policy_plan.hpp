#pragma once

#include <fabric/gateway/finding.hpp>
#include <fabric/gateway/path.hpp>
#include <fabric/netstate/state.hpp>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// Which prefixes are carried, through which gateway of the remote cluster, as ESP and block policies. Pure.
namespace fabric::gateway {

enum class Health : std::uint8_t { down, unknown, up };  ///< In the order of preference.

struct RemoteGateway {
  std::string name;
  std::optional<Path> path;
  Health health = Health::unknown;
  bool outbound = false;               ///< There is an SA to send with.
  std::vector<net::Cidr> prefixes;     ///< From its verified state record.
  std::vector<net::IpAddress> probes;  ///< Addresses that answer pings there, within its prefixes.
};

struct RemoteCluster {
  netstate::Reqid reqid;
  std::vector<RemoteGateway> gateways;
};

/// A prefix and the cluster, by its reqid, from which packets of that prefix are let in.
using Holders = std::set<std::pair<net::Cidr, netstate::Reqid>>;

Holders holders_of(const std::map<netstate::PolicyKey, netstate::XfrmPolicy>& installed);

struct PolicyInputs {
  std::string local_cluster;
  std::vector<net::Cidr> local_prefixes;
  /// Addresses of this node that pings come from. Pings to a gateway go through that gateway, chosen or not, so that
  /// the health of each is known before traffic depends on it.
  std::vector<net::IpAddress> local_probes;
  std::map<std::string, RemoteCluster> remotes;
  /// Observed, so that of two clusters which claim a prefix the one that has it keeps it, also over a restart.
  Holders holders;
};

struct PolicyPlan {
  std::map<netstate::PolicyKey, netstate::XfrmPolicy> policies;
  std::map<std::string, std::string> chosen;              ///< Cluster id to gateway name, for status.
  std::map<std::string, std::vector<net::Cidr>> carried;  ///< Accepted prefixes per cluster.
  /// Policies that the kernel keeps in a linear list (net/xfrm/xfrm_policy.c: shorter than /16 or /48), for a metric.
  std::size_t coarse_policies = 0;
  std::vector<Finding> findings;
};

/// The gateway is chosen per prefix among those that announce it, by (has an SA, health, name).
PolicyPlan plan_policies(const PolicyInputs& inputs);

}  // namespace fabric::gateway
