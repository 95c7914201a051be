#pragma once

#include <fabric/gateway/policy_plan.hpp>
#include <fabric/gateway/sa_plan.hpp>
#include <fabric/netstate/diff.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

/// A gateway with many peers, its kernel a map: what the planners are measured with.
namespace fabric::bench {

inline net::IpAddress remote_gateway(std::uint32_t peer) {
  return net::IpAddress::v4(172, 16, static_cast<std::uint8_t>(peer >> 8U), static_cast<std::uint8_t>(peer));
}

inline const auto kLocalGateway = net::IpAddress::v4(192, 0, 2, 1);

inline gateway::Path path_to(std::uint32_t peer) {
  return {.local = kLocalGateway, .remote = remote_gateway(peer), .encap = std::nullopt};
}

inline std::string cluster_name(std::uint32_t peer) {
  return fmt::format("cluster-{:04}", peer);
}

inline netstate::Reqid reqid_of(std::uint32_t peer) {
  return netstate::Reqid(0x46000001U + peer);
}

/// SAs of a gateway with `peers` peers, each a cluster with one gateway.
class SaWorld {
 public:
  explicit SaWorld(std::uint32_t peers) {
    using namespace std::chrono_literals;
    in_.self = {"self", "node-1"};
    in_.psks = {crypto::PskId{1, {}}};
    in_.now = TimePoint(1'000'000s);
    for (std::uint32_t i = 0; i < peers; ++i) {
      numbers_.emplace(cluster_name(i), i);
      auto& peer = in_.peers[{cluster_name(i), "node-1"}];
      peer.reqid = reqid_of(i);
      peer.path = path_to(i);
      peer.instance = crypto::InstanceId({1});
      peer.generations = {crypto::Generation(1)};
    }
    derive_ = [this](const gateway::PairId& pair) -> Result<gateway::PairSas> {
      static const auto kKey = std::make_shared<const Secret>(netstate::kKeyMaterialBytes);
      const auto low = static_cast<std::uint32_t>(numbers_.at(pair.peer.cluster) << 8U | pair.mine.value() << 4U |
                                                  pair.theirs.value());
      return gateway::PairSas{.inbound_spi = netstate::Spi(0x1000000U + low),
                              .outbound_spi = netstate::Spi(0x2000000U + low),
                              .inbound = kKey,
                              .outbound = kKey};
    };
  }

  gateway::SaPlan plan() const { return gateway::plan_sas(in_, memory_, derive_); }

  void step() { carry_out(plan()); }

  /// Plans and carries out until nothing changes.
  void settle() {
    for (int i = 0; i < 8; ++i)
      step();
  }

  void pass(Duration time) { in_.now += time; }

  /// Everybody draws: two generations on both sides, and all SAs of both.
  void start_rotation() {
    using namespace std::chrono_literals;
    pass(31s);
    in_.rotation_requested = in_.now;
    for (auto& [id, peer] : in_.peers)
      peer.generations.push_back(crypto::Generation(2));
    settle();
  }

  /// Nothing came from anybody for so long.
  void fall_silent(Duration idle) {
    for (auto& [key, seen] : in_.observed)
      seen.idle = idle;
    pass(idle);
  }

  /// A new process finds the SAs of the one before it.
  void restart() {
    memory_ = {};
    in_.mine.clear();
    in_.published.reset();
    for (auto& [id, peer] : in_.peers)
      peer.seen_mine.clear();
  }

  const gateway::SaInputs& inputs() const { return in_; }

  const gateway::SaMemory& memory() const { return memory_; }

  netstate::State observed() const {
    netstate::State out;
    for (const auto& [key, seen] : in_.observed)
      out.sas.emplace(key, seen.sa);
    return out;
  }

 private:
  void carry_out(const gateway::SaPlan& plan) {
    std::erase_if(in_.observed, [&](const auto& entry) { return !plan.desired.contains(entry.first); });
    for (const auto& [key, sa] : plan.desired) {
      auto& seen = in_.observed.try_emplace(key, gateway::ObservedSa{sa}).first->second;
      seen.sa.key = nullptr;
      seen.sa.counters.emplace().packets = 1;
    }
    memory_ = plan.memory;
    for (const auto& action : plan.actions)
      act(action);
  }

  void act(const gateway::Action& action) {
    if (std::holds_alternative<gateway::DrawGeneration>(action)) {
      in_.mine.push_back({.generation = crypto::Generation(++drawn_), .drawn = in_.now, .psks = in_.psks});
    } else if (const auto* publish = std::get_if<gateway::Publish>(&action)) {
      in_.published = publish->publication;
      const auto& generations = publish->publication.generations;
      for (auto& [id, peer] : in_.peers)
        peer.seen_mine = {generations.begin(), generations.end()};
    } else if (const auto* drop = std::get_if<gateway::DropGeneration>(&action)) {
      std::erase_if(in_.mine, [&](const auto& mine) { return mine.generation == drop->generation; });
    }
  }

  std::map<std::string, std::uint32_t> numbers_;
  gateway::SaInputs in_;
  gateway::SaMemory memory_;
  gateway::DerivePair derive_;
  std::uint64_t drawn_ = 0;
};

/// `clusters` remote clusters with one gateway and `prefixes` prefixes each.
inline gateway::PolicyInputs policy_inputs(std::uint32_t clusters, std::uint32_t prefixes) {
  gateway::PolicyInputs in;
  in.local_cluster = "self";
  in.local_prefixes = {net::Cidr::parse("192.168.0.0/17").value(), net::Cidr::parse("192.168.128.0/17").value()};
  for (std::uint32_t i = 0; i < clusters; ++i) {
    gateway::RemoteGateway remote;
    remote.name = "node-1";
    remote.path = path_to(i);
    remote.health = gateway::Health::up;
    remote.outbound = true;
    for (std::uint32_t j = 0; j < prefixes; ++j) {
      const std::uint32_t number = i * prefixes + j;
      const auto address =
          net::IpAddress::v4(10, static_cast<std::uint8_t>(number >> 8U), static_cast<std::uint8_t>(number), 0);
      remote.prefixes.push_back(net::Cidr::of(address, 24).value());
    }
    gateway::RemoteCluster& cluster = in.remotes[cluster_name(i)];
    cluster.reqid = reqid_of(i);
    cluster.gateways.push_back(std::move(remote));
  }
  return in;
}

}  // namespace fabric::bench
