#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/base/secret.hpp>
#include <fabric/crypto/entropy.hpp>
#include <fabric/kube/client.hpp>
#include <fabric/operator/agents.hpp>

#include <functional>
#include <string>
#include <vector>

namespace fabric::operators {

/// How to reach a broker's API server.
struct BrokerAccess {
  std::string url{};
  std::string ca_pem{};
  std::string ns{};
  Secret token{};

  BrokerAccess duplicate() const { return {url, ca_pem, ns, token.duplicate()}; }
};

/// A client of a broker. The transport is kept by the connection.
using BrokerConnector = std::function<Result<kube::Connection>(BrokerAccess)>;

/// What the roles work with. Outlives them; belongs to the io thread.
struct Environment {
  kube::Client& client;  ///< Of our own cluster.
  crypto::Entropy& entropy;
  async::Clock& clock;
  BrokerConnector connect_broker;
  std::string ns{};  ///< Our namespace, where agents and Secrets live.
  AgentDefaults agents{};
};

}  // namespace fabric::operators
