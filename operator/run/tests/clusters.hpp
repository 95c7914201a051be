#pragma once

#include <fabric/api/names.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/broker/manifests.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>
#include <fabric/operator/broker_role.hpp>
#include <fabric/operator/join_role.hpp>

#include <gtest/gtest.h>

/// Operators of several clusters, each with an API server in memory.
namespace fabric::operators::testing {

namespace names = api::names;

inline constexpr std::string_view kHubUrl = "https://192.0.2.1:6443";

inline api::Fabric fabric(std::string name) {
  api::Fabric out;
  out.metadata.ns = "default";
  out.metadata.name = std::move(name);
  out.metadata.generation = 1;
  return out;
}

inline const Step& last(const RoleOutcome& outcome) {
  return outcome.steps.back();
}

inline const Step* find(const RoleOutcome& outcome, std::string_view type) {
  for (const Step& step : outcome.steps) {
    if (step.type == type) return &step;
  }
  return nullptr;
}

/// A broker cluster and its operator.
class Hub {
 public:
  explicit Hub(async::TestLoop& loop)
      : loop_(loop), server(loop.executor(), loop.clock()), client_(server.client(metrics_)) {
    fabric_.spec.broker_config = api::BrokerConfig{};
    fabric_.spec.broker_config->public_api_server_url = std::string(kHubUrl);
  }

  RoleOutcome reconcile() {
    RoleOutcome outcome = *loop_.run(wrapped());
    fill_tokens();
    return outcome;
  }

  /// Until tokens are there and requests are answered.
  void settle() {
    for (int i = 0; i < 4; ++i)
      static_cast<void>(reconcile());
  }

  std::string psk() {
    return server.find(kube::resource_of<api::SecretObject>(), key(names::kPskSecret))->string_at({"data", "psk"});
  }

  crypto::PskBundle bundle() {
    return *broker::read_psk_secret(*server.find<api::SecretObject>(key(names::kPskSecret)));
  }

  api::Fabric& spec() { return fabric_; }

  api::ConfigMap info() { return *server.find<api::ConfigMap>(key(names::kBrokerInfo)); }

  static kube::ObjectKey key(std::string_view name) {
    return {std::string(names::kBrokerNamespace), std::string(name)};
  }

  RoleOutcome uninstall() {
    return *loop_.run([](Hub& hub) -> Task<Result<RoleOutcome>> {
      co_return co_await uninstall_broker(hub.env, hub.fabric_);
    }(*this));
  }

 private:
  Task<Result<RoleOutcome>> wrapped() { co_return co_await reconcile_broker(env, fabric_, status); }

  /// What kube-controller-manager does: writes a token into each token Secret.
  void fill_tokens() {
    const kube::ResourceId secrets = kube::resource_of<api::SecretObject>();
    for (const kube::ObjectKey& each : server.keys(secrets)) {
      json::Value object = *server.find(secrets, each);
      if (object.string_at({"type"}) != names::kTokenSecretType || object.at({"data", "token"}) != nullptr) continue;
      object["data"] =
          json::Object{{"token", json::encode_base64("token-of-" + each.name)},
                       {"ca.crt", json::encode_base64(std::string_view("-----BEGIN CERTIFICATE-----\nx\n"))},
                       {"namespace", json::encode_base64(each.ns)}};
      server.put(secrets, std::move(object));
    }
  }

  async::TestLoop& loop_;
  telemetry::Registry metrics_;
  api::Fabric fabric_ = fabric("broker");

 public:
  kube::fake::FakeApiServer server;
  api::FabricStatus status;

 private:
  std::unique_ptr<kube::Client> client_;
  crypto::DeterministicEntropy entropy_{1};

 public:
  Environment env{.client = *client_, .entropy = entropy_, .clock = loop_.clock(), .connect_broker = {}};
};

/// A cluster that joins, and its operator. Reaches the hub under the URL of broker-info only.
class Member {
 public:
  Member(async::TestLoop& loop, Hub& hub, std::string id, std::string pods, std::uint64_t seed)
      : loop_(loop),
        hub_(hub),
        id_(std::move(id)),
        server(loop.executor(), loop.clock()),
        client_(server.client(metrics_)),
        entropy_(seed) {
    fabric_.spec.join_config = api::JoinConfig{};
    fabric_.spec.join_config->cluster_id = id_;
    fabric_.spec.join_config->service_cidr = "10." + std::to_string(100 + seed) + ".0.0/16";
    api::Node node;
    node.metadata.name = id_ + "-n1";
    node.spec.pod_cidrs = {std::move(pods)};
    node.status.conditions = {{.type = "Ready",
                               .status = api::ConditionStatus::yes,
                               .observed_generation = {},
                               .last_transition_time = {},
                               .reason = "",
                               .message = ""}};
    server.put(node);
  }

  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  ~Member() {
    watches_.stop();
    loop_.settle();
  }

  /// From now on the role hears of changes at the broker.
  void watch() {
    watches_.spawn("watch", role->watch_broker([this] { ++woken; }));
    loop_.advance(std::chrono::seconds(5));
  }

  crypto::PskBundle bundle() {
    return *broker::read_psk_secret(*server.find<api::SecretObject>(key(names::kPskSecret)));
  }

  const std::string& id() const { return id_; }

  void copy_info() {
    api::ConfigMap info = hub_.info();
    info.metadata.resource_version.clear();
    info.metadata.uid.clear();
    server.put(info);
  }

  void set_info(std::string text) {
    api::ConfigMap info;
    info.metadata.ns = names::kBrokerNamespace;
    info.metadata.name = names::kBrokerInfo;
    info.data.emplace(names::kBrokerInfoKey, std::move(text));
    server.put(info);
  }

  RoleOutcome reconcile() { return *loop_.run(wrapped()); }

  /// Both operators, until the broker has answered.
  RoleOutcome join() {
    for (int i = 0; i < 4; ++i) {
      static_cast<void>(reconcile());
      static_cast<void>(hub_.reconcile());
    }
    return reconcile();
  }

  Observed observe() {
    Observed out;
    collect(out.nodes);
    collect(out.daemonsets);
    collect(out.gateways);
    collect(out.route_agents);
    collect(out.clusters);
    return out;
  }

  RoleOutcome uninstall() { return *loop_.run(wrapped_uninstall()); }

  api::Fabric& spec() { return fabric_; }

  static kube::ObjectKey key(std::string_view name) {
    return {std::string(names::kOperatorNamespace), std::string(name)};
  }

 private:
  Task<Result<RoleOutcome>> wrapped() { co_return co_await role->reconcile(fabric_, observe(), status); }

  Task<Result<RoleOutcome>> wrapped_uninstall() { co_return co_await role->uninstall(fabric_, observe()); }

  template <class T>
  void collect(std::vector<T>& out) {
    for (const kube::ObjectKey& each : server.keys(kube::resource_of<T>()))
      out.push_back(*server.find<T>(each));
  }

  Result<kube::Connection> connect(const BrokerAccess& access) {
    if (access.url != kHubUrl) return fail(Errc::unavailable, "connect {}: connection refused", access.url);
    tokens.emplace_back(access.token.reveal_text());
    return kube::Connection{nullptr, hub_.server.client(metrics_)};
  }

  async::TestLoop& loop_;
  Hub& hub_;
  std::string id_;
  telemetry::Registry metrics_;
  api::Fabric fabric_ = fabric("join");

 public:
  kube::fake::FakeApiServer server;
  api::FabricStatus status;
  std::vector<std::string> tokens;  ///< With which the hub was approached.
  int woken = 0;                    ///< By the watch.

 private:
  std::unique_ptr<kube::Client> client_;
  crypto::DeterministicEntropy entropy_;

 public:
  Environment env{.client = *client_,
                  .entropy = entropy_,
                  .clock = loop_.clock(),
                  .connect_broker = [this](BrokerAccess access) { return connect(access); },
                  .ns = std::string(names::kOperatorNamespace),
                  .agents = {.image = "fabric/fabric:0.1.0"}};
  std::unique_ptr<JoinRole> role = std::make_unique<JoinRole>(env);

  /// A new process: what was published is not remembered. Not while watching.
  void restart() { role = std::make_unique<JoinRole>(env); }

 private:
  async::TaskGroup watches_{loop_.executor()};
};

class Roles : public ::testing::Test {
 protected:
  async::TestLoop loop;
  Hub hub{loop};
};

}  // namespace fabric::operators::testing
