#include <fabric/program/program.hpp>
#include <fabric/routeagent/options.hpp>

#include <CLI/CLI.hpp>

namespace fabric::routeagent {

Result<Options> parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Keeps the way from this node to the other clusters in its kernel.", "fabric-routeagent");
  app.add_option("--namespace", options.ns, "Namespace of Endpoints, Clusters and Gateways")->capture_default_str();
  app.add_option("--node-name", options.node, "Name of this Node")->envname("NODE_NAME")->required();
  app.add_option("--cluster-id", options.cluster_id, "ID of this cluster")->required();
  app.add_option("--natt-port", options.natt_port, "UDP port of encapsulated ESP")->capture_default_str();
  app.add_flag("--force-udp-encaps", options.force_udp_encaps, "Leave room for UDP encapsulation");
  app.add_option("--listen-address", options.listen_address, "Address of probes and metrics")->capture_default_str();
  app.add_option("--listen-port", options.listen_port, "Port of probes and metrics")->capture_default_str();
  app.add_option("--log-level", options.log_level, "debug, info, warn or error")->capture_default_str();
  app.add_option("--kubeconfig", options.kubeconfig, "Instead of the in-cluster configuration");
  app.add_option("--uninstall", options.uninstall, "Remove everything, acknowledge with this token, and idle");
  FABRIC_CHECK(program::parse(app, argc, argv));
  return options;
}

}  // namespace fabric::routeagent
