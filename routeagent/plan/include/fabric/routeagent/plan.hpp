#pragma once

#include <fabric/net/cidr.hpp>
#include <fabric/netstate/state.hpp>
#include <fabric/routeagent/underlay.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

/// What one node needs in its kernel so that its pods reach the other clusters: the way to a gateway, no masquerading,
/// and packets that fit. Pure: no clock, no entropy, no I/O.
namespace fabric::routeagent {

/// A node of this cluster that carries a gateway agent.
struct GatewayNode {
  std::string node;
  net::IpAddress address;  ///< InternalIP, the outer destination of the VXLAN.
  bool ready = true;       ///< The node is Ready and its agent says that it serves.
  auto operator<=>(const GatewayNode&) const = default;
};

struct Inputs {
  std::string node;
  net::IpAddress node_address;            ///< InternalIP of this node, the outer source of the VXLAN.
  std::vector<net::Cidr> node_pod_cidrs;  ///< Of this node alone; tells the CNI's own address from others.
  std::vector<net::Cidr> local_prefixes;  ///< Pods and services of this cluster.
  std::map<std::string, std::vector<net::Cidr>> remote_prefixes;  ///< By cluster.
  std::vector<GatewayNode> gateways;                              ///< Of this cluster.
  Encapsulation encapsulation;                                    ///< Between the clusters.
  std::uint16_t natt_port = 4500;                                 ///< UDP port of encapsulated ESP and of probes.
  std::uint16_t records_port = 4801;  ///< UDP port of announcements between gateways, through the tunnel.
  netstate::HostFacts facts;
  std::map<std::string, std::string> changed_sysctls;  ///< Those that we changed already, from the observed state.
};

enum class FindingKind : std::uint8_t {
  prefix_overlaps_local,  ///< A remote prefix overlaps ours; it is not routed.
  no_gateway,             ///< No gateway node is ready; routes lead to one that is not, if there is any.
  no_uplink,              ///< No interface holds the node's address.
  no_cni_address,         ///< Processes of the host network cannot reach other clusters.
};

struct Finding {
  FindingKind kind;
  std::string message;
  auto operator<=>(const Finding&) const = default;
};

struct Plan {
  netstate::State desired;
  std::vector<Finding> findings;
  std::string gateway;  ///< Node whose gateway carries this node's traffic; empty: none is ready.
  bool operator==(const Plan&) const = default;
};

/// The desired slice of the route agent. Remote prefixes that overlap local ones are left out with a finding.
Plan plan(const Inputs& inputs);

/// The gateway that carries this node's traffic: a ready one before one that is not, this node before others, then by
/// name.
std::optional<GatewayNode> choose_gateway(const std::string& node, const std::vector<GatewayNode>& gateways);

/// The interface that holds this address, or null.
const netstate::Interface* interface_of(const netstate::HostFacts& facts, const net::IpAddress& address);

/// The node's address in its pod network, which the far side accepts as a source. Absent until the CNI made its bridge.
std::optional<net::IpAddress> cni_address(const netstate::HostFacts& facts,
                                          const std::vector<net::Cidr>& node_pod_cidrs, net::Family family);

/// The sysctls that plan() must know the value of, for these interfaces: forwarding, and rp_filter of each.
std::vector<std::string> sysctls_of_interest(const std::vector<netstate::Interface>& interfaces);

}  // namespace fabric::routeagent
