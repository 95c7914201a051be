#pragma once

#include <cstdint>
#include <string_view>

/// Every name that clusters, users or other tools see, once, with where it comes from. "Submariner" marks a name that
/// is kept so that its tools and its users' habits go on working; all others are ours.
namespace fabric::api::names {

// Namespaces (Submariner).
inline constexpr std::string_view kBrokerNamespace = "submariner-k8s-broker";
inline constexpr std::string_view kOperatorNamespace = "submariner-operator";

// API groups.
inline constexpr std::string_view kFabricGroup = "operator.tkestack.io";  // The custom resource that users write.
inline constexpr std::string_view kSubmarinerGroup = "submariner.io";     // Submariner.

// Field managers of server-side apply, one per program, so that each owns only the fields it sends.
inline constexpr std::string_view kOperatorManager = "fabric-operator";
inline constexpr std::string_view kGatewayManager = "fabric-gateway";
inline constexpr std::string_view kRouteAgentManager = "fabric-routeagent";
inline constexpr std::string_view kCliManager = "fabricctl";

// Finalizer of a Fabric: its uninstall is done before the object goes.
inline constexpr std::string_view kFabricFinalizer = "operator.tkestack.io/fabric";

// Cipher suites of tunnels, as users and agents' flags spell them.
inline constexpr std::string_view kAes256Gcm = "aes-256-gcm";
inline constexpr std::string_view kChaCha20Poly1305 = "chacha20-poly1305";

// broker-info, the ConfigMap that a joining cluster is given (Submariner operators of the Fabric and knitnet line).
inline constexpr std::string_view kBrokerInfo = "submariner-broker-info";
inline constexpr std::string_view kBrokerInfoKey = "brokerInfo";
inline constexpr std::string_view kFabricNameLabel = "operator.tkestack.io/fabric-name";
inline constexpr std::string_view kFabricNamespaceLabel = "operator.tkestack.io/fabric-namespace";

// Secrets.
inline constexpr std::string_view kPskSecret = "submariner-ipsec-psk";         // Submariner; keys below.
inline constexpr std::string_view kPskKey = "psk";                             // Submariner; newest, 48 random bytes.
inline constexpr std::string_view kPskNumberKey = "number";                    // Of `psk`, decimal; absent means 1.
inline constexpr std::string_view kPskPreviousKey = "previous";                // While the PSK before it is valid too.
inline constexpr std::string_view kBrokerSecret = "submariner-broker-secret";  // Submariner; keys below.
inline constexpr std::string_view kTokenKey = "token";                         // Token Secrets of Kubernetes.
inline constexpr std::string_view kCaKey = "ca.crt";                           // Token Secrets of Kubernetes.
inline constexpr std::string_view kNamespaceKey = "namespace";                 // Token Secrets of Kubernetes.
inline constexpr std::string_view kBrokerUrlKey = "brokerURL";                 // As in broker-info.
inline constexpr std::string_view kIdentitySecret = "fabric-identity";         // Ed25519 seed of this cluster.
inline constexpr std::string_view kIdentityKey = "ed25519";
inline constexpr std::string_view kJoinSecret = "fabric-join";  // X25519 key of a running join.
inline constexpr std::string_view kJoinKey = "x25519";
inline constexpr std::string_view kTokenSecretType = "kubernetes.io/service-account-token";        // Kubernetes.
inline constexpr std::string_view kTokenAccountAnnotation = "kubernetes.io/service-account.name";  // Kubernetes.

// Join protocol at the broker.
inline constexpr std::string_view kBrokerClientAccount = "submariner-k8s-broker-client";  // Submariner, legacy.
inline constexpr std::string_view kMemberAccountPrefix = "cluster-";                      // Submariner.
inline constexpr std::string_view kMemberRole = "submariner-k8s-broker-cluster";          // Submariner.
inline constexpr std::string_view kJoinRequestPrefix = "fabric-join-";
inline constexpr std::string_view kMemberAnswerPrefix = "fabric-member-";
inline constexpr std::string_view kIdentityAnnotation = "fabric.tkestack.io/identity";
inline constexpr std::string_view kIdentityMacAnnotation = "fabric.tkestack.io/identity-mac";

// Workloads in the operator namespace (Submariner; their service accounts have the same names).
inline constexpr std::string_view kOperatorName = "submariner-operator";
inline constexpr std::string_view kGatewayName = "submariner-gateway";
inline constexpr std::string_view kRouteAgentName = "submariner-routeagent";
inline constexpr std::string_view kAppLabel = "app";  // Submariner: app=submariner-gateway and so on.

// Leases in the operator namespace.
inline constexpr std::string_view kGatewaySyncLease = "fabric-gateway-sync";
inline constexpr std::string_view kOperatorLease = "fabric-operator";

// Nodes (Submariner).
inline constexpr std::string_view kGatewayLabel = "submariner.io/gateway";
inline constexpr std::string_view kGatewayLabelValue = "true";
inline constexpr std::string_view kGatewayNodePrefix = "gateway.submariner.io/";  // udp-port, public-ip, ... below.
inline constexpr std::string_view kNodeUdpPort = "gateway.submariner.io/udp-port";
inline constexpr std::string_view kNodePublicIp = "gateway.submariner.io/public-ip";
inline constexpr std::string_view kNodePreferredServer = "gateway.submariner.io/preferred-server";
inline constexpr std::string_view kNodeNattDiscoveryPort = "gateway.submariner.io/natt-discovery-port";
// Put on nodes that the operator labelled itself, so that an uninstall removes only its own labels.
inline constexpr std::string_view kLabelledByUs = "fabric.tkestack.io/labelled-gateway";

// Nodes (Kubernetes).
inline constexpr std::string_view kControlPlaneRole = "node-role.kubernetes.io/control-plane";
inline constexpr std::string_view kMasterRole = "node-role.kubernetes.io/master";
inline constexpr std::string_view kWorkerRole = "node-role.kubernetes.io/worker";

// Copies of the broker's objects (Submariner): loops are prevented by this label.
inline constexpr std::string_view kClusterIdLabel = "submariner-io/clusterID";
inline constexpr std::string_view kOriginNamespaceLabel = "submariner-io/originatingNamespace";

// Keys of Endpoint.spec.backend_config. The first two carry what agents trust, the others are Submariner's.
inline constexpr std::string_view kKeysConfig = "fabric-keys";
inline constexpr std::string_view kStateConfig = "fabric-state";
inline constexpr std::string_view kUdpPortConfig = "udp-port";
inline constexpr std::string_view kPreferredServerConfig = "preferred-server";
inline constexpr std::string_view kPublicIpConfig = "public-ip";
inline constexpr std::string_view kNattDiscoveryPortConfig = "natt-discovery-port";

// Endpoint.spec.backend of our kernel ESP tunnels.
inline constexpr std::string_view kXfrmBackend = "xfrm";

// Status objects.
// On a Gateway, any text, conventionally the time: each new value makes that gateway draw new keys.
inline constexpr std::string_view kRekeyAnnotation = "fabric.tkestack.io/rekey";
inline constexpr std::string_view kCleanedAnnotation = "fabric.tkestack.io/cleaned";  // <component>@<generation>.
inline constexpr std::string_view kUpdateTimestamp = "update-timestamp";              // Submariner, Unix seconds.
// Submariner: Gateway pods carry it for the load balancer mode.
inline constexpr std::string_view kGatewayStatusLabel = "gateway.submariner.io/status";

// Ports. 4500 is RFC 3948. Those on a node's own network lie outside the ranges of NodePorts (30000 to 32767) and of
// the kernel's choice for outgoing connections (from 32768), any of which could hold Submariner's 32780 for hours.
inline constexpr std::uint16_t kNattPort = 4500;
inline constexpr std::uint16_t kRecordsPort = 4801;  // Announcements between gateways, through the tunnel.
inline constexpr std::uint16_t kGatewayMetricsPort = 9780;
inline constexpr std::uint16_t kRouteAgentMetricsPort = 9782;
inline constexpr std::uint16_t kOperatorMetricsPort = 8080;
inline constexpr std::uint16_t kOperatorProbePort = 8081;

}  // namespace fabric::api::names
