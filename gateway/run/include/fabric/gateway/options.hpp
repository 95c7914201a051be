#pragma once

#include <fabric/api/names.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/crypto/record.hpp>
#include <fabric/gateway/sa_plan.hpp>
#include <fabric/net/ip_address.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fabric::gateway {

/// What the DaemonSet tells the agent. Secrets come as files, and everything that changes while it runs as objects.
struct Options {
  std::string ns = "submariner-operator";
  std::string node;
  std::string cluster_id;
  std::uint16_t natt_port = api::names::kNattPort;
  bool force_udp_encaps = false;
  bool nat_traversal = true;
  bool preferred_server = false;
  bool health_check = true;
  std::chrono::seconds health_check_interval{1};
  std::uint32_t health_check_max_loss = 5;
  SaLimits limits;  ///< When keys are renewed.
  std::vector<crypto::Suite> cipher_suites{crypto::Suite::aes_gcm_256, crypto::Suite::chacha20_poly1305};
  std::map<std::string, net::IpAddress> elastic_ips;  ///< Public address by node.
  std::string secrets = "/run/secrets/fabric";        ///< Folder with psk/, identity/ and broker/.
  std::string listen_address = "::";
  std::uint16_t listen_port = api::names::kGatewayMetricsPort;
  std::string log_level = "info";
  std::string kubeconfig;  ///< Empty: in-cluster configuration.
  /// Says good-bye, removes everything from the kernel, acknowledges with this token, and idles.
  std::optional<std::string> uninstall;
};

/// Errc::invalid with the reason; Errc::cancelled with the help text for --help.
Result<Options> parse_options(int argc, const char* const* argv);

}  // namespace fabric::gateway
