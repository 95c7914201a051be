#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/kernel/static_tunnel.hpp>

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace fabric::ctl {

enum class Output { text, json };

struct StatusCommand {
  std::string ns = {};  ///< Of the Fabrics; empty: all namespaces.
  bool verbose = false;
  Output output = Output::text;
};

struct RekeyCommand {
  std::vector<std::string> gateways = {};  ///< Node names; empty together with `all`.
  bool all = false;
  bool wait = false;
  Duration timeout{};
};

struct RotatePskCommand {
  std::string ns = {};       ///< Of the broker's Fabric; empty: wherever it is.
  bool status_only = false;  ///< Report, change nothing.
  bool wait = false;
  Duration timeout{};
};

struct BrokerInfoCommand {
  bool yes = false;  ///< Print even to a terminal.
};

/// Changes this node's kernel and asks no API server.
struct StaticTunnelCommand {
  bool up = false;
  kernel::StaticTunnel tunnel = {};     ///< Checked.
  std::filesystem::path key_file = {};  ///< Only up.
  bool acknowledged = false;            ///< --i-know-that-static-keys-are-unsafe
};

struct VersionCommand {};

using Command =
    std::variant<StatusCommand, RekeyCommand, RotatePskCommand, BrokerInfoCommand, StaticTunnelCommand, VersionCommand>;

struct CommandLine {
  std::filesystem::path kubeconfig;  ///< The file to read; empty when none was named and there is no home folder.
  std::string context;               ///< Empty: the current one.
  Command command;
};

/// Errc::invalid with the reason; Errc::cancelled with the help text. Where no --kubeconfig is given, $KUBECONFIG and
/// then ~/.kube/config hold, as with kubectl.
Result<CommandLine> parse_command_line(int argc, const char* const* argv);

}  // namespace fabric::ctl
