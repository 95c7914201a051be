#include <fabric/api/names.hpp>
#include <fabric/gateway/options.hpp>
#include <fabric/program/program.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <vector>

namespace fabric::gateway {

namespace {

struct SuiteName {
  std::string_view name;
  crypto::Suite suite;
};

constexpr std::array kSuites{SuiteName{api::names::kAes256Gcm, crypto::Suite::aes_gcm_256},
                             SuiteName{api::names::kChaCha20Poly1305, crypto::Suite::chacha20_poly1305}};

/// Fewer would be used up in the time of one exchange of records.
constexpr std::uint64_t kMinRekeyPackets = 1000;
constexpr std::uint64_t kMinRekeyBytes = 1 << 20;
constexpr std::uint64_t kMaxRekeyBytes = std::uint64_t{1} << 60;

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

Result<std::vector<crypto::Suite>> suites_of(const std::vector<std::string>& names) {
  std::vector<crypto::Suite> result;
  for (const std::string& name : names) {
    const auto known = std::ranges::find(kSuites, name, &SuiteName::name);
    if (known == kSuites.end())
      return fail(Errc::invalid, "--cipher-suites: '{}' is none of {}", name,
                  fmt::join(kSuites | std::views::transform(&SuiteName::name), ", "));
    if (std::ranges::find(result, known->suite) != result.end())
      return fail(Errc::invalid, "--cipher-suites: {} is named twice", name);
    result.push_back(known->suite);
  }
  return result;
}

/// Seconds, with fractions.
void add_seconds(CLI::App& app, const std::string& name, Duration& value, double most, const std::string& help) {
  const auto set = [&value](double seconds) {
    value = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  };
  app.add_option_function<double>(name, set, help)->check(CLI::Range(0.0, most));
}

void add_rekey_options(CLI::App& app, SaLimits& limits) {
  const auto set_interval = [&limits](std::int64_t seconds) { limits.rotate_after = std::chrono::seconds(seconds); };
  app.add_option_function<std::int64_t>("--rekey-interval", set_interval, "Seconds between generations of keys [3600]")
      ->check(CLI::Range(60, 43200));
  // The kernel refuses an SA at its hard limit, which is far above, so that the next generation is there in time.
  app.add_option("--rekey-packets", limits.soft_packets, "Packets of an SA after which new keys are drawn")
      ->capture_default_str()
      ->check(CLI::Range(kMinRekeyPackets, limits.hard_packets / 2));
  app.add_option("--rekey-bytes", limits.soft_bytes, "Bytes of an SA after which new keys are drawn; 0: no limit")
      ->capture_default_str()
      ->check(CLI::Range(std::uint64_t{0}, kMaxRekeyBytes));
  add_seconds(app, "--min-between-draws", limits.min_between_draws, 3600, "For test beds: seconds [30]");
  add_seconds(app, "--min-drain", limits.min_drain, 3600, "For test beds: seconds [60]");
  add_seconds(app, "--drain-idle", limits.drain_idle, 3600, "For test beds: seconds [30]");
}

}  // namespace

Result<Options> parse_options(int argc, const char* const* argv) {
  Options o;
  std::vector<std::string> elastic;
  auto interval = o.health_check_interval.count();
  std::vector<std::string> suites;
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
  add_rekey_options(app, o.limits);
  app.add_option("--cipher-suites", suites, "In order of preference: aes-256-gcm, chacha20-poly1305")->delimiter(',');
  app.add_option("--elastic-ip", elastic, "NODE=ADDRESS: public address of a gateway node");
  app.add_option("--secrets", o.secrets, "Folder with psk, identity and broker")->capture_default_str();
  app.add_option("--listen-address", o.listen_address, "Address of probes and metrics")->capture_default_str();
  app.add_option("--listen-port", o.listen_port, "Port of probes and metrics")->capture_default_str();
  app.add_option("--log-level", o.log_level, "debug, info, warn or error")->capture_default_str();
  app.add_option("--kubeconfig", o.kubeconfig, "Instead of the in-cluster configuration");
  app.add_option("--uninstall", o.uninstall, "Remove everything, acknowledge with this token, and idle");
  FABRIC_CHECK(program::parse(app, argc, argv));
  o.health_check_interval = std::chrono::seconds(interval);
  if (o.limits.soft_bytes != 0 && o.limits.soft_bytes < kMinRekeyBytes)
    return fail(Errc::invalid, "--rekey-bytes {}: expected 0 or at least {}", o.limits.soft_bytes, kMinRekeyBytes);
  if (!suites.empty()) {
    FABRIC_TRY(o.cipher_suites, suites_of(suites));
  }
  FABRIC_TRY(o.elastic_ips, elastic_ips(elastic));
  return o;
}

}  // namespace fabric::gateway
