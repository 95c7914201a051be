#include <fabric/gateway/options.hpp>
#include <fabric/program/program.hpp>

#include <CLI/CLI.hpp>

#include <vector>

namespace fabric::gateway {

namespace {

Result<std::map<std::string, net::IpAddress>> elastic_ips(const std::vector<std::string>& pairs) {
  std::map<std::string, net::IpAddress> result;
  for (const std::string& pair : pairs) {
    const auto equals = pair.find('=');
    if (equals == std::string::npos) return fail(Errc::invalid, "--elastic-ip {}: expected NODE=ADDRESS", pair);
    FABRIC_TRY(const auto address, net::IpAddress::parse(pair.substr(equals + 1)).with("--elastic-ip " + pair));
    result.emplace(pair.substr(0, equals), address);
  }
  return result;
}

}  // namespace

Result<Options> parse_options(int argc, const char* const* argv) {
  Options o;
  std::vector<std::string> elastic;
  auto interval = o.health_check_interval.count();
  auto rekey = o.rekey_interval.count();
  CLI::App app("Keeps ESP tunnels to the gateways of the other clusters in the kernel of this node.", "fabric-gateway");
  app.add_option("--namespace", o.ns, "Namespace of Endpoints, Clusters and Gateways")->capture_default_str();
  app.add_option("--node-name", o.node, "Name of this Node")->envname("NODE_NAME")->required();
  app.add_option("--cluster-id", o.cluster_id, "ID of this cluster")->required();
  app.add_option("--natt-port", o.natt_port, "UDP port of encapsulated ESP")->capture_default_str();
  app.add_flag("--force-udp-encaps", o.force_udp_encaps, "Always put ESP into UDP");
  app.add_option("--nat-traversal", o.nat_traversal, "Put ESP into UDP when this node is behind NAT")
      ->capture_default_str();
  app.add_option("--preferred-server", o.preferred_server, "Published for Submariner's tools")->capture_default_str();
  app.add_option("--health-check", o.health_check, "Ping other gateways through the tunnel")->capture_default_str();
  app.add_option("--health-check-interval", interval, "Seconds between pings")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  app.add_option("--health-check-max-packet-loss", o.health_check_max_loss,
                 "Pings lost in a row that make a connection an error")
      ->capture_default_str();
  app.add_option("--rekey-interval", rekey, "Seconds between generations of keys")
      ->capture_default_str()
      ->check(CLI::Range(60, 43200));
  app.add_option("--elastic-ip", elastic, "NODE=ADDRESS: public address of a gateway node");
  app.add_option("--secrets", o.secrets, "Folder with psk, identity and broker")->capture_default_str();
  app.add_option("--listen-address", o.listen_address, "Address of probes and metrics")->capture_default_str();
  app.add_option("--listen-port", o.listen_port, "Port of probes and metrics")->capture_default_str();
  app.add_option("--log-level", o.log_level, "debug, info, warn or error")->capture_default_str();
  app.add_option("--kubeconfig", o.kubeconfig, "Instead of the in-cluster configuration");
  app.add_option("--uninstall", o.uninstall, "Remove everything, acknowledge with this token, and idle");
  FABRIC_CHECK(program::parse(app, argc, argv));
  o.health_check_interval = std::chrono::seconds(interval);
  o.rekey_interval = std::chrono::seconds(rekey);
  FABRIC_TRY(o.elastic_ips, elastic_ips(elastic));
  return o;
}

}  // namespace fabric::gateway
