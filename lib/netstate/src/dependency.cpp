#include <fabric/netstate/diff.hpp>

#include <algorithm>
#include <optional>

namespace fabric::netstate {

namespace {

/// The link that an object hangs on, or is.
const std::string* link_of(const Object& object) {
  if (const auto* link = std::get_if<LinkObject>(&object)) return &link->name;
  if (const auto* fdb = std::get_if<FdbEntry>(&object)) return &fdb->link;
  if (const auto* neighbour = std::get_if<Neighbour>(&object)) return &neighbour->link;
  if (const auto* route = std::get_if<RouteObject>(&object)) return &route->route.link;
  return nullptr;
}

std::optional<Reqid> reqid_of(const Object& object) {
  if (const auto* sa = std::get_if<SaObject>(&object)) return sa->sa.reqid;
  return std::nullopt;
}

bool names_set(const ChainObject& chain, const std::string& set) {
  return std::ranges::any_of(chain.rules,
                             [&](const FilterRule& rule) { return rule.src_set == set || rule.dst_set == set; });
}

/// Whether a block policy is about this remote prefix. Its local side is a wildcard.
bool covers(const PolicyObject& block, const Cidr& remote) {
  const auto& side = block.key.direction == Direction::out ? block.key.dst : block.key.src;
  return side.overlaps(remote);
}

}  // namespace

bool depends_on(const Step& later, const Step& failed) {
  if (later.phase <= failed.phase) return false;
  const bool removes = later.verb == Verb::remove;
  const bool failed_removes = failed.verb == Verb::remove;

  // What hangs on a link needs the link; the link goes after what hangs on it, but takes it along in any case.
  if (std::holds_alternative<LinkObject>(failed.object)) {
    const auto* link = link_of(later.object);
    return !failed_removes && !removes && link != nullptr && *link == *link_of(failed.object);
  }
  if (const auto* set = std::get_if<IpSetObject>(&failed.object)) {
    const auto* chain = std::get_if<ChainObject>(&later.object);
    return !failed_removes && !removes && chain != nullptr && names_set(*chain, set->name);
  }
  // A set in use cannot go; which rules of a failed chain remain is unknown, so its whole family waits.
  if (const auto* chain = std::get_if<ChainObject>(&failed.object)) {
    const auto* set = std::get_if<IpSetObject>(&later.object);
    return removes && set != nullptr && set->set.family == chain->key.family;
  }
  // The new SA of a cluster is missing: the old ones keep carrying its traffic.
  if (std::holds_alternative<SaObject>(failed.object)) {
    return !failed_removes && removes && reqid_of(later.object) == reqid_of(failed.object) &&
           std::holds_alternative<SaObject>(later.object);
  }
  if (const auto* policy = std::get_if<PolicyObject>(&failed.object)) {
    const bool block = std::holds_alternative<BlockAction>(policy->policy.action);
    // Without its block policy, a prefix would attract traffic that may leave in clear.
    if (const auto* route = std::get_if<RouteObject>(&later.object)) {
      return block && !failed_removes && !removes && covers(*policy, route->key.dst);
    }
    // Without the ESP policy's replacement, and while the old ESP policy stands, what is behind it stays.
    const auto* other = std::get_if<PolicyObject>(&later.object);
    return removes && other != nullptr && other->key.direction == policy->key.direction &&
           other->key.src.overlaps(policy->key.src) && other->key.dst.overlaps(policy->key.dst);
  }
  return false;
}

}  // namespace fabric::netstate
