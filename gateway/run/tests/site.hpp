#pragma once

#include <fabric/async/testing.hpp>
#include <fabric/gateway/agent.hpp>
#include <fabric/kernel/fake_kernel.hpp>
#include <fabric/kube/fake/fake_api_server.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "remote.hpp"
#include "tunnel_fake.hpp"

namespace fabric::gateway::testing {

/// A cluster with one gateway node: its API server, its kernel, and the agent's process.
class Site {
 public:
  Site(async::TestLoop& loop, kube::fake::FakeApiServer& broker, std::string id, std::uint8_t number)
      : loop_(loop),
        broker_(broker),
        id_(std::move(id)),
        address_(net::IpAddress::v4(192, 0, 2, number)),
        server(loop.executor(), loop.clock()),
        entropy_(number) {
    Secret seed(32);
    seed.writable()[0] = number;
    seed_ = std::make_unique<Secret>(std::move(seed));
    kernel.facts.interfaces.push_back(
        {.name = "cni0", .addresses = {{.address = net::IpAddress::v4(10, number, 0, 1), .prefix_length = 24}}});
    api::Node node;
    node.metadata.name = "n1";
    node.metadata.labels.emplace(api::names::kGatewayLabel, api::names::kGatewayLabelValue);
    node.spec.pod_cidrs = {fmt::format("10.{}.0.0/24", number)};
    node.status.addresses = {{.type = "InternalIP", .address = address_.to_string()}};
    server.put(node);
    api::Cluster cluster;
    cluster.metadata.name = id_;
    cluster.metadata.ns = kLocalNamespace;
    cluster.spec.cluster_id = id_;
    cluster.spec.cluster_cidr = {fmt::format("10.{}.0.0/16", number)};
    cluster.spec.service_cidr = {fmt::format("10.{}.0.0/16", 100 + number)};
    server.put(cluster);
    const auto identity = this->identity();
    const auto proof = broker::prove_identity(*one_psk().newest(), id_, identity.public_key);
    cluster.metadata.ns = kBrokerNamespace;
    cluster.metadata.annotations = {{std::string(api::names::kIdentityAnnotation), proof.identity},
                                    {std::string(api::names::kIdentityMacAnnotation), proof.mac}};
    broker_.put(cluster);
    server.intercept([this](const http::Request& request) {
      if (request.url.target.find("/gateways/") != std::string::npos)
        gateway_ = *api::from_object<api::Gateway>(*json::parse(request.body));
      return std::nullopt;
    });
  }

  /// A new process on the node; what is in the kernel stays.
  void start(std::optional<std::string> uninstall = std::nullopt, bool with_broker = true) {
    stop();
    process_ = std::make_unique<Process>(*this, std::move(uninstall), with_broker);
    ASSERT_TRUE(process_->agent.start(process_->group));
  }

  void stop() {
    if (!process_) return;
    process_->group.stop();
    loop_.settle();
    process_.reset();
    loop_.settle();
  }

  /// As last written. The fake keeps status apart, unlike a server with Submariner's CRDs.
  const api::Gateway& gateway() const { return gateway_; }

  const net::IpAddress& address() const { return address_; }

  const std::string& id() const { return id_; }

  std::size_t inbound() const { return count(address_); }

  std::size_t all() const { return kernel.ours.sas.size(); }

  telemetry::Health& health() { return process_->health; }

  telemetry::Registry& metrics() { return process_->metrics; }

  /// An error once the process would have ended.
  Result<void> outcome() const { return process_->group.outcome(); }

 private:
  struct Process {
    Process(Site& site, std::optional<std::string> uninstall, bool with_broker)
        : local(site.server.client(metrics)),
          broker(site.broker_.client(metrics)),
          port(site.kernel),
          group(site.loop_.executor()),
          tunnel(site.network == nullptr ? nullptr : std::make_unique<FakeTunnelPort>(*site.network)),
          agent({.ns = std::string(kLocalNamespace),
                 .node = "n1",
                 .cluster_id = site.id_,
                 .health_check = false,
                 .limits = {.rotate_after = site.rekey_interval},
                 .secrets = site.secrets.string(),
                 .uninstall = std::move(uninstall)},
                {.psks = site.psks(), .identity = site.identity(), .broker_namespace = std::string(kBrokerNamespace)},
                {*local,
                 with_broker ? broker.get() : nullptr,
                 port,
                 site.entropy_,
                 {site.loop_.executor(), site.loop_.clock(), [] { return 0.5; }, metrics},
                 health,
                 tunnel.get()}) {}

    telemetry::Registry metrics;
    telemetry::Health health;
    std::unique_ptr<kube::Client> local;
    std::unique_ptr<kube::Client> broker;
    kernel::FakeKernel port;
    async::TaskGroup group;
    std::unique_ptr<FakeTunnelPort> tunnel;
    Agent agent;
  };

  crypto::PskSet psks() const {
    auto mounted = PskFolder(secrets / kPskSubfolder).read();
    return mounted ? *std::move(mounted) : one_psk();
  }

  crypto::Ed25519KeyPair identity() const { return *crypto::Ed25519KeyPair::from_seed(Secret(seed_->reveal())); }

  std::size_t count(const net::IpAddress& to) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(kernel.ours.sas, [&](const auto& entry) { return entry.first.daddr == to; }));
  }

  async::TestLoop& loop_;
  kube::fake::FakeApiServer& broker_;
  std::string id_;
  net::IpAddress address_;
  api::Gateway gateway_;

 public:
  kube::fake::FakeApiServer server;
  kernel::FakeKernelState kernel;
  std::chrono::seconds rekey_interval{3600};
  std::filesystem::path secrets = "/nowhere";  ///< With psk/ in it, as mounted into the pod.
  FakeNetwork* network = nullptr;              ///< Of processes that are started from then on; null: no datagrams.

 private:
  crypto::DeterministicEntropy entropy_;
  std::unique_ptr<Secret> seed_;
  std::unique_ptr<Process> process_;
};

}  // namespace fabric::gateway::testing
