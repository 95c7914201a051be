#pragma once

#include <fabric/base/error.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/kube/config.hpp>

#include <filesystem>

namespace fabric::gateway {

/// What the operator put into files for this gateway. Read once at start; a rotation restarts the pod.
struct Credentials {
  crypto::PskSet psks;
  crypto::Ed25519KeyPair identity;
  kube::Config broker;
  std::string broker_namespace;
};

/// Reads psk/psk, identity/ed25519 and broker/{brokerURL,ca.crt,token,namespace} below `folder`. Errors name the file
/// and what the operator does to make it, never a content: not_found while a file is missing, invalid when it is not
/// usable.
Result<Credentials> read_credentials(const std::filesystem::path& folder);

}  // namespace fabric::gateway
