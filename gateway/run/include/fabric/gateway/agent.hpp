#pragma once

#include <fabric/api/core.hpp>
#include <fabric/async/event.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/controller/informer.hpp>
#include <fabric/controller/lease_elector.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/crypto/entropy.hpp>
#include <fabric/gateway/announcer.hpp>
#include <fabric/gateway/credentials.hpp>
#include <fabric/gateway/membership.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/gateway/pinger.hpp>
#include <fabric/gateway/policy_plan.hpp>
#include <fabric/gateway/retry.hpp>
#include <fabric/gateway/status.hpp>
#include <fabric/gateway/traffic.hpp>
#include <fabric/gateway/tunnel_records.hpp>
#include <fabric/kernel/kernel.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/telemetry/health.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace fabric::gateway {

/// What the agent runs on; everything outlives it.
struct Environment {
  kube::Client& local;
  kube::Client* broker = nullptr;  ///< Null without credentials: only clean-up is possible then.
  kernel::Kernel& kernel;
  crypto::Entropy& entropy;
  controller::Runtime runtime;
  telemetry::Health& health;
  TunnelPort* tunnel = nullptr;  ///< Null: announcements go by the broker only.
  /// Packets that IPsec of the kernel dropped, by name; none in tests.
  std::function<Result<std::map<std::string, std::uint64_t>>()> xfrm_stat{};
};

/// The gateway agent of one node: stores and kernel → SA, policy and status plans → kernel and records. Belongs to the
/// io thread. Nothing is written to the kernel before the local stores have synced; an unreachable broker changes
/// nothing but a message, and no pass waits for an API server; stopping removes nothing.
class Agent {
 public:
  Agent(Options options, Credentials credentials, Environment environment);

  /// Opens what may fail, and starts the informers and loops.
  Result<void> start(async::TaskGroup& group);

  /// What keeps the UDP port of encapsulated ESP from being used; empty when it is.
  void encapsulation(std::string failure);

  /// The node's links or addresses changed, an SA reached a limit, or somebody removed SAs or policies.
  void kernel_changed() { wake_.notify(); }

 private:
  async::Task<Result<void>> run();
  async::Task<Result<void>> wait_synced();
  Result<void> open_ring();
  /// One pass; the error is of the kernel or of what is known of this node. What concerns the API servers has a Retry.
  async::Task<Result<void>> reconcile();
  async::Task<Result<void>> plan_with_kernel(TimePoint now);
  async::Task<Result<void>> plan_and_apply(netstate::State observed, Situation situation, TimePoint now);
  SaPlan plan_sas_now(const std::map<netstate::SaKey, ObservedSa>& observed, TimePoint now);
  PolicyPlan plan_policies_now(const netstate::State& observed, const Situation& situation, const SaPlan& sas) const;
  async::Task<Result<void>> apply(const netstate::State& observed, netstate::State desired, SaMemory& memory);
  void carry_out(const SaPlan& sas);
  void tell_peers();
  Result<Situation> situation(const netstate::HostFacts& facts) const;
  std::map<crypto::GatewayId, PeerKeys> peer_keys(const LocalEnd& local) const;
  void read_members(TimePoint now);
  void drop_generations(const SaPlan& sas);
  std::optional<Publication> to_be_published(const SaPlan& sas, const Situation& situation) const;
  std::shared_ptr<const api::Endpoint> at_broker() const;
  Result<void> cannot_read(const Error& error);
  bool sends() const;
  /// Peers removed their SAs when this gateway left. The same keys must not be installed again: a node that becomes a
  /// gateway once more needs a new process.
  Result<void> still_one_term() const;
  void note(Retry& retry, const Result<void>& outcome);
  Duration pause(TimePoint now) const;

  // agent_writes.cpp
  async::Task<Result<void>> keep_broker_told();
  async::Task<Result<void>> keep_objects_written();
  async::Task<void> publish(Publication publication);
  async::Task<void> copy_down();

  // agent_keys.cpp
  void prepare_keys();
  void read_psks();
  void read_command(TimePoint now);
  Result<void> draw(const DrawGeneration& action, TimePoint now);
  api::GatewayKeys keys_status() const;
  void set_key_metrics(TimePoint now);

  // agent_report.cpp
  void set_ping_targets();
  async::Task<void> report();
  async::Task<Result<void>> write_gateway(api::Gateway gateway);
  void note_findings(const std::vector<Finding>& findings);

  // agent_uninstall.cpp
  async::Task<Result<void>> uninstall();
  async::Task<bool> own_objects_known();
  async::Task<Result<void>> say_good_bye();
  async::Task<Result<void>> clean_kernel();

  Options options_;
  Credentials credentials_;
  Environment env_;
  async::Notifier wake_;
  async::Notifier for_broker_;   ///< A pass has been; of keep_broker_told().
  async::Notifier for_objects_;  ///< A pass has been; of keep_objects_written().
  controller::Informer<api::Node> own_node_;
  controller::Informer<api::Gateway> own_gateway_;
  controller::Informer<api::Endpoint> endpoints_;
  controller::Informer<api::Cluster> clusters_;
  controller::Informer<api::Endpoint> broker_endpoints_;
  controller::Informer<api::Cluster> broker_clusters_;
  Membership membership_;
  std::unique_ptr<controller::LeaseElector> elector_;
  std::unique_ptr<Pinger> pinger_;  ///< Null when health checks are off.
  std::unique_ptr<KeyRing> ring_;
  std::unique_ptr<Announcer> announcer_;
  std::unique_ptr<TunnelRecords> tunnel_;  ///< Null without a port.
  SaTracker tracker_;
  SaMemory memory_;
  SaPlan sas_;  ///< Of the last run, for status.
  std::map<crypto::GatewayId, PeerKeys> peers_;
  std::map<crypto::GatewayId, net::IpAddress> health_targets_;
  Situation situation_;
  std::optional<Publication> unpublished_;                 ///< What the last pass wants the broker to have.
  std::map<std::string, std::vector<net::Cidr>> carried_;  ///< Prefixes of remote clusters, by the last pass.
  std::optional<TimePoint> next_wake_;
  std::set<Finding> findings_;
  std::optional<api::Gateway> written_;
  std::optional<TimePoint> latency_written_;
  std::set<telemetry::Labels> shown_;  ///< Connections that have metrics.
  std::string cannot_carry_;           ///< Why this gateway carries nothing; empty when it may.
  PskFolder psk_folder_;
  std::string psk_version_;         ///< Of the folder as it was read last.
  std::set<std::string> commands_;  ///< Values of the rekey annotation that are served.
  bool commands_known_ = false;
  bool left_ = false;  ///< The node lost the label of gateways in the life of this process.
  std::optional<TimePoint> rotation_requested_;
  std::uint64_t rekeys_ = 0;
  TrafficMeter traffic_;
  std::string encap_failure_;
  Retry reading_psks_{"reading the PSKs"};
  Retry publishing_{"publishing at the broker"};
  Retry local_endpoint_{"writing the local Endpoint"};
  Retry copying_{"copying remote objects"};
  Retry reporting_{"writing the Gateway object"};
  async::SteadyTime published_at_{};
  unsigned failures_ = 0;
};

}  // namespace fabric::gateway
