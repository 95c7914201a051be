#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::broker {

/// How a joining cluster authenticates to the broker's API server.
struct ClientToken {
  std::string secret_name{};
  std::string ns{};      ///< The broker namespace: all records of the federation are in it.
  std::string ca_pem{};  ///< Certificate authority of the API server.
  Secret token{};        ///< A service account's bearer token.
};

/// What a cluster needs to join: the content of ConfigMap submariner-broker-info. Holds secrets, so it is move-only.
struct BrokerInfo {
  std::string url{};  ///< "https://host:port"; a reader adds a missing scheme.
  ClientToken client{};
  crypto::PskBundle psk{};                ///< Each 48 bytes when we drew it, at least 32 in any case.
  std::vector<std::string> components{};  ///< connectivity, service-discovery, globalnet.
  std::optional<bool> service_discovery{};
  std::vector<std::string> custom_domains{};
  std::string globalnet_cidr_range{};
  std::uint64_t default_globalnet_cluster_size = 0;  ///< 0: not said.
};

/// The `data` of the PSK Secret and of its copy in broker-info, values in base64.
json::Object psk_data(const crypto::PskBundle& psk);

struct ReadBrokerInfo {
  BrokerInfo info;
  std::vector<std::string> warnings;  ///< Accepted, but worth telling: a PSK of an unusual length.
};

/// The value of the key brokerInfo: base64 (URL alphabet, padded) of one JSON object with the keys that knitnet writes.
/// ipsecPSK.data has `number` and `previous` beside `psk`, which older readers skip; number 1 alone is not written.
std::string write_broker_info(const BrokerInfo& info);

/// Reads what we, knitnet or subctl wrote: either base64 alphabet, padding or none, white space anywhere, keys in any
/// letter case, unknown keys ignored, brokerURL with or without scheme. Errors are Errc::invalid, say where (base64
/// character, JSON line and column, or key), what is wrong and what to do, and never quote a secret.
Result<ReadBrokerInfo> read_broker_info(std::string_view text);

/// A random PSK has as many bytes as Submariner's.
inline constexpr std::size_t kPskSize = 48;

}  // namespace fabric::broker
