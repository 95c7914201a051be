#pragma once

#include <fabric/api/apps.hpp>
#include <fabric/api/fabric_rules.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/broker/broker_info.hpp>
#include <fabric/broker/federation.hpp>
#include <fabric/broker/join.hpp>
#include <fabric/operator/broker_role.hpp>
#include <fabric/operator/discovery.hpp>
#include <fabric/operator/environment.hpp>
#include <fabric/operator/gateway_choice.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fabric::operators {

/// What the stores hold of our own cluster when a reconcile begins.
struct Observed {
  std::vector<api::Node> nodes{};
  std::vector<api::DaemonSet> daemonsets{};     ///< In our namespace.
  std::vector<api::Gateway> gateways{};         ///< In our namespace.
  std::vector<api::RouteAgent> route_agents{};  ///< In our namespace.
  std::vector<api::Cluster> clusters{};         ///< In our namespace: ours and the copies of the others'.
};

NodeFacts facts_of(const api::Node& node);

/// joinConfig: from broker-info to running agents. Remembers only what saves requests (connections to the broker, what
/// discovery read, the broker's answer); everything that matters is in objects. Belongs to the io thread.
class JoinRole {
 public:
  explicit JoinRole(Environment& env) : env_(env) {}

  Task<RoleOutcome> reconcile(api::Fabric fabric, Observed observed, api::FabricStatus& status);
  /// Route agents clean up, then gateways, both acknowledged by every node; then the broker's records, our objects and
  /// the labels that we set go.
  Task<RoleOutcome> uninstall(api::Fabric fabric, Observed observed);

  /// Watches this cluster's answer at the broker with the member's token, and calls `wake` when it changes: new PSKs
  /// come in it. Until cancelled.
  Task<Result<void>> watch_broker(std::function<void()> wake);

 private:
  struct Work;  ///< One reconcile.

  struct Member {
    crypto::PskBundle psk;
    crypto::Ed25519KeyPair identity;
    bool stored = false;                   ///< Our Secret holds `psk`.
    std::optional<BrokerAccess> access{};  ///< To the broker of broker-info, as this cluster; the token may be empty.
  };

  /// Whose answer the watch is for.
  struct Following {
    std::shared_ptr<kube::Connection> connection;
    kube::ObjectKey answer;
    bool operator==(const Following&) const = default;
  };

  Task<Result<broker::BrokerInfo>> read_info(const api::JoinSettings& settings, std::vector<std::string>& warnings);
  Task<Result<std::optional<BrokerAccess>>> read_access(const std::string& id, const broker::BrokerInfo& info);
  Task<Result<Member>> read_member(const std::string& id, const broker::BrokerInfo& info);
  Task<Result<void>> store_psk(Member& member);
  Task<Result<std::optional<crypto::X25519KeyPair>>> read_join_key();
  Task<Result<BrokerAccess>> member_access(const api::JoinSettings& settings, const broker::BrokerInfo& info,
                                           Member& member);
  Task<Result<BrokerAccess>> ask_to_join(const std::string& id, const broker::BrokerInfo& info, Member& member);
  Task<Result<void>> store_access(std::string id, const BrokerAccess& access);
  Task<Result<void>> forget_access(std::string id, const BrokerAccess& access);
  Task<Result<void>> follow_broker(const std::string& id, const BrokerAccess& access, Member& member);
  Task<Result<void>> watch_answer(Following following, std::function<void()> wake);
  Task<Result<void>> publish_cluster(const api::Cluster& cluster, BrokerAccess access);
  Task<Result<DiscoveryFacts>> gather(const api::Fabric& fabric, const Observed& observed);
  Task<Result<void>> read_sources(DiscoveryFacts& facts);
  Task<Result<void>> label_gateways(const api::Fabric& fabric, const GatewayChoice& choice);
  Task<Result<void>> retire_gateway(const std::string& node, const std::string& id, const BrokerAccess& access);
  Result<std::shared_ptr<kube::Connection>> broker_connection(const BrokerAccess& access);
  Result<kube::Client*> broker_client(const BrokerAccess& access);
  Task<Result<void>> leave_broker(const api::JoinSettings& settings);
  Task<Result<void>> delete_local(const api::Fabric& fabric, const Observed& observed, const AgentPlan& plan,
                                  bool left);
  AgentPlan agent_plan(const api::Fabric& fabric, const api::JoinSettings& settings) const;

  Environment& env_;
  std::map<std::string, std::shared_ptr<kube::Connection>> connections_;  ///< By fingerprint of the access.
  std::optional<Following> following_;                                    ///< Once joined.
  std::optional<broker::ConfigData> answer_;  ///< Of the broker, as last seen; absent: to be read.
  std::optional<DiscoveryFacts> sources_;     ///< What does not come from the stores.
  async::SteadyTime sources_read_{};
  std::optional<api::Cluster> published_;  ///< At the broker, by this process.
};

}  // namespace fabric::operators
