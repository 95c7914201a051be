#include <fabric/gateway/sa_plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

namespace fabric::gateway {

namespace {

using crypto::GatewayId;
using crypto::Generation;
using netstate::Sa;
using netstate::SaKey;

enum class Side : std::uint8_t { inbound, outbound };

/// When SAs were lost, an older generation goes as soon as nothing came over it for so long: two looks at the counters.
constexpr Duration kUrgentIdle = std::chrono::seconds(2);

std::string name_of(const GatewayId& id) {
  return id.cluster + "/" + id.gateway;
}

bool has_packets(const ObservedSa& seen) {
  return seen.sa.counters && seen.sa.counters->packets > 0;
}

SaKey inbound_key(const MadePair& made) {
  return {made.path.local, made.inbound_spi};
}

SaKey outbound_key(const MadePair& made) {
  return {made.path.remote, made.outbound_spi};
}

/// One run. Members are filled in the order of run().
class Run {
 public:
  Run(const SaInputs& inputs, const SaMemory& memory, const DerivePair& derive) : in_(inputs), derive_(derive) {
    plan_.memory = memory;
    for (const auto& mine : in_.mine) {
      if (memory.dropped.contains(mine.generation)) {
        dropped_.push_back(mine.generation);
      } else {
        mine_.push_back(mine);
        live_.push_back(mine.generation);
      }
    }
  }

  SaPlan run() {
    note_last_draw();
    index_observed();
    collect_proofs();
    collect_losses();
    drop_drained();
    for (const auto& [id, peer] : in_.peers) {
      if (peer.leaving) continue;
      plan_inbound(id, peer);
      plan_outbound(id, peer);
    }
    drop_unknown();
    keep_the_rest();
    publish();
    draw();
    wake();
    forget();
    return std::move(plan_);
  }

 private:
  struct Origin {
    PairId pair;
    Side side;
  };

  void note_last_draw() {
    if (in_.mine.empty()) return;
    const auto& newest = in_.mine.back();
    auto& last = plan_.memory.last_draw;
    if (last && last->generation >= newest.generation) return;
    last = LastDraw{.generation = newest.generation, .at = newest.drawn, .losses = newest.losses};
  }

  // --- what the kernel shows -----------------------------------------------------------------------------------------

  void index_observed() {
    for (const auto& [pair, made] : plan_.memory.made) {
      if (made.inbound) origins_.emplace(inbound_key(made), Origin{pair, Side::inbound});
      if (made.outbound) origins_.emplace(outbound_key(made), Origin{pair, Side::outbound});
    }
    for (const auto& [key, seen] : in_.observed) {
      const auto origin = origins_.find(key);
      if (origin == origins_.end() || origin->second.side != Side::inbound) continue;
      auto& sas = plan_.peers[origin->second.pair.peer];
      sas.inbound = true;
      if (has_packets(seen)) sas.inbound_idle = std::min(sas.inbound_idle.value_or(seen.idle), seen.idle);
    }
  }

  const ObservedSa* observed(const SaKey& key) const {
    const auto found = in_.observed.find(key);
    return found == in_.observed.end() ? nullptr : &found->second;
  }

  const MadePair* made(const PairId& pair) const {
    const auto found = plan_.memory.made.find(pair);
    return found == plan_.memory.made.end() ? nullptr : &found->second;
  }

  bool inbound_present(const PairId& pair) const {
    const auto* known = made(pair);
    return known != nullptr && known->inbound && observed(inbound_key(*known)) != nullptr;
  }

  bool is_live(Generation mine) const { return std::ranges::find(live_, mine) != live_.end(); }

  // --- evidence ------------------------------------------------------------------------------------------------------

  /// A packet on an inbound SA proves that the peer sends with my generation; its published list proves that it could.
  void collect_proofs() {
    for (const auto& [key, origin] : origins_) {
      const auto* seen = observed(key);
      if (origin.side != Side::inbound || seen == nullptr || seen->rewound || !has_packets(*seen)) continue;
      plan_.memory.proofs.insert({origin.pair.mine, origin.pair.peer, origin.pair.instance});
    }
    for (const auto& [id, peer] : in_.peers) {
      for (const auto generation : peer.seen_mine) {
        if (is_live(generation)) plan_.memory.proofs.insert({generation, id, peer.instance});
      }
    }
  }

  bool proved(Generation mine, const GatewayId& id, const PeerKeys& peer) const {
    return plan_.memory.proofs.contains({mine, id, peer.instance});
  }

  /// Generations with an SA that should be in the kernel and is not.
  void collect_losses() {
    const auto gone = [&](const SaKey& key) {
      const auto* seen = observed(key);
      return seen == nullptr || seen->rewound;
    };
    for (const auto& [pair, known] : plan_.memory.made) {
      const auto peer = in_.peers.find(pair.peer);
      if (!is_live(pair.mine) || peer == in_.peers.end() || peer->second.leaving) continue;
      if (peer->second.instance != pair.instance) continue;
      const bool announced = std::ranges::find(peer->second.generations, pair.theirs) != peer->second.generations.end();
      const auto current = plan_.memory.outbound.find(pair.peer);
      const bool in_use = current != plan_.memory.outbound.end() && current->second == pair;
      if ((announced && known.inbound && gone(inbound_key(known))) ||
          (in_use && known.outbound && gone(outbound_key(known)))) {
        lost_.insert(pair.mine);
      }
    }
  }

  // --- the end of a generation ---------------------------------------------------------------------------------------

  void drop_drained() {
    if (mine_.size() < 2) return;
    const auto& oldest = mine_.front();
    const auto& newest = mine_.back();
    const bool too_old = in_.now >= oldest.drawn + in_.limits.hard_lifetime;
    if (!is_known(newest.generation)) return;
    if (too_old || has_ended(oldest, newest)) drop(oldest.generation);
  }

  /// When the newest one lost SAs, only another one helps, and there is room for two.
  bool has_ended(const MyGeneration& oldest, const MyGeneration& newest) const {
    const bool urgent = lost_.contains(newest.generation);
    if (!urgent && in_.now < newest.drawn + in_.limits.min_drain) return false;
    return drained(oldest.generation, newest.generation,
                   urgent ? std::min(kUrgentIdle, in_.limits.drain_idle) : in_.limits.drain_idle);
  }

  bool drained(Generation old, Generation next, Duration idle) const {
    for (const auto& [key, origin] : origins_) {
      const auto* seen = observed(key);
      if (seen != nullptr && origin.side == Side::inbound && origin.pair.mine == old && seen->idle < idle) return false;
    }
    const auto heard = heard_lately();
    return std::ranges::all_of(in_.peers, [&](const auto& entry) {
      const auto& [id, peer] = entry;
      return peer.leaving || !heard.contains(id) || (proved(next, id, peer) && switched(id, old, next));
    });
  }

  /// From the others nothing came for long over any SA; a new SA counts as young, so a peer gets this time after each
  /// rotation.
  std::set<GatewayId> heard_lately() const {
    std::set<GatewayId> result;
    for (const auto& [key, origin] : origins_) {
      const auto* seen = observed(key);
      if (seen != nullptr && origin.side == Side::inbound && seen->idle < silent_after())
        result.insert(origin.pair.peer);
    }
    return result;
  }

  /// A silent peer hears of a new generation at the broker when it comes back. While the broker is away it would stay
  /// out until the broker returns, so it gets as much time as others wait for the next rotation anyway.
  Duration silent_after() const {
    const bool unheard = !mine_.empty() && in_.tunnel_only.contains(mine_.back().generation);
    return unheard ? std::max(in_.limits.silent_after, in_.limits.rotate_after) : in_.limits.silent_after;
  }

  /// We send with `next`. An SA that was lost after the switch does not undo it: the old one is gone in any case.
  bool switched(const GatewayId& id, Generation old, Generation next) const {
    const auto current = plan_.memory.outbound.find(id);
    if (current == plan_.memory.outbound.end() || current->second.mine != next) return false;
    const auto* known = made(current->second);
    if (known == nullptr || !known->outbound) return false;
    return observed(outbound_key(*known)) != nullptr || std::ranges::none_of(origins_, [&](const auto& entry) {
             const auto& [key, origin] = entry;
             return origin.side == Side::outbound && origin.pair.peer == id && origin.pair.mine == old &&
                    observed(key) != nullptr;
           });
  }

  void drop(Generation generation) {
    std::erase(live_, generation);
    dropped_.push_back(generation);
    plan_.memory.dropped.insert(generation);
  }

  /// A generation that nobody knows yet and that clashes or lost SAs is drawn anew; nothing was ever received with it.
  void drop_unknown() {
    auto useless = clashed_;
    useless.insert(lost_.begin(), lost_.end());
    for (const auto generation : useless) {
      if (!is_live(generation) || is_known(generation)) continue;
      drop(generation);
      auto& last = plan_.memory.last_draw;
      if (last && last->generation == generation && lost_.contains(generation)) last->lost = true;
    }
    std::erase_if(plan_.desired, [&](const auto& entry) {
      const auto origin = planned_.find(entry.first);
      return origin != planned_.end() && !is_live(origin->second.pair.mine);
    });
  }

  bool is_published(Generation generation) const {
    return in_.published &&
           std::ranges::find(in_.published->generations, generation) != in_.published->generations.end();
  }

  /// Published, or it came to a peer though we did not hear that it was.
  bool is_known(Generation generation) const {
    return is_published(generation) ||
           std::ranges::any_of(plan_.memory.proofs, [&](const Proof& proof) { return proof.mine == generation; });
  }

  // --- inbound -------------------------------------------------------------------------------------------------------

  void plan_inbound(const GatewayId& id, const PeerKeys& peer) {
    for (const auto mine : live_) {
      for (const auto theirs : peer.generations) {
        const PairId pair{.peer = id, .instance = peer.instance, .theirs = theirs, .mine = mine};
        const auto* known = made(pair);
        if (known != nullptr && known->inbound) {
          keep_inbound(pair, *known, peer);
        } else {
          add_inbound(pair, peer);
        }
      }
    }
  }

  void keep_inbound(const PairId& pair, const MadePair& known, const PeerKeys& peer) {
    const auto key = inbound_key(known);
    const auto* seen = observed(key);
    if (seen != nullptr) keep(key, *seen);
    if (seen == nullptr || seen->rewound) lose(pair, key);
    const bool newest = pair.theirs == peer.generations.back();
    if (newest && peer.path && *peer.path != known.path) moved_.insert(pair.mine);
  }

  void add_inbound(const PairId& pair, const PeerKeys& peer) {
    const auto sas = derive(pair, peer);
    if (!sas) {
      underivable_.insert(pair);
      return;
    }
    const MadePair pair_made{
        .path = *peer.path, .inbound_spi = sas->inbound_spi, .outbound_spi = sas->outbound_spi, .inbound = true};
    // The outbound key is looked at too, since it is better to learn of a clash before the generation is published.
    if (is_taken(inbound_key(pair_made)) || is_taken(outbound_key(pair_made))) return clash(pair);
    unready_.insert(pair.mine);
    add(inbound_key(pair_made), make_sa(*peer.path, peer, *sas, Side::inbound), {pair, Side::inbound});
    plan_.memory.made.insert_or_assign(pair, pair_made);
  }

  /// Absent, with a finding, when the pair can have no SAs; that does not hold up others.
  std::optional<PairSas> derive(const PairId& pair, const PeerKeys& peer) {
    if (!peer.path) {
      find(FindingKind::no_path, pair.peer, "shows no address of a family that this gateway has");
      return std::nullopt;
    }
    auto sas = derive_(pair);
    if (!sas) {
      find(FindingKind::not_derivable, pair.peer, sas.error().message());
      return std::nullopt;
    }
    return *std::move(sas);
  }

  bool is_taken(const SaKey& key) const {
    return in_.observed.contains(key) || plan_.desired.contains(key) || plan_.memory.occupied.contains(key);
  }

  Sa make_sa(const Path& path, const PeerKeys& peer, const PairSas& sas, Side side) const {
    const bool inbound = side == Side::inbound;
    Sa sa;
    sa.saddr = inbound ? path.remote : path.local;
    sa.reqid = peer.reqid;
    sa.aead = sas.aead;
    sa.encap = path.encap;
    if (inbound && sa.encap) std::swap(sa.encap->sport, sa.encap->dport);
    sa.replay_window = in_.limits.replay_window;
    sa.soft_packets = in_.limits.soft_packets;
    sa.soft_bytes = in_.limits.soft_bytes;
    sa.hard_packets = in_.limits.hard_packets;
    sa.hard_seconds =
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(in_.limits.hard_lifetime).count());
    sa.key = inbound ? sas.inbound : sas.outbound;
    return sa;
  }

  void add(const SaKey& key, Sa sa, Origin origin) {
    plan_.desired.insert_or_assign(key, std::move(sa));
    planned_.insert_or_assign(key, std::move(origin));
  }

  /// As observed and without key material: kept, never added again.
  void keep(const SaKey& key, const ObservedSa& seen) {
    auto sa = seen.sa;
    sa.key = nullptr;
    sa.counters.reset();
    plan_.desired.insert_or_assign(key, std::move(sa));
  }

  void clash(const PairId& pair) {
    clashed_.insert(pair.mine);
    find(FindingKind::spi_clash, pair.peer, "its SPIs are taken at this address; new keys are drawn");
  }

  void lose(const PairId& pair, const SaKey& key) {
    lost_.insert(pair.mine);
    unready_.insert(pair.mine);
    find(FindingKind::sa_lost, pair.peer,
         fmt::format("SA {} spi {:#010x} was removed or replaced by somebody else; new keys are drawn", key.daddr,
                     key.spi.value()));
  }

  // --- outbound ------------------------------------------------------------------------------------------------------

  void plan_outbound(const GatewayId& id, const PeerKeys& peer) {
    const auto current = current_outbound(id);
    auto target = current;
    if (const auto best = best_outbound(id, peer)) {
      const bool forward = !current || *best != *current;
      const bool newer =
          !current || current->theirs < best->theirs || (current->theirs == best->theirs && current->mine < best->mine);
      if (forward && newer && add_outbound(*best, peer)) target = best;
    }
    if (target) plan_.memory.outbound.insert_or_assign(id, *target);
    retire_outbound(id, peer, target);
  }

  std::optional<PairId> current_outbound(const GatewayId& id) const {
    const auto current = plan_.memory.outbound.find(id);
    if (current == plan_.memory.outbound.end() || !is_live(current->second.mine)) return std::nullopt;
    return current->second;
  }

  /// The peer's newest generation with my newest one that it proved to be ready for.
  std::optional<PairId> best_outbound(const GatewayId& id, const PeerKeys& peer) const {
    if (peer.generations.empty()) return std::nullopt;
    for (const auto mine : live_ | std::views::reverse) {
      if (proved(mine, id, peer))
        return PairId{.peer = id, .instance = peer.instance, .theirs = peer.generations.back(), .mine = mine};
    }
    return std::nullopt;
  }

  /// Adding it is the switch. False when it cannot be added; then the present one stays in use.
  bool add_outbound(const PairId& pair, const PeerKeys& peer) {
    const auto found = plan_.memory.made.find(pair);
    // Without the inbound SA the pair has no frozen path yet, or it clashed.
    if (found == plan_.memory.made.end() || found->second.outbound) return false;
    auto& known = found->second;
    const auto sas = derive_(pair);
    if (!sas) return false;
    const auto key = outbound_key(known);
    if (is_taken(key)) {
      clash(pair);
      return false;
    }
    add(key, make_sa(known.path, peer, *sas, Side::outbound), {pair, Side::outbound});
    known.outbound = true;
    return true;
  }

  /// Others than the target go once the target is seen in the kernel, so that a refused add cuts nothing.
  void retire_outbound(const GatewayId& id, const PeerKeys& peer, const std::optional<PairId>& target) {
    const auto* known = target ? made(*target) : nullptr;
    const auto* seen = known != nullptr ? observed(outbound_key(*known)) : nullptr;
    if (seen != nullptr) keep(outbound_key(*known), *seen);
    if (known != nullptr && !plan_.desired.contains(outbound_key(*known))) lose(*target, outbound_key(*known));
    plan_.peers[id].outbound = seen != nullptr;
    if (seen != nullptr && seen->rewound) lose(*target, outbound_key(*known));
    if (seen != nullptr) return;
    for (const auto& [key, other] : in_.observed) {
      if (!is_outbound_to(key, other, id, peer)) continue;
      keep(key, other);
      plan_.peers[id].outbound = true;
    }
  }

  bool is_outbound_to(const SaKey& key, const ObservedSa& other, const GatewayId& id, const PeerKeys& peer) const {
    const auto origin = origins_.find(key);
    if (origin != origins_.end()) {
      return origin->second.side == Side::outbound && origin->second.pair.peer == id &&
             is_live(origin->second.pair.mine);
    }
    return is_adopted_of(peer, Side::outbound, key, other);
  }

  // --- what is neither of a live pair nor in use
  // ----------------------------------------------------------------------

  bool is_adopted_of(const PeerKeys& peer, Side side, const SaKey& key, const ObservedSa& other) const {
    if (!peer.path || other.sa.reqid != peer.reqid) return false;
    const auto& [near, far] = std::pair(peer.path->local, peer.path->remote);
    return side == Side::inbound ? key.daddr == near && other.sa.saddr == far
                                 : key.daddr == far && other.sa.saddr == near;
  }

  void keep_the_rest() {
    for (const auto& [key, seen] : in_.observed) {
      if (plan_.desired.contains(key)) continue;
      const auto origin = origins_.find(key);
      const bool wanted = origin == origins_.end() ? keeps_adopted(key, seen) : keeps_own(origin->second, seen);
      if (wanted) keep(key, seen);
    }
  }

  /// Inbound SAs with a generation that the peer dropped stay while it uses them; also while its records are not known.
  bool keeps_own(const Origin& origin, const ObservedSa& seen) const {
    if (origin.side == Side::outbound || !is_live(origin.pair.mine)) return false;
    const auto peer = in_.peers.find(origin.pair.peer);
    if (peer == in_.peers.end() || peer->second.leaving) return false;
    const auto& theirs = peer->second.generations;
    if (theirs.empty() || theirs.back() <= origin.pair.theirs) return true;
    return seen.idle < in_.limits.drain_idle;
  }

  /// Of an earlier instance of this gateway. Unknown is not gone: without a peer that matches it stays until the kernel
  /// ends it at its hard lifetime.
  bool keeps_adopted(const SaKey& key, const ObservedSa& seen) const {
    for (const auto& [id, peer] : in_.peers) {
      if (is_adopted_of(peer, Side::outbound, key, seen)) return false;  // plan_outbound() kept what is still needed.
      if (!is_adopted_of(peer, Side::inbound, key, seen)) continue;
      if (peer.leaving) return false;
      const bool replaced = !live_.empty() && proved(live_.back(), id, peer);
      return !replaced || seen.idle < in_.limits.drain_idle;
    }
    return true;
  }

  // --- actions -------------------------------------------------------------------------------------------------------

  void publish() {
    Publication publication;
    for (const auto mine : live_) {
      const bool ready = !unready_.contains(mine) && !clashed_.contains(mine);
      if (ready || is_published(mine)) publication.generations.push_back(mine);
    }
    for (const auto& [id, peer] : in_.peers) {
      if (peer.leaving) continue;
      for (const auto theirs : peer.generations) {
        if (is_seen(id, peer, theirs, publication.generations))
          publication.seen.insert({.peer = id, .instance = peer.instance, .generation = theirs});
      }
    }
    if (!publication.generations.empty() && in_.published != publication) {
      plan_.actions.emplace_back(Publish{std::move(publication)});
    }
    for (const auto generation : dropped_)
      plan_.actions.emplace_back(DropGeneration{generation});
  }

  /// The peer will send with my newest generation, so that this one must be there. An older one may have nothing in
  /// common with theirs: after a rotation of PSKs a new record lists one that an old record does not.
  bool is_seen(const GatewayId& id, const PeerKeys& peer, Generation theirs,
               const std::vector<Generation>& mine) const {
    return !mine.empty() && std::ranges::all_of(mine, [&](Generation one) {
      const PairId pair{.peer = id, .instance = peer.instance, .theirs = theirs, .mine = one};
      return inbound_present(pair) || (one != mine.back() && underivable_.contains(pair));
    });
  }

  void draw() {
    const auto reason = draw_reason();
    if (!reason) return;
    DrawGeneration action{.reason = *reason};
    const auto& last = plan_.memory.last_draw;
    if (*reason == DrawReason::sa_lost) {
      const bool was_young = last && in_.now < last->at + 2 * in_.limits.min_between_draws;
      action.losses = was_young ? last->losses + 1 : 1;
    }
    // The first one, and one in place of an unpublished one that clashed, disturb nobody.
    if (last && *reason != DrawReason::first) {
      const auto allowed = last->at + min_wait(*reason, last->losses);
      if (in_.now < allowed) return wake_at(allowed);
    }
    plan_.actions.emplace_back(action);
  }

  Duration min_wait(DrawReason reason, unsigned losses) const {
    const auto most = in_.limits.min_between_draws;
    if (reason != DrawReason::sa_lost) return most;
    auto wait = in_.limits.min_after_loss;
    for (unsigned i = 0; i < losses && wait < most; ++i)
      wait *= 2;
    return std::min(wait, most);
  }

  /// Only the newest generation gives a reason, and only when there is room for another.
  std::optional<DrawReason> draw_reason() const {
    const bool replaces_lost = plan_.memory.last_draw && plan_.memory.last_draw->lost;
    if (live_.empty()) return replaces_lost ? DrawReason::sa_lost : DrawReason::first;
    if (mine_.size() > 1) return std::nullopt;
    if (replaces_lost) return DrawReason::sa_lost;
    const auto& newest = mine_.back();
    if (lost_.contains(newest.generation)) return DrawReason::sa_lost;
    if (clashed_.contains(newest.generation)) return DrawReason::spi_clash;
    if (newest.psks != in_.psks) return DrawReason::psk_changed;
    if (moved_.contains(newest.generation)) return DrawReason::path_changed;
    if (in_.rotation_requested && newest.drawn < *in_.rotation_requested) return DrawReason::requested;
    if (any_used_up(newest.generation, in_.limits.soft_packets, &netstate::SaCounters::packets)) {
      return DrawReason::packets;
    }
    if (any_used_up(newest.generation, in_.limits.soft_bytes, &netstate::SaCounters::bytes)) return DrawReason::bytes;
    if (in_.now >= rotation_time(newest)) return DrawReason::age;
    return std::nullopt;
  }

  bool any_used_up(Generation mine, std::uint64_t limit, std::uint64_t netstate::SaCounters::* counter) const {
    return limit != 0 && std::ranges::any_of(origins_, [&](const auto& entry) {
             const auto* seen = observed(entry.first);
             return entry.second.pair.mine == mine && seen != nullptr && seen->sa.counters &&
                    (*seen->sa.counters).*counter >= limit;
           });
  }

  TimePoint rotation_time(const MyGeneration& mine) const {
    const auto age = static_cast<double>(in_.limits.rotate_after.count()) * (1 + mine.jitter);
    return mine.drawn + Duration(static_cast<Duration::rep>(age));
  }

  void wake() {
    if (mine_.empty()) return;
    const auto& newest = mine_.back();
    if (mine_.size() == 1) wake_at(rotation_time(newest));
    if (mine_.size() == 2) wake_at(newest.drawn + in_.limits.min_drain);
    const auto half = mine_.front().drawn + in_.limits.hard_lifetime / 2;
    if (in_.now < half) return;
    find(
        FindingKind::old_generation, in_.self,
        "its oldest keys are in use for half of their hard lifetime: see whether the broker can be reached and whether "
        "all peers answer");
  }

  void wake_at(TimePoint when) {
    if (when > in_.now) plan_.next_wake = std::min(plan_.next_wake.value_or(when), when);
  }

  void find(FindingKind kind, const GatewayId& id, std::string_view message) {
    Finding finding{
        .kind = kind, .subject = name_of(id), .message = fmt::format("gateway {}: {}", name_of(id), message)};
    if (std::ranges::find(plan_.findings, finding) == plan_.findings.end())
      plan_.findings.push_back(std::move(finding));
  }

  /// What concerns wiped generations can never be derived again, so nothing of it must be remembered.
  void forget() {
    auto& memory = plan_.memory;
    std::erase_if(memory.dropped, [&](Generation generation) {
      return std::ranges::find(in_.mine, generation, &MyGeneration::generation) == in_.mine.end();
    });
    std::erase_if(memory.proofs, [&](const Proof& proof) { return !is_live(proof.mine); });
    std::erase_if(memory.outbound,
                  [&](const auto& entry) { return !is_live(entry.second.mine) || !in_.peers.contains(entry.first); });
    std::erase_if(memory.made, [&](const auto& entry) {
      const auto& [pair, known] = entry;
      return !is_live(pair.mine) && observed(inbound_key(known)) == nullptr && observed(outbound_key(known)) == nullptr;
    });
    if (clashed_.empty()) memory.occupied.clear();
  }

  const SaInputs& in_;
  const DerivePair& derive_;
  SaPlan plan_;
  std::vector<MyGeneration> mine_;  ///< Without what an earlier run dropped and the shell still holds.
  std::vector<Generation> live_;    ///< Without what this run drops.
  std::vector<Generation> dropped_;
  std::map<SaKey, Origin> origins_;  ///< Of SAs that this process made, also of those that are gone.
  std::map<SaKey, Origin> planned_;
  std::set<Generation> unready_;  ///< An inbound SA is not in the kernel yet.
  std::set<Generation> clashed_;
  std::set<Generation> lost_;
  std::set<PairId> underivable_;
  std::set<Generation> moved_;  ///< A peer is to be reached by another path.
};

}  // namespace

void note_failed_add(SaMemory& memory, const netstate::SaKey& key, bool exists) {
  if (exists) memory.occupied.insert(key);
  for (auto& [pair, made] : memory.made) {
    if (made.inbound && inbound_key(made) == key) made.inbound = false;
    if (!made.outbound || outbound_key(made) != key) continue;
    made.outbound = false;
    const auto current = memory.outbound.find(pair.peer);
    if (current != memory.outbound.end() && current->second == pair) memory.outbound.erase(current);
  }
}

std::string_view to_string(DrawReason reason) {
  switch (reason) {
    case DrawReason::first:
      return "first";
    case DrawReason::age:
      return "age";
    case DrawReason::packets:
      return "packets";
    case DrawReason::bytes:
      return "bytes";
    case DrawReason::sa_lost:
      return "sa_lost";
    case DrawReason::spi_clash:
      return "spi_clash";
    case DrawReason::psk_changed:
      return "psk_changed";
    case DrawReason::path_changed:
      return "path_changed";
    case DrawReason::requested:
      return "requested";
  }
  return "unknown";
}

SaPlan plan_sas(const SaInputs& inputs, const SaMemory& memory, const DerivePair& derive) {
  return Run(inputs, memory, derive).run();
}

}  // namespace fabric::gateway
