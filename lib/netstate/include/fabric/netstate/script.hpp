#pragma once

#include <fabric/netstate/state.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

/// What a program does to the kernel: ordered steps, each about one object.
namespace fabric::netstate {

/// The parts of State. A program owns some of them and neither observes nor changes the others.
enum class Slice : std::uint8_t { sas, policies, links, fdb, neighbours, routes, ipsets, chains, sysctls };
inline constexpr std::size_t kSliceCount = 9;

/// A set of slices.
class Slices {
 public:
  constexpr Slices() = default;

  constexpr Slices(std::initializer_list<Slice> slices) {
    for (const auto slice : slices)
      bits_ = static_cast<std::uint16_t>(bits_ | bit(slice));
  }

  static constexpr Slices all() {
    Slices result;
    result.bits_ = (1U << kSliceCount) - 1U;
    return result;
  }

  constexpr bool has(Slice slice) const { return (bits_ & bit(slice)) != 0; }

  constexpr bool empty() const { return bits_ == 0; }

  constexpr Slices operator&(Slices other) const {
    Slices result;
    result.bits_ = static_cast<std::uint16_t>(bits_ & other.bits_);
    return result;
  }

  constexpr Slices operator|(Slices other) const {
    Slices result;
    result.bits_ = static_cast<std::uint16_t>(bits_ | other.bits_);
    return result;
  }

  constexpr bool operator==(const Slices&) const = default;

 private:
  static constexpr std::uint16_t bit(Slice slice) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(slice));
  }

  std::uint16_t bits_ = 0;
};

/// What each node agent owns; the two never overlap, so that both can run on a gateway node.
inline constexpr Slices kGatewaySlices{Slice::sas, Slice::policies};
inline constexpr Slices kRouteAgentSlices{Slice::links,  Slice::fdb,    Slice::neighbours, Slice::routes,
                                          Slice::ipsets, Slice::chains, Slice::sysctls};

/// What a driver does with the object of a step. Every verb is idempotent, except that an SA is added at most once.
enum class Verb : std::uint8_t {
  add,      ///< It was absent. Found present after all: an SA, or an object of others, fails with already_exists; ours
            ///< is replaced.
  replace,  ///< It was present with other attributes; never used for SAs. Found absent after all: it is created.
  remove,   ///< It was present and is not wanted. Found absent after all: done. The object holds what was observed.
};

struct SaObject {
  SaKey key;
  Sa sa;  ///< With key material when the verb is add.
  bool operator==(const SaObject&) const = default;
};

struct PolicyObject {
  PolicyKey key;
  XfrmPolicy policy;
  bool operator==(const PolicyObject&) const = default;
};

/// A replaced link whose vni, port or local address changed is created anew, and what hung on it is lost; diff() then
/// emits its FDB entries, neighbours and routes again. MTU and MAC change in place (see link_is_recreated()).
struct LinkObject {
  std::string name;
  VxlanLink link;
  bool operator==(const LinkObject&) const = default;
};

struct RouteObject {
  RouteKey key;
  Route route;
  bool operator==(const RouteObject&) const = default;
};

/// The whole set, not the change: a driver fills a new set and swaps it in. The family of a name never changes.
struct IpSetObject {
  std::string name;
  IpSet set;
  bool operator==(const IpSetObject&) const = default;
};

/// The whole chain in order.
struct ChainObject {
  ChainKey key;
  std::vector<FilterRule> rules;
  bool operator==(const ChainObject&) const = default;
};

/// Adding one saves the old value below kSysctlStateDirectory; removing one restores it. Observed are those with a
/// saved value.
struct SysctlObject {
  std::string name;
  std::string value;
  bool operator==(const SysctlObject&) const = default;
};

/// FDB entries are identified by (link, mac) and neighbours by (link, address): replace changes the rest.
using Object = std::variant<SaObject, PolicyObject, LinkObject, FdbEntry, Neighbour, RouteObject, IpSetObject,
                            ChainObject, SysctlObject>;

Slice slice_of(const Object& object);

/// Phases in the order in which a script runs: first everything is made, then the old is removed in reverse order. The
/// block policies are made before and removed after everything that could attract traffic, so that no packet to or
/// from another cluster ever passes in clear.
enum class Phase : std::uint8_t {
  sysctls,
  links,
  forwarding,  ///< FDB entries and neighbours.
  ipsets,
  inbound_sas,
  block_policies,
  esp_policies,
  outbound_sas,
  routes,
  chains,
  remove_chains,
  remove_routes,
  remove_outbound_sas,
  remove_esp_policies,
  remove_inbound_sas,
  remove_ipsets,
  remove_forwarding,
  remove_links,
  remove_block_policies,
  remove_sysctls,
};

struct Step {
  Phase phase = Phase::sysctls;
  Verb verb = Verb::add;
  Object object;
  bool operator==(const Step&) const = default;
};

/// "add SA 192.0.2.1 spi 0x00001234 reqid 0x46000001"; for logs and errors, without key material.
std::string describe(const Step& step);

/// Something that a script cannot put right; the shell reports it.
struct Finding {
  SaKey sa;
  std::string reason;  ///< Names the attribute, the desired and the observed value.
  bool operator==(const Finding&) const = default;
};

/// Steps in order of their phases.
struct Script {
  std::vector<Step> steps;
  std::vector<Finding> findings;

  bool empty() const { return steps.empty(); }

  bool operator==(const Script&) const = default;
};

}  // namespace fabric::netstate
