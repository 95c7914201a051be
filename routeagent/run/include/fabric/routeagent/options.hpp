#pragma once

#include <fabric/api/names.hpp>
#include <fabric/base/error.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace fabric::routeagent {

/// What the DaemonSet tells the agent. Everything that changes while it runs comes from objects instead.
struct Options {
  std::string ns = "submariner-operator";  ///< Of the objects that it reads and writes.
  std::string node;                        ///< Name of the Node that it runs on.
  std::string cluster_id;
  std::uint16_t natt_port = api::names::kNattPort;
  bool force_udp_encaps = false;
  std::string listen_address = "::";  ///< Of probes and metrics.
  std::uint16_t listen_port = api::names::kRouteAgentMetricsPort;
  std::string log_level = "info";
  std::string kubeconfig;  ///< Empty: in-cluster configuration.
  /// Removes everything from the kernel, says so with this token in fabric.tkestack.io/cleaned, and idles.
  std::optional<std::string> uninstall;
};

/// Errc::invalid with CLI11's words, or with the help text as context and code cancelled for --help.
Result<Options> parse_options(int argc, const char* const* argv);

}  // namespace fabric::routeagent
