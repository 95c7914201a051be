#pragma once

#include <fabric/api/names.hpp>
#include <fabric/base/error.hpp>
#include <fabric/operator/agents.hpp>

#include <cstdint>
#include <string>

namespace fabric::operators {

struct Options {
  std::string ns = "submariner-operator";  ///< Of the agents, their Secrets and the Lease. POD_NAMESPACE.
  std::string identity;                    ///< Of this process in the Lease. POD_NAME.
  AgentDefaults agents;                    ///< Their image: FABRIC_AGENT_IMAGE.
  std::string listen_address = "::";
  std::uint16_t metrics_port = api::names::kOperatorMetricsPort;
  std::uint16_t probe_port = api::names::kOperatorProbePort;
  std::string log_level = "info";
  std::string kubeconfig;  ///< Empty: in-cluster configuration.
};

/// Errc::invalid with CLI11's words, or with the help text as context and code cancelled for --help.
Result<Options> parse_options(int argc, const char* const* argv);

}  // namespace fabric::operators
