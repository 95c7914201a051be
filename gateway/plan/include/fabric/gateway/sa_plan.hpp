#pragma once

#include <fabric/crypto/record.hpp>
#include <fabric/gateway/finding.hpp>
#include <fabric/gateway/path.hpp>
#include <fabric/netstate/state.hpp>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

/// Which SAs a gateway has, when it draws, publishes and drops generations of keys. Pure and level-driven: the plan is
/// a function of what is known and what the kernel shows, never of an order of events. Rules of the rekey state
/// machine:
///  1. inbound SAs of a new generation are installed and read back before the generation is published;
///  2. an outbound SA is added only for a peer that proved that it is ready: adding it is the switch;
///  3. an SA is installed once: a lost one is answered by a new generation;
///  4. what may still be in use by a peer stays.
namespace fabric::gateway {

/// Generations of both ends. The instance is the peer's.
struct PairId {
  crypto::GatewayId peer;
  crypto::InstanceId instance;
  crypto::Generation theirs;
  crypto::Generation mine;
  auto operator<=>(const PairId&) const = default;
};

/// What is derived from a pair of generations.
struct PairSas {
  netstate::Spi inbound_spi;
  netstate::Spi outbound_spi;
  netstate::Aead aead = netstate::Aead::aes_gcm_256;
  netstate::KeyMaterial inbound;
  netstate::KeyMaterial outbound;
};

/// Derives a pair; the same id always gives the same value. An error (no common PSK or suite, refused key) excludes
/// that pair.
using DerivePair = std::function<Result<PairSas>(const PairId&)>;

enum class DrawReason : std::uint8_t {
  first,
  age,
  packets,
  bytes,
  sa_lost,
  spi_clash,
  psk_changed,
  path_changed,
  requested
};
std::string_view to_string(DrawReason reason);
inline constexpr std::array kAllDrawReasons = {
    DrawReason::first,     DrawReason::age,         DrawReason::packets,      DrawReason::bytes,    DrawReason::sa_lost,
    DrawReason::spi_clash, DrawReason::psk_changed, DrawReason::path_changed, DrawReason::requested};

/// One of my generations whose private half is in memory.
struct MyGeneration {
  crypto::Generation generation;
  TimePoint drawn;
  double jitter = 0;                ///< -0.15..0.15: part of the rotation age by which it is rotated later.
  std::vector<crypto::PskId> psks;  ///< As its record lists them.
  DrawReason reason = DrawReason::first;
  unsigned losses = 0;  ///< As the DrawGeneration by which it was drawn says.
  bool operator==(const MyGeneration&) const = default;
};

/// What the planner needs of a verified peer.
struct PeerKeys {
  netstate::Reqid reqid;
  std::optional<Path> path;
  crypto::InstanceId instance;
  std::vector<crypto::Generation> generations;  ///< Ascending, 1..2.
  std::set<crypto::Generation> seen_mine;  ///< Mine, of my present instance, that its state record says it has seen.
  bool leaving = false;
};

/// What the kernel shows of an SA.
struct ObservedSa {
  netstate::Sa sa;
  Duration idle{};       ///< Since its packet counter moved, or since it was first observed.
  bool rewound = false;  ///< Its counter went back: somebody else replaced it.
};

/// Turns one observation after another into ObservedSa.
class SaTracker {
 public:
  std::map<netstate::SaKey, ObservedSa> track(const std::map<netstate::SaKey, netstate::Sa>& observed, TimePoint now);

 private:
  struct Counted {
    std::uint64_t packets = 0;
    TimePoint moved;
    bool rewound = false;
  };

  std::map<netstate::SaKey, Counted> counted_;
};

struct SaLimits {
  Duration rotate_after = std::chrono::hours(1);
  Duration min_between_draws = std::chrono::seconds(30);
  /// Instead of min_between_draws after a loss of SAs; doubled by each further loss, up to min_between_draws. Traffic
  /// stands still meanwhile, and one draw costs little; the doubling is for a program that removes our SAs for ever.
  Duration min_after_loss = std::chrono::seconds(1);
  Duration drain_idle = std::chrono::seconds(30);  ///< No packet for so long: the peer does not use an SA any more.
  Duration min_drain = std::chrono::seconds(60);  ///< A generation is not dropped sooner after its successor was drawn.
  Duration silent_after =
      std::chrono::minutes(5);  ///< A peer from which nothing came for so long does not hold up a drain.
  std::uint64_t soft_packets = std::uint64_t{1} << 32;
  std::uint64_t soft_bytes = 0;  ///< 0: no limit.
  std::uint64_t hard_packets = std::uint64_t{1} << 36;
  Duration hard_lifetime = std::chrono::hours(24);
  std::uint32_t replay_window = 1024;
};

/// What others read of us.
struct Publication {
  std::vector<crypto::Generation> generations;  ///< Ascending.
  std::set<crypto::Seen> seen;
  bool operator==(const Publication&) const = default;
};

/// A peer instance has the inbound SAs for one of my generations.
struct Proof {
  crypto::Generation mine;
  crypto::GatewayId peer;
  crypto::InstanceId instance;
  auto operator<=>(const Proof&) const = default;
};

/// SAs that this process made from a pair. Both flags stay true when the SA is gone.
struct MadePair {
  Path path;  ///< Frozen: other addresses need other keys.
  netstate::Spi inbound_spi;
  netstate::Spi outbound_spi;
  bool inbound = false;
  bool outbound = false;
  auto operator<=>(const MadePair&) const = default;
};

/// The newest generation that was ever drawn, be it dropped since.
struct LastDraw {
  crypto::Generation generation;
  TimePoint at;
  unsigned losses = 0;
  bool lost = false;  ///< It lost SAs before anybody knew it, and was dropped.
  auto operator<=>(const LastDraw&) const = default;
};

/// What the planner remembers from one run to the next. A shell keeps SaPlan::memory once it carried out the plan's
/// script.
struct SaMemory {
  std::map<PairId, MadePair> made;
  std::map<crypto::GatewayId, PairId> outbound;  ///< The pair that we send with.
  std::set<Proof> proofs;
  std::set<netstate::SaKey> occupied;  ///< SPIs at addresses that an SA which is not ours holds.
  /// Decided to be dropped; final, even when the shell still holds them, as their SAs are gone and never come back.
  std::set<crypto::Generation> dropped;
  std::optional<LastDraw> last_draw;
  auto operator<=>(const SaMemory&) const = default;
};

/// To be called for each SA that the plan wanted added and the kernel refused to. `exists`: somebody else's SA has that
/// key.
void note_failed_add(SaMemory& memory, const netstate::SaKey& key, bool exists);

/// Draw a key pair with the next generation number and plan again.
struct DrawGeneration {
  DrawReason reason = DrawReason::first;
  unsigned losses =
      0;  ///< Generations in a row, this one included, of which the one before lost SAs when it was young.
  bool operator==(const DrawGeneration&) const = default;
};

/// Publish these records and this list. SaInputs::published tells the planner when it is done.
struct Publish {
  Publication publication;
  bool operator==(const Publish&) const = default;
};

/// Wipe the private half, after the script and the publication of the same plan.
struct DropGeneration {
  crypto::Generation generation;
  bool operator==(const DropGeneration&) const = default;
};

using Action = std::variant<DrawGeneration, Publish, DropGeneration>;

struct SaInputs {
  crypto::GatewayId self;
  std::vector<MyGeneration> mine;  ///< Ascending, 0..2.
  std::map<crypto::GatewayId, PeerKeys> peers;
  std::map<netstate::SaKey, ObservedSa> observed;  ///< Ours by reqid, of this process or an earlier one.
  std::optional<Publication> published;            ///< What was last written; absent after a start.
  /// Published generations that the broker does not have: they left for peers through the tunnel.
  std::set<crypto::Generation> tunnel_only;
  std::vector<crypto::PskId> psks;              ///< Valid now.
  std::optional<TimePoint> rotation_requested;  ///< By a person; met by a generation drawn later.
  TimePoint now;
  SaLimits limits;
};

/// What other planners and the status need to know of a peer.
struct PeerSas {
  bool inbound = false;                  ///< An inbound SA of this process is in the kernel.
  bool outbound = false;                 ///< We can send, be it by an adopted SA.
  std::optional<Duration> inbound_idle;  ///< Since anything came, over all inbound SAs that had a packet.
  bool operator==(const PeerSas&) const = default;
};

struct SaPlan {
  std::map<netstate::SaKey, netstate::Sa> desired;  ///< Key material only on those to be added.
  std::vector<Action> actions;                      ///< To be carried out in this order after `desired` is installed.
  std::vector<Finding> findings;
  std::optional<TimePoint> next_wake;  ///< Nothing changes before by time alone, except idle SAs.
  std::map<crypto::GatewayId, PeerSas> peers;
  SaMemory memory;
};

SaPlan plan_sas(const SaInputs& inputs, const SaMemory& memory, const DerivePair& derive);

}  // namespace fabric::gateway
