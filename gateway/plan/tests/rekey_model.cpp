#include "rekey_model.hpp"

#include <fabric/base/assert.hpp>
#include <fabric/crypto/hash.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <unordered_set>

namespace fabric::gateway::model {

namespace {

using crypto::Generation;
using netstate::SaKey;
using netstate::Spi;

constexpr std::array<std::size_t, 2> kBoth = {0, 1};
const netstate::Reqid kReqid(0x46000001);

crypto::GatewayId id_of(std::size_t node) {
  return {node == 0 ? "a" : "b", "gateway"};
}

net::IpAddress address_of(std::size_t node) {
  return net::IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(node + 1));
}

crypto::InstanceId instance_of(std::uint64_t start) {
  std::array<std::uint8_t, 16> bytes{};
  bytes[15] = static_cast<std::uint8_t>(start);
  return crypto::InstanceId(bytes);
}

/// Both ends compute the same number; the receiver is part of it.
Spi spi_of(std::size_t receiver, Generation at_receiver, Generation at_sender) {
  const auto value = 0x1000'0000U | static_cast<std::uint32_t>(receiver << 16) |
                     static_cast<std::uint32_t>(at_receiver.value() << 8) |
                     static_cast<std::uint32_t>(at_sender.value());
  return Spi(value);
}

/// PSKs 1 and 2 as bits.
using PskBits = unsigned;
constexpr PskBits kOldPsk = 1;
constexpr PskBits kNewPsk = 2;

std::vector<crypto::PskId> ids_of(PskBits psks) {
  std::vector<crypto::PskId> ids;
  if ((psks & kOldPsk) != 0) ids.push_back({1, {}});
  if ((psks & kNewPsk) != 0) ids.push_back({2, {}});
  return ids;
}

struct Version {
  crypto::InstanceId instance;
  Publication publication;
  std::map<Generation, PskBits> listed;  ///< By the records of the generations.
  PskBits state_psks = kOldPsk;          ///< By the state record.
  bool operator==(const Version&) const = default;
};

struct Node {
  std::uint64_t starts = 0;
  std::uint64_t sequence = 0;
  std::vector<MyGeneration> mine;
  SaMemory memory;
  std::optional<Publication> published;
  std::map<SaKey, bool> inbound;  ///< In the kernel; true when a packet came.
  std::vector<SaKey> outbound;    ///< In the kernel, in the order of adding: the last one is used.
  std::set<SaKey> ever_added;
  std::ptrdiff_t read = -1;  ///< The peer's version that was read last.
  PskBits psks = kOldPsk;
  std::map<Generation, PskBits> listed;    ///< By my own records.
  std::map<Generation, PskBits> accepted;  ///< The peer's records of the version that was read last.
  std::map<std::pair<Generation, Generation>, PskBits> derived;  ///< (mine, theirs): with which PSK, once and for all.
  int rotations = 0;
  int restarts = 0;
  int flushes = 0;
};

struct World {
  std::array<Node, 2> nodes;
  std::array<std::vector<Version>, 2> board;
  std::string violation;
};

/// What two worlds must have in common to have the same future.
class Key {
 public:
  static crypto::Digest of(const World& world) {
    Key key;
    for (const auto i : kBoth) {
      key.node(world.nodes[i]);
      // Versions before the one that the other read last can never be read again, except after a restart.
      const auto& versions = world.board[i];
      key.number(versions.size() - static_cast<std::size_t>(std::max<std::ptrdiff_t>(world.nodes[1 - i].read, 0)));
      const auto first = std::max<std::ptrdiff_t>(world.nodes[1 - i].read, 0);
      for (auto v = versions.begin() + first; v != versions.end(); ++v) {
        key.number(v->instance.value()[15]);
        key.publication(v->publication);
        key.listed(v->listed);
        key.number(v->state_psks);
      }
      key.number(world.nodes[1 - i].read < 0 ? 0 : 1);
    }
    return crypto::sha256(key.bytes_);
  }

 private:
  void number(std::uint64_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes_.push_back(static_cast<std::uint8_t>(value >> shift));
  }

  void sa(const SaKey& key) { number(key.spi.value()); }

  void pair(const PairId& pair) {
    number(pair.mine.value() << 16 | pair.theirs.value() << 8 | pair.instance.value()[15]);
  }

  void publication(const Publication& value) {
    number(value.generations.size() << 8 | value.seen.size());
    for (const auto g : value.generations)
      number(g.value());
    for (const auto& seen : value.seen)
      number(seen.generation.value() << 8 | seen.instance.value()[15]);
  }

  void listed(const std::map<Generation, PskBits>& records) {
    number(records.size());
    for (const auto& [generation, psks] : records)
      number(generation.value() << 2 | psks);
  }

  void node(const Node& node) {
    number(node.psks);
    listed(node.listed);
    listed(node.accepted);
    number(node.derived.size());
    for (const auto& [ids, psk] : node.derived)
      number(ids.first.value() << 16 | ids.second.value() << 2 | psk);
    number(node.memory.last_draw ? 1 + node.memory.last_draw->generation.value() : 0);
    number(node.memory.last_draw && node.memory.last_draw->lost ? 1 : 0);
    number(static_cast<std::uint64_t>(node.flushes));
    number(node.starts << 16 | node.sequence << 8 | node.mine.size());
    for (const auto& mine : node.mine)
      number(mine.generation.value());
    number(node.memory.made.size());
    for (const auto& [id, made] : node.memory.made) {
      pair(id);
      number((made.inbound ? 1U : 0U) | (made.outbound ? 2U : 0U));
    }
    number(node.memory.outbound.size());
    for (const auto& [peer, id] : node.memory.outbound)
      pair(id);
    number(node.memory.proofs.size());
    for (const auto& proof : node.memory.proofs)
      number(proof.mine.value() << 8 | proof.instance.value()[15]);
    number(node.published ? 1 : 0);
    if (node.published) publication(*node.published);
    number(node.inbound.size() << 8 | node.outbound.size());
    for (const auto& [key, packets] : node.inbound) {
      sa(key);
      number(packets ? 1 : 0);
    }
    for (const auto& key : node.outbound)
      sa(key);
    number(node.ever_added.size());
    for (const auto& key : node.ever_added)
      sa(key);
    number(static_cast<std::uint64_t>(node.rotations) << 8 | static_cast<std::uint64_t>(node.restarts));
  }

  crypto::Bytes bytes_;
};

/// One gateway of a world during one step.
class Gateway {
 public:
  Gateway(World& world, std::size_t self, Mistake mistake)
      : world_(world), node_(world.nodes[self]), other_(world.nodes[1 - self]), self_(self), mistake_(mistake) {}

  /// Observe, plan, apply, act: one pass of the shell's loop.
  void pass(bool time_passed, bool requested) {
    const auto plan =
        plan_sas(inputs(time_passed, requested), node_.memory, [this](const PairId& pair) { return derive(pair); });
    apply(plan);
    node_.memory = plan.memory;
    for (const auto& action : plan.actions)
      std::visit([this](const auto& a) { act(a); }, action);
  }

  void restart() {
    ++node_.starts;
    ++node_.restarts;
    node_.sequence = 0;
    node_.mine.clear();
    node_.listed.clear();
    node_.accepted.clear();
    node_.derived.clear();
    node_.memory = {};
    node_.published.reset();
    node_.read = -1;
  }

  void flush() {
    ++node_.flushes;
    node_.inbound.clear();
    node_.outbound.clear();
  }

  /// As gateway::accept() does: the state record and the newest key record must be proved by a PSK that is held; an
  /// older record counts when it is, or was accepted before.
  bool accepts(const Version& version) const {
    if ((version.state_psks & node_.psks) == 0 || version.listed.empty()) return false;
    return (version.listed.rbegin()->second & node_.psks) != 0 ||
           node_.accepted.contains(version.listed.rbegin()->first);
  }

  void read(std::ptrdiff_t at) {
    const auto& version = world_.board[1 - self_][static_cast<std::size_t>(at)];
    std::map<Generation, PskBits> accepted;
    for (const auto& [generation, psks] : version.listed) {
      if ((psks & node_.psks) != 0 || node_.accepted.contains(generation)) accepted.emplace(generation, psks);
    }
    node_.accepted = std::move(accepted);
    node_.read = at;
  }

  void packet() {
    const auto found = other_.inbound.find(node_.outbound.back());
    if (found != other_.inbound.end()) found->second = true;
  }

 private:
  SaInputs inputs(bool time_passed, bool requested) const {
    SaInputs in;
    in.self = id_of(self_);
    in.mine = node_.mine;
    in.psks = ids_of(node_.psks);
    in.published = node_.published;
    in.now = TimePoint(std::chrono::hours(1));
    if (requested) in.rotation_requested = in.now;
    in.limits = {.rotate_after = std::chrono::hours(1000),
                 .min_between_draws = {},
                 .min_drain = {},
                 .silent_after = std::chrono::hours(1000),
                 .hard_lifetime = std::chrono::hours(1000)};
    observe(in, time_passed);
    if (node_.read < 0) return in;
    const auto& version = world_.board[1 - self_][static_cast<std::size_t>(node_.read)];
    PeerKeys peer{.reqid = kReqid,
                  .path = Path{.local = address_of(self_), .remote = address_of(1 - self_), .encap = std::nullopt},
                  .instance = version.instance,
                  .generations = {},
                  .seen_mine = {}};
    for (const auto& [generation, psks] : node_.accepted)
      peer.generations.push_back(generation);
    for (const auto& seen : version.publication.seen) {
      if (seen.instance == instance_of(node_.starts)) peer.seen_mine.insert(seen.generation);
    }
    if (mistake_ == Mistake::switch_without_proof) {
      for (const auto& mine : node_.mine)
        peer.seen_mine.insert(mine.generation);
    }
    in.peers.emplace(id_of(1 - self_), std::move(peer));
    return in;
  }

  void observe(SaInputs& in, bool time_passed) const {
    for (const auto& [key, packets] : node_.inbound) {
      const bool in_use = !other_.outbound.empty() && other_.outbound.back() == key;
      const bool looks_idle = time_passed && (!in_use || mistake_ == Mistake::drain_while_in_use);
      in.observed.emplace(key, observed(address_of(1 - self_), packets, looks_idle));
    }
    for (const auto& key : node_.outbound)
      in.observed.emplace(key, observed(address_of(self_), true, false));
  }

  static ObservedSa observed(const net::IpAddress& source, bool packets, bool idle) {
    ObservedSa seen;
    seen.sa.saddr = source;
    seen.sa.reqid = kReqid;
    seen.sa.counters.emplace().packets = packets ? 1 : 0;
    seen.idle = idle ? Duration(std::chrono::minutes(10)) : Duration{};
    return seen;
  }

  /// The highest PSK that both records list, if it is held; what was derived once stays.
  Result<PairSas> derive(const PairId& pair) {
    auto& psk = node_.derived[{pair.mine, pair.theirs}];
    if (psk == 0) {
      const PskBits common = node_.listed.at(pair.mine) & node_.accepted.at(pair.theirs);
      const PskBits highest = (common & kNewPsk) != 0 ? kNewPsk : common;
      psk = highest & node_.psks;
    }
    if (psk == 0) {
      node_.derived.erase({pair.mine, pair.theirs});
      return fabric::fail(Errc::invalid, "no PSK in common");
    }
    // The planner does not look at key material, so one secret serves all.
    static const auto kKey = std::make_shared<const Secret>(36);
    return PairSas{.inbound_spi = spi_of(self_, pair.mine, pair.theirs),
                   .outbound_spi = spi_of(1 - self_, pair.theirs, pair.mine),
                   .inbound = kKey,
                   .outbound = kKey};
  }

  void apply(const SaPlan& plan) {
    for (const auto& [key, sa] : plan.desired) {
      const bool inbound = key.daddr == address_of(self_);
      const bool present =
          inbound ? node_.inbound.contains(key) : std::ranges::find(node_.outbound, key) != node_.outbound.end();
      if (present) continue;
      if (sa.key == nullptr) fail(fmt::format("SA {:#x} is absent and cannot be added", key.spi.value()));
      if (!node_.ever_added.insert(key).second) fail(fmt::format("SA {:#x} is installed twice", key.spi.value()));
      if (inbound) {
        node_.inbound.emplace(key, false);
      } else {
        node_.outbound.push_back(key);
      }
    }
    std::erase_if(node_.outbound, [&](const SaKey& key) { return !plan.desired.contains(key); });
    std::erase_if(node_.inbound, [&](const auto& entry) { return !plan.desired.contains(entry.first); });
  }

  void act(const DrawGeneration& action) {
    MyGeneration drawn;
    drawn.generation = Generation(node_.starts * 16 + ++node_.sequence);
    drawn.psks = ids_of(node_.psks);
    drawn.reason = action.reason;
    node_.listed.emplace(drawn.generation, node_.psks);
    node_.mine.push_back(drawn);
    if (mistake_ != Mistake::publish_before_install) return;
    auto publication = node_.published.value_or(Publication{});
    publication.generations.push_back(drawn.generation);
    act(Publish{publication});
  }

  void act(const Publish& action) {
    node_.published = action.publication;
    Version version{instance_of(node_.starts), action.publication, {}, node_.psks};
    for (const auto generation : action.publication.generations)
      version.listed.emplace(generation, node_.listed.at(generation));
    auto& versions = world_.board[self_];
    if (versions.empty() || versions.back() != version) versions.push_back(std::move(version));
  }

  void act(const DropGeneration& action) {
    std::erase_if(node_.mine, [&](const MyGeneration& mine) { return mine.generation == action.generation; });
    node_.listed.erase(action.generation);
    std::erase_if(node_.derived, [&](const auto& entry) { return entry.first.first == action.generation; });
  }

  void fail(std::string what) { world_.violation = fmt::format("{}: {}", id_of(self_).cluster, what); }

  World& world_;
  Node& node_;
  Node& other_;
  std::size_t self_;
  Mistake mistake_;
};

/// A packet sent now must find its SA.
void check_delivery(World& world) {
  if (std::ranges::any_of(world.nodes, [](const Node& node) { return node.flushes > 0; })) return;
  for (const auto i : kBoth) {
    const auto& out = world.nodes[i].outbound;
    if (!out.empty() && !world.nodes[1 - i].inbound.contains(out.back())) {
      world.violation =
          fmt::format("{} sends on SA {:#x}, which the other does not have", id_of(i).cluster, out.back().spi.value());
    }
  }
}

bool at_rest(const World& world) {
  return std::ranges::all_of(kBoth, [&](std::size_t i) {
    const auto& node = world.nodes[i];
    return node.mine.size() == 1 && node.inbound.size() == 1 && node.outbound.size() == 1 && node.published &&
           node.published->generations.size() == 1 && node.published->seen.size() == 1 &&
           node.listed.begin()->second == node.psks && world.nodes[1 - i].inbound.contains(node.outbound.front());
  });
}

/// Everything is read, everybody plans, packets flow: in a bounded number of rounds one SA each way must be left.
void check_convergence(World world, Mistake mistake, std::string& violation) {
  constexpr int kRounds = 24;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto i : kBoth) {
      auto& node = world.nodes[i];
      Gateway gateway(world, i, mistake);
      const auto newest = static_cast<std::ptrdiff_t>(world.board[1 - i].size()) - 1;
      if (newest > node.read && gateway.accepts(world.board[1 - i].back())) gateway.read(newest);
      gateway.pass(true, false);
      if (!node.outbound.empty()) gateway.packet();
      check_delivery(world);
      if (!world.violation.empty()) break;
    }
    if (at_rest(world) || !world.violation.empty()) break;
  }
  violation = !world.violation.empty() || at_rest(world) ? world.violation : "does not come to rest";
}

/// What the broker waits for before it drops the old one. Gateways without records are not members yet.
bool all_list_the_new_psk(const World& world) {
  return std::ranges::all_of(world.board, [](const std::vector<Version>& versions) {
    return !versions.empty() && std::ranges::all_of(versions.back().listed,
                                                    [](const auto& record) { return (record.second & kNewPsk) != 0; });
  });
}

class Explorer {
 public:
  explicit Explorer(const Bounds& bounds) : bounds_(bounds) {}

  Outcome run() {
    visit(start(), 0, "start");
    while (!queue_.empty() && outcome_.violation.empty() && history_.size() < bounds_.max_states) {
      const auto [world, at] = std::move(queue_.front());
      queue_.pop_front();
      expand(world, at);
      if (at % bounds_.converge_every == 0 && outcome_.violation.empty()) {
        check_convergence(world, bounds_.mistake, outcome_.violation);
        if (!outcome_.violation.empty()) explain(at);
      }
    }
    outcome_.states = history_.size();
    outcome_.exhausted = queue_.empty() && outcome_.violation.empty();
    return std::move(outcome_);
  }

  Outcome walk(std::uint32_t seed, std::size_t steps) {
    std::mt19937 random(seed);
    visit(start(), 0, "start");
    for (std::size_t i = 0; i < steps && outcome_.violation.empty(); ++i) {
      const auto pick = std::uniform_int_distribution<std::size_t>(0, queue_.size() - 1)(random);
      const auto [world, at] = std::move(queue_[pick]);
      queue_.clear();
      seen_.clear();
      expand(world, at);
      if (i + 1 == steps && outcome_.violation.empty()) {
        check_convergence(world, bounds_.mistake, outcome_.violation);
        if (!outcome_.violation.empty()) explain(at);
      }
    }
    outcome_.states = steps;
    return std::move(outcome_);
  }

 private:
  struct Step {
    std::size_t parent;
    std::string what;
  };

  struct Pending {
    World world;
    std::size_t at;
  };

  struct DigestHash {
    std::size_t operator()(const crypto::Digest& digest) const {
      std::size_t out = 0;
      std::memcpy(&out, digest.data(), sizeof out);
      return out;
    }
  };

  World start() const {
    World world;
    const bool both = bounds_.psk_leaves && !bounds_.psk_arrives;
    for (auto& node : world.nodes)
      node.psks = both ? kOldPsk | kNewPsk : kOldPsk;
    return world;
  }

  void expand(const World& world, std::size_t at) {
    for (const auto i : kBoth) {
      const auto& node = world.nodes[i];
      const auto name = id_of(i).cluster;
      step(world, at, i, name + " plans", [](Gateway& g) { g.pass(false, false); });
      step(world, at, i, name + " plans after a while", [](Gateway& g) { g.pass(true, false); });
      if (node.mine.size() == 1 && node.rotations < bounds_.rotations) {
        step(
            world, at, i, name + " rotates", [](Gateway& g) { g.pass(false, true); },
            [&](World& next) { ++next.nodes[i].rotations; });
      }
      for (auto v = node.read + 1; v < static_cast<std::ptrdiff_t>(world.board[1 - i].size()); ++v) {
        step(world, at, i, fmt::format("{} reads version {}", name, v), [&](Gateway& g) {
          if (!g.accepts(world.board[1 - i][static_cast<std::size_t>(v)])) return;
          g.read(v);
          if (bounds_.plan_at_once) g.pass(false, false);
        });
      }
      if (bounds_.psk_arrives && node.psks == kOldPsk) {
        step(
            world, at, i, name + " gets the new PSK", [&](Gateway&) {},
            [&](World& next) { next.nodes[i].psks |= kNewPsk; });
      }
      if (bounds_.psk_leaves && node.psks == (kOldPsk | kNewPsk) && all_list_the_new_psk(world)) {
        step(
            world, at, i, name + " loses the old PSK", [&](Gateway&) {},
            [&](World& next) { next.nodes[i].psks = kNewPsk; });
      }
      if (node.flushes < bounds_.flushes && !node.inbound.empty()) {
        step(world, at, i, name + " loses all SAs", [](Gateway& g) { g.flush(); });
      }
      if (!node.outbound.empty()) step(world, at, i, name + " sends", [](Gateway& g) { g.packet(); });
      if (node.restarts < bounds_.restarts && !node.mine.empty()) {
        step(world, at, i, name + " restarts", [](Gateway& g) { g.restart(); });
      }
    }
  }

  template <class Act, class Before = decltype([](World&) {})>
  void step(const World& world, std::size_t at, std::size_t node, std::string what, Act act, Before before = {}) {
    if (!outcome_.violation.empty()) return;
    World next = world;
    before(next);
    Gateway gateway(next, node, bounds_.mistake);
    act(gateway);
    check_delivery(next);
    visit(std::move(next), at, std::move(what));
  }

  void visit(World world, std::size_t parent, std::string what) {
    if (!seen_.insert(Key::of(world)).second && world.violation.empty()) return;
    history_.push_back({parent, std::move(what)});
    const auto at = history_.size() - 1;
    if (!world.violation.empty()) {
      outcome_.violation = world.violation;
      explain(at);
      return;
    }
    queue_.push_back({std::move(world), at});
  }

  void explain(std::size_t at) {
    for (; at != 0; at = history_[at].parent)
      outcome_.trace.insert(outcome_.trace.begin(), history_[at].what);
  }

  Bounds bounds_;
  Outcome outcome_;
  std::unordered_set<crypto::Digest, DigestHash> seen_;
  std::vector<Step> history_;
  std::deque<Pending> queue_;
};

}  // namespace

Outcome wander(const Bounds& bounds, std::uint32_t seed, std::size_t steps) {
  return Explorer(bounds).walk(seed, steps);
}

Outcome explore(const Bounds& bounds) {
  return Explorer(bounds).run();
}

}  // namespace fabric::gateway::model
