#pragma once

#include <fabric/base/secret.hpp>
#include <fabric/base/strong_type.hpp>
#include <fabric/base/time.hpp>
#include <fabric/net/cidr.hpp>
#include <fabric/net/mac.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

/// The vocabulary of kernel state: what is desired and what was observed are the same types, so that difference is a
/// pure function. Keys are what the kernel itself uses as identity.
namespace fabric::netstate {

using net::Cidr;
using net::Family;
using net::IpAddress;

using Spi = StrongType<struct SpiTag, std::uint32_t>;
using Reqid = StrongType<struct ReqidTag, std::uint32_t>;

/// RFC 4303 with AEAD: rfc4106(gcm(aes)) with a 256-bit key, or rfc7539esp(chacha20,poly1305). ICV is 128 bits for
/// both, key material is 36 bytes: 32 of key, 4 of salt.
enum class Aead : std::uint8_t { aes_gcm_256, chacha20_poly1305 };
inline constexpr std::size_t kKeyMaterialBytes = 36;

/// Key material of a desired SA. Shared because desired states are immutable snapshots that several plans may hold.
using KeyMaterial = std::shared_ptr<const Secret>;

/// The kernel finds an SA by destination address, protocol (ESP always) and SPI; the source is not part of it.
struct SaKey {
  IpAddress daddr;
  Spi spi;
  auto operator<=>(const SaKey&) const = default;
};

/// RFC 3948 encapsulation of ESP in UDP.
struct UdpEncap {
  std::uint16_t sport = 0;
  std::uint16_t dport = 0;
  auto operator<=>(const UdpEncap&) const = default;
};

/// What the kernel counted on an SA; present only on observed SAs.
struct SaCounters {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  TimePoint added;  ///< One-second resolution.
  /// ESN sequence numbers: the last one sent and the highest one received; an SA uses one of the two. A value that went
  /// back means that the SA is not the one that was installed.
  std::uint64_t sent_sequence = 0;
  std::uint64_t received_sequence = 0;
  std::optional<TimePoint> last_used;  ///< One-second resolution; absent: never, or the kernel does not say.
};

/// An ESP SA in tunnel mode, with ESN, usable for inner packets of both families.
struct Sa {
  IpAddress saddr;
  Reqid reqid;
  Aead aead = Aead::aes_gcm_256;
  std::optional<UdpEncap> encap;
  std::uint32_t replay_window = 1024;  ///< Packets; RFC 4303 wants 32 at least, the kernel takes 4096 at most.
  std::uint64_t soft_packets = 0;      ///< 0: no limit. The kernel reports the soft limit, and deletes at the hard one.
  std::uint64_t hard_packets = 0;
  std::uint64_t soft_bytes = 0;        ///< 0: no limit.
  std::uint64_t hard_seconds = 0;      ///< Since it was added; 0: no limit.
  KeyMaterial key;                     ///< Null on observed SAs, and on desired SAs that are kept but may not be added.
  std::optional<SaCounters> counters;  ///< Only on observed SAs.

  /// Equality of what was configured; key and counters are not compared, as the kernel does not give keys back.
  friend bool operator==(const Sa& a, const Sa& b) {
    return a.saddr == b.saddr && a.reqid == b.reqid && a.aead == b.aead && a.encap == b.encap;
  }
};

enum class Direction : std::uint8_t { in, out, fwd };

/// The kernel identifies a policy by direction and selector. Priority is not part of it, so two policies with the same
/// selector cannot coexist: block policies use a wider source selector than the ESP policies that they stand behind.
struct PolicyKey {
  Direction direction = Direction::out;
  Cidr src;
  Cidr dst;
  auto operator<=>(const PolicyKey&) const = default;
};

/// The template of an ESP policy. A wildcard address (0.0.0.0 or ::) accepts any; in and fwd use wildcards for both, so
/// that every gateway of the peer cluster, which share the reqid, is accepted.
struct EspTemplate {
  IpAddress saddr;
  IpAddress daddr;
  Reqid reqid;
  auto operator<=>(const EspTemplate&) const = default;
};

struct BlockAction {
  auto operator<=>(const BlockAction&) const = default;
};

struct XfrmPolicy {
  std::uint32_t priority = 0;  ///< Lower numbers win; ours are kEspPriority and kBlockPriority.
  std::variant<EspTemplate, BlockAction> action;
  auto operator<=>(const XfrmPolicy&) const = default;
};

/// A VXLAN device without learning; peers come from FdbEntry.
struct VxlanLink {
  std::uint32_t vni = 0;
  std::uint16_t port = 0;
  IpAddress local;  ///< Outer source address.
  net::Mac mac;
  std::uint32_t mtu = 0;  ///< Bytes.
  auto operator<=>(const VxlanLink&) const = default;
};

/// Frames to this Ethernet address leave the VXLAN device for this outer destination.
struct FdbEntry {
  std::string link;
  net::Mac mac;
  IpAddress remote;
  auto operator<=>(const FdbEntry&) const = default;
};

/// A permanent neighbour: nothing is resolved by ARP or ND on our links.
struct Neighbour {
  std::string link;
  IpAddress address;
  net::Mac mac;
  auto operator<=>(const Neighbour&) const = default;
};

/// Routes of ours live in the main table under kRouteProtocol.
struct RouteKey {
  Cidr dst;
  auto operator<=>(const RouteKey&) const = default;
};

struct Route {
  std::string link;
  std::optional<IpAddress> via;     ///< On-link next hop (RTNH_F_ONLINK); absent: scope link.
  std::optional<IpAddress> source;  ///< Preferred source address.
  std::uint32_t mtu = 0;            ///< Bytes; 0: that of the device.
  auto operator<=>(const Route&) const = default;
};

/// A set of prefixes of one family: an ipset hash:net, or an nftables interval set.
struct IpSet {
  Family family = Family::ipv4;
  std::set<Cidr> entries;
  auto operator<=>(const IpSet&) const = default;
};

/// Where our chains are called from. Each is entered first in its hook.
enum class FilterHook : std::uint8_t {
  nat_postrouting,  ///< Before kube-proxy's and the CNI's masquerading.
  filter_forward,
  filter_input,
  mangle_forward,      ///< MSS clamp; forwarded packets that would leave in clear.
  mangle_postrouting,  ///< Packets that would leave in clear, those of the node itself included.
};

struct KeepSource {  ///< No source translation for this connection, whatever rule of others would ask for it.
  auto operator<=>(const KeepSource&) const = default;
};

struct Accept {
  auto operator<=>(const Accept&) const = default;
};

struct SourceNat {
  IpAddress to;
  auto operator<=>(const SourceNat&) const = default;
};

struct ClampMss {  ///< Sets the MSS of SYN segments to at most this many bytes.
  std::uint16_t mss = 0;
  auto operator<=>(const ClampMss&) const = default;
};

struct Drop {
  auto operator<=>(const Drop&) const = default;
};

/// One rule in the vocabulary that legacy iptables and nftables share; the driver translates.
struct FilterRule {
  std::optional<std::string> src_set;  ///< Name of an IpSet of the same family.
  std::optional<std::string> dst_set;
  std::optional<std::string> out_link;
  std::optional<std::string> in_link;
  std::optional<std::uint8_t> protocol;  ///< IPPROTO_UDP, IPPROTO_TCP, IPPROTO_ESP...; ClampMss implies TCP SYN.
  std::optional<std::uint16_t> dport;    ///< Needs protocol UDP or TCP.
  std::optional<std::uint16_t> sport;    ///< Needs protocol UDP or TCP.
  bool untransformed = false;            ///< Only packets that no IPsec policy transforms on their way out.
  std::variant<Accept, KeepSource, SourceNat, ClampMss, Drop> action;
  auto operator<=>(const FilterRule&) const = default;
};

struct ChainKey {
  Family family = Family::ipv4;
  FilterHook hook = FilterHook::nat_postrouting;
  auto operator<=>(const ChainKey&) const = default;
};

/// All of it. Absent and empty are the same, except where a desired state leaves a slice out on purpose (see diff()).
struct State {
  std::map<SaKey, Sa> sas;
  std::map<PolicyKey, XfrmPolicy> policies;
  std::map<std::string, VxlanLink> links;
  std::set<FdbEntry> fdb;
  std::set<Neighbour> neighbours;
  std::map<RouteKey, Route> routes;
  std::map<std::string, IpSet> ipsets;
  std::map<ChainKey, std::vector<FilterRule>> chains;
  std::map<std::string, std::string>
      sysctls;  ///< "net/ipv4/conf/eth0/rp_filter" -> value. Old values are restored by uninstall.
  bool operator==(const State&) const = default;
};

/// An address of an interface with the prefix length of its network.
struct InterfaceAddress {
  IpAddress address;
  int prefix_length = 0;
  auto operator<=>(const InterfaceAddress&) const = default;
};

struct Interface {
  std::string name;
  int index = 0;
  std::uint32_t mtu = 0;
  bool up = false;
  std::vector<InterfaceAddress> addresses;
  auto operator<=>(const Interface&) const = default;
};

enum class FilterBackend : std::uint8_t { legacy, nft };

/// What planners must know of the node and what is not ours.
struct HostFacts {
  std::vector<Interface> interfaces;
  std::map<Family, std::string> default_link;         ///< Device of the default route.
  FilterBackend filter_backend = FilterBackend::nft;  ///< The backend that masquerading of others is seen in.
  std::map<std::string, std::string> sysctls;         ///< rp_filter and forwarding values that the planner asks for.
  bool operator==(const HostFacts&) const = default;
};

}  // namespace fabric::netstate
