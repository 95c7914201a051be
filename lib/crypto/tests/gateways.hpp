#pragma once

#include <fabric/crypto/pair.hpp>

#include "vectors.hpp"

namespace fabric::crypto::testing {

inline PskSet both_psks() {
  PskSet set;
  for (const std::uint32_t number : {1U, 2U}) {
    EXPECT_TRUE(set.add(*Psk::make(number, secret_of("psk" + std::to_string(number)))));
  }
  return set;
}

/// The gateway "low" (a/node-1) or "high" (b/node-1) of the vectors.
struct Gateway {
  explicit Gateway(const std::string& name)
      : id{name == "low" ? "a" : "b", "node-1"},
        ephemeral(*X25519KeyPair::from_private(secret_of(name + ".private"))),
        identity(*Ed25519KeyPair::from_seed(secret_of(name + ".seed"))) {
    key.cluster_set = "fabric";
    key.owner = id;
    key.instance = InstanceId(array_of<16>(name + ".instance"));
    key.generation = Generation(name == "low" ? 0x18F0'0000'0001 : 0x18F0'0000'0006);
    key.public_key = ephemeral.public_key;
    key.nonce = array_of<32>(name + ".nonce");
    key.suites = {1, 2};
    key.not_after = TimePoint(Duration(2'000'000'000'000));
    state.cluster_set = "fabric";
    state.owner = id;
    state.instance = key.instance;
    state.counter = 7;
    state.private_addresses = {*net::IpAddress::parse("192.0.2.1"), *net::IpAddress::parse("2001:db8::1")};
    state.public_addresses = {*net::IpAddress::parse("198.51.100.7")};
    state.nat = true;
    state.natt_port = 4500;
    state.prefixes = {*net::Cidr::parse("10.1.0.0/16"), *net::Cidr::parse("fd00:1::/48")};
    state.health_check = {*net::IpAddress::parse("10.1.0.1")};
    if (name == "low") {
      state.seen = {{{"b", "node-1"}, InstanceId(array_of<16>("high.instance")), Generation(0x18F0'0000'0006)}};
    }
  }

  Expected expected() const {
    return {.cluster_set = "fabric", .owner = &id, .identity = &identity.public_key, .now = key.not_after};
  }

  GatewayId id;
  X25519KeyPair ephemeral;
  Ed25519KeyPair identity;
  KeyRecord key;
  StateRecord state;
};

}  // namespace fabric::crypto::testing
