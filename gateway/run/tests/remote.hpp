#pragma once

#include <fabric/api/identity.hpp>
#include <fabric/api/names.hpp>
#include <fabric/api/submariner.hpp>
#include <fabric/broker/federation.hpp>
#include <fabric/controller/store.hpp>
#include <fabric/crypto/entropy.hpp>
#include <fabric/gateway/key_ring.hpp>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fabric::gateway::testing {

inline const TimePoint kNow(std::chrono::seconds(1'700'000'000));
inline constexpr std::string_view kBrokerNamespace = "submariner-k8s-broker";
inline constexpr std::string_view kLocalNamespace = "submariner-operator";

inline crypto::PskSet one_psk(std::uint8_t seed = 1) {
  crypto::PskSet psks;
  Secret psk(48);
  psk.writable()[0] = seed;
  EXPECT_TRUE(psks.add(*crypto::Psk::make(1, psk)));
  return psks;
}

/// A gateway of another cluster and what it shows to the world.
class Remote {
 public:
  explicit Remote(std::string cluster, std::uint64_t seed, std::string node = "n1")
      : id{std::move(cluster), std::move(node)},
        entropy(seed),
        psks(one_psk()),
        identity(*crypto::Ed25519KeyPair::draw(entropy)),
        ring(*KeyRing::open(id, entropy, psks, identity, kNow, {})) {
    EXPECT_TRUE(ring.draw(kNow, std::chrono::hours(24)));
  }

  api::Cluster cluster(std::string_view ns = kBrokerNamespace) const {
    api::Cluster out;
    out.metadata.name = id.cluster;
    out.metadata.ns = ns;
    const auto proof = broker::prove_identity(*psks.newest(), id.cluster, identity.public_key);
    out.metadata.annotations = {{std::string(api::names::kIdentityAnnotation), proof.identity},
                                {std::string(api::names::kIdentityMacAnnotation), proof.mac}};
    out.spec.cluster_id = id.cluster;
    return out;
  }

  api::Endpoint endpoint(std::string_view ns = kBrokerNamespace) {
    crypto::StateRecord state;
    state.private_addresses = {net::IpAddress::v4(192, 0, 2, 7)};
    state.prefixes = {*net::Cidr::parse("10.2.0.0/16")};
    state.leaving = leaving;
    std::vector<crypto::Generation> generations;
    for (const auto& mine : ring.mine())
      generations.push_back(mine.generation);
    const auto config = write_backend_config(ring.records(generations), *ring.sign_state(std::move(state)));
    api::Endpoint out;
    out.metadata.name = endpoint_name();
    out.metadata.ns = ns;
    out.spec.cluster_id = id.cluster;
    out.spec.hostname = id.gateway;
    out.spec.private_ip = "192.0.2.7";
    out.spec.subnets = {"10.2.0.0/16"};
    out.spec.backend_config = {config.begin(), config.end()};
    return out;
  }

  std::string endpoint_name() const {
    return api::endpoint_name(api::ClusterId(id.cluster), net::IpAddress::v4(192, 0, 2, 7));
  }

  crypto::GatewayId id;
  crypto::DeterministicEntropy entropy;
  crypto::PskSet psks;
  crypto::Ed25519KeyPair identity;
  KeyRing ring;
  bool leaving = false;
};

/// A store that holds these objects, as an informer would have filled it.
template <class T>
class Filled {
 public:
  explicit Filled(const std::vector<T>& objects = {}) : store(io_.get_executor()) { fill(objects); }

  void fill(const std::vector<T>& objects) {
    std::vector<json::Value> values;
    for (const auto& object : objects)
      values.push_back(api::to_object(object));
    store.replace(std::move(values));
  }

 private:
  boost::asio::io_context io_;

 public:
  controller::Store<T> store;
};

}  // namespace fabric::gateway::testing
