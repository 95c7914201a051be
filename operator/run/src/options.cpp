#include <fabric/operator/options.hpp>
#include <fabric/program/program.hpp>

#include <CLI/CLI.hpp>

namespace fabric::operators {

Result<Options> parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app("Makes a cluster what its Fabric objects say: broker, member, or both.", "fabric-operator");
  app.add_option("--namespace", options.ns, "Namespace of the agents and of the Lease")
      ->envname("POD_NAMESPACE")
      ->capture_default_str();
  app.add_option("--identity", options.identity, "Name of this process in the Lease")->envname("POD_NAME")->required();
  app.add_option("--agent-image", options.agents.image, "Image of the agents where a Fabric names none")
      ->envname("FABRIC_AGENT_IMAGE")
      ->required();
  app.add_option("--agent-pull-policy", options.agents.pull_policy, "imagePullPolicy of the agents")
      ->envname("FABRIC_AGENT_PULL_POLICY")
      ->check(CLI::IsMember({"Always", "IfNotPresent", "Never"}))
      ->capture_default_str();
  app.add_option("--gateway-metrics-port", options.agents.gateway_metrics_port,
                 "Port of the gateways' probes and metrics, on their nodes")
      ->capture_default_str();
  app.add_option("--routeagent-metrics-port", options.agents.route_agent_metrics_port,
                 "Port of the route agents' probes and metrics, on every node")
      ->capture_default_str();
  app.add_option("--gateway-arg", options.agents.gateway_extra_args,
                 "Flag for the gateway agents, as --gateway-arg=--flag=value; may be repeated. For test beds and "
                 "debugging")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--listen-address", options.listen_address, "Address of probes and metrics")->capture_default_str();
  app.add_option("--metrics-port", options.metrics_port, "Port of /metrics")->capture_default_str();
  app.add_option("--probe-port", options.probe_port, "Port of /healthz and /readyz")->capture_default_str();
  app.add_option("--log-level", options.log_level, "debug, info, warn or error")->capture_default_str();
  app.add_option("--kubeconfig", options.kubeconfig, "Instead of the in-cluster configuration");
  FABRIC_CHECK(program::parse(app, argc, argv));
  if (options.agents.gateway_metrics_port == options.agents.route_agent_metrics_port) {
    return fail(Errc::invalid,
                "--gateway-metrics-port and --routeagent-metrics-port are both {}: a gateway node runs both agents, "
                "give one of them another port",
                options.agents.gateway_metrics_port);
  }
  return options;
}

}  // namespace fabric::operators
