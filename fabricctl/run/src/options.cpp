#include <fabric/ctl/options.hpp>
#include <fabric/json/time.hpp>
#include <fabric/program/program.hpp>

#include <CLI/CLI.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace fabric::ctl {

namespace {

constexpr auto kExitCodes =
    "Exit code: 0 when everything is as it should be or was done, 1 when it is not Ready, was refused or did not "
    "finish in\n"
    "time, 2 when the command line is wrong or the API server cannot be asked.";

/// The texts of `static-tunnel`, before they are checked.
struct RawTunnel {
  std::string local, remote, local_prefix, remote_prefix;
  std::uint32_t spi = 0;
  std::uint32_t reqid = 0;  // 0: as the SPI.
};

/// What CLI11 fills in, before it is checked.
struct Raw {
  std::string kubeconfig;
  std::string home;
  StatusCommand status;
  RekeyCommand rekey;
  RotatePskCommand rotate;
  BrokerInfoCommand broker_info;
  StaticTunnelCommand tunnel;
  RawTunnel tunnel_ends;
  std::string output = "text";
  std::string rekey_timeout = "10m";   // A drain takes 60 s; a silent peer holds it up for 5 min.
  std::string rotate_timeout = "15m";  // A drain at every member, one after the other in the worst case.
};

/// $KUBECONFIG may name several files; kubectl merges them, we take the first that is there.
std::filesystem::path kubeconfig_of(const Raw& raw) {
  std::string_view rest = raw.kubeconfig;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    std::error_code ignored;
    if (std::filesystem::exists(one, ignored)) return one;
  }
  if (!raw.kubeconfig.empty()) return raw.kubeconfig;
  return raw.home.empty() ? std::filesystem::path() : std::filesystem::path(raw.home) / ".kube" / "config";
}

void add_timeout(CLI::App& command, std::string& value) {
  command.add_option("--timeout", value, "How long --wait waits, like 90s or 10m")->capture_default_str();
}

CLI::App* add_status(CLI::App& app, Raw& raw) {
  CLI::App* command = app.add_subcommand("status", "Show the Fabrics, gateways, connections and keys of this cluster");
  command->add_option("-n,--namespace", raw.status.ns, "Only Fabrics of this namespace; default: all");
  command->add_flag("-v,--verbose", raw.status.verbose, "Show conditions that are fine, too");
  command->add_option("-o,--output", raw.output, "text or json")
      ->check(CLI::IsMember(std::array<std::string, 2>{"text", "json"}))
      ->capture_default_str();
  return command;
}

CLI::App* add_rekey(CLI::App& app, Raw& raw) {
  CLI::App* command = app.add_subcommand("rekey", "Let gateways draw new keys now, without losing a packet");
  CLI::Option* some = command->add_option("-g,--gateway", raw.rekey.gateways, "Node of a gateway; may be repeated");
  some->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("-a,--all", raw.rekey.all, "All gateways of this cluster")->excludes(some);
  command->add_flag("-w,--wait", raw.rekey.wait, "Until the new keys carry everything and the old ones are gone");
  add_timeout(*command, raw.rekey_timeout);
  return command;
}

CLI::App* add_rotate(CLI::App& app, Raw& raw) {
  CLI::App* command =
      app.add_subcommand("rotate-psk", "On the broker's cluster: replace the pre-shared key of all clusters");
  command->add_option("-n,--namespace", raw.rotate.ns, "Namespace of the broker's Fabric; default: wherever it is");
  CLI::Option* only = command->add_flag("--status", raw.rotate.status_only, "Show how far a rotation is");
  command->add_flag("-w,--wait", raw.rotate.wait, "Until no cluster needs the old key any more")->excludes(only);
  add_timeout(*command, raw.rotate_timeout);
  return command;
}

CLI::App* add_broker_info(CLI::App& app, Raw& raw) {
  CLI::App* command = app.add_subcommand(
      "broker-info", "On the broker's cluster: print what a joining cluster needs, as manifests. Holds secrets");
  command->add_flag("-y,--yes", raw.broker_info.yes, "Print the secrets even to a terminal");
  return command;
}

void add_ends(CLI::App& command, RawTunnel& ends) {
  command.add_option("--local", ends.local, "Address of this node, as its own packets carry it")->required();
  command.add_option("--remote", ends.remote, "Address of the far end, as packets from here reach it")->required();
  command.add_option("--local-prefix", ends.local_prefix, "What is behind this node, like 10.0.0.0/24")->required();
  command.add_option("--remote-prefix", ends.remote_prefix, "What is behind the far end")->required();
  command.add_option("--spi", ends.spi, "The SPI of both directions")->required();
  command.add_option("--reqid", ends.reqid, "Binds policies to SAs on this node; default: the SPI");
}

CLI::App* add_static_tunnel(CLI::App& app, Raw& raw) {
  CLI::App* command = app.add_subcommand(
      "static-tunnel", "UNSAFE, for demonstrations: on this node, a tunnel with a static key to an `ip xfrm` far end");
  command->require_subcommand(1);
  CLI::App* up = command->add_subcommand("up", "Install SAs and policies; warns each time");
  add_ends(*up, raw.tunnel_ends);
  up->add_option("--key-file", raw.tunnel.key_file, "Hex digits of 36 (or 20) bytes, 4 of them salt; mode 0600")
      ->required();
  up->add_flag("--i-know-that-static-keys-are-unsafe", raw.tunnel.acknowledged, "Without it, says why and refuses");
  up->callback([&raw] { raw.tunnel.up = true; });
  add_ends(*command->add_subcommand("down", "Remove what up installed with the same values"), raw.tunnel_ends);
  return command;
}

Result<StaticTunnelCommand> tunnel_of(const Raw& raw) {
  const RawTunnel& ends = raw.tunnel_ends;
  StaticTunnelCommand out = raw.tunnel;
  FABRIC_TRY(out.tunnel.local, net::IpAddress::parse(ends.local).with("--local"));
  FABRIC_TRY(out.tunnel.remote, net::IpAddress::parse(ends.remote).with("--remote"));
  FABRIC_TRY(out.tunnel.local_prefix, net::Cidr::parse(ends.local_prefix).with("--local-prefix"));
  FABRIC_TRY(out.tunnel.remote_prefix, net::Cidr::parse(ends.remote_prefix).with("--remote-prefix"));
  out.tunnel.spi = netstate::Spi(ends.spi);
  out.tunnel.reqid = netstate::Reqid(ends.reqid == 0 ? ends.spi : ends.reqid);
  FABRIC_CHECK(kernel::check_static_tunnel(out.tunnel));
  return out;
}

Result<Duration> timeout_of(const std::string& text) {
  const auto parsed = json::parse_duration(text);
  if (!parsed || *parsed <= std::chrono::nanoseconds(0)) {
    return fail(Errc::invalid, "--timeout '{}': expected a duration such as 90s or 10m", text);
  }
  return std::chrono::ceil<Duration>(*parsed);
}

/// The last part of how we were called: kubectl runs kubectl-fabric for `kubectl fabric`.
std::string name_of(int argc, const char* const* argv) {
  const bool plugin = argc > 0 && std::filesystem::path(argv[0]).filename() == "kubectl-fabric";
  return plugin ? "kubectl fabric" : "fabricctl";
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Looks after clusters that Fabric joined.", name_of(argc, argv));
  Raw raw;
  CommandLine out;
  app.footer(kExitCodes);
  app.require_subcommand(0, 1);  // None is refused below, so that an unknown one is named.
  app.fallthrough();
  app.add_option("--kubeconfig", raw.kubeconfig, "Default: ~/.kube/config")->envname("KUBECONFIG");
  app.add_option("--home", raw.home)->envname("HOME")->group("");
  app.add_option("--context", out.context, "Context of the kubeconfig; default: its current one");
  const CLI::App* status = add_status(app, raw);
  const CLI::App* rekey = add_rekey(app, raw);
  const CLI::App* rotate = add_rotate(app, raw);
  const CLI::App* broker_info = add_broker_info(app, raw);
  const CLI::App* tunnel = add_static_tunnel(app, raw);
  app.add_subcommand("version", "Print the version of this program");
  FABRIC_CHECK(program::parse(app, argc, argv));
  if (app.get_subcommands().empty()) {
    return fail(Errc::invalid,
                "no command: expected status, rekey, rotate-psk, broker-info, static-tunnel or version; see --help");
  }
  out.kubeconfig = kubeconfig_of(raw);
  if (status->parsed()) {
    raw.status.output = raw.output == "json" ? Output::json : Output::text;
    out.command = raw.status;
  } else if (rekey->parsed()) {
    FABRIC_TRY(raw.rekey.timeout, timeout_of(raw.rekey_timeout));
    out.command = raw.rekey;
  } else if (rotate->parsed()) {
    FABRIC_TRY(raw.rotate.timeout, timeout_of(raw.rotate_timeout));
    out.command = raw.rotate;
  } else if (broker_info->parsed()) {
    out.command = raw.broker_info;
  } else if (tunnel->parsed()) {
    FABRIC_TRY(out.command, tunnel_of(raw));
  } else {
    out.command = VersionCommand{};
  }
  return out;
}

}  // namespace fabric::ctl
