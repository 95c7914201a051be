#include <fabric/api/names.hpp>
#include <fabric/async/clock.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/base/version.hpp>
#include <fabric/ctl/commands.hpp>
#include <fabric/kube/config.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include <iostream>
#include <unistd.h>

namespace fabric::ctl {
namespace {

constexpr Duration kShutdownGrace{1'000};

async::Task<Result<void>> remember(async::Task<Result<Exit>> command, Result<Exit>& into) {
  into = co_await std::move(command);
  co_return Result<void>();
}

Result<Exit> run(CommandLine line) {
  if (std::holds_alternative<VersionCommand>(line.command)) {
    std::cout << fmt::format("fabricctl {}\n", version());
    return Exit::done;
  }
  if (const auto* tunnel = std::get_if<StaticTunnelCommand>(&line.command)) {
    return static_tunnel(*tunnel, std::cout, std::cerr);
  }
  if (line.kubeconfig.empty()) {
    return fail(Errc::invalid, "no kubeconfig: name one with --kubeconfig or set KUBECONFIG");
  }
  FABRIC_TRY(auto config, kube::load_kubeconfig(line.kubeconfig, line.context));
  boost::asio::io_context io(1);
  async::SystemClock clock(io.get_executor());
  telemetry::Registry metrics;
  const kube::ClientOptions options{.timeout = Duration{30'000}, .field_manager = std::string(api::names::kCliManager)};
  FABRIC_TRY(auto connection, kube::connect(io.get_executor(), std::move(config), clock, metrics, options));
  const Session session{.client = *connection.client,
                        .clock = clock,
                        .out = std::cout,
                        .err = std::cerr,
                        .terminal = isatty(STDOUT_FILENO) == 1};
  Result<Exit> outcome = fail(Errc::cancelled, "interrupted");
  async::TaskGroup group(io.get_executor());
  group.spawn("command", remember(run_command(session, std::move(line.command)), outcome));
  FABRIC_CHECK(async::run_until_stopped(io, group, kShutdownGrace));
  return outcome;
}

int finish(const Result<Exit>& outcome) {
  std::cout.flush();
  if (outcome) return static_cast<int>(*outcome);
  std::cerr << "fabricctl: " << outcome.error().message() << '\n';
  return static_cast<int>(Exit::failed);
}

}  // namespace
}  // namespace fabric::ctl

int main(int argc, char** argv) {
  using namespace fabric;
  // What a person should see is printed by the commands.
  log::set_level(log::Level::error);
  auto line = ctl::parse_command_line(argc, argv);
  if (!line && line.error().code == Errc::cancelled) {
    std::cout << line.error().message() << '\n';
    return static_cast<int>(ctl::Exit::done);
  }
  return ctl::finish(line ? ctl::run(*std::move(line)) : Result<ctl::Exit>(std::unexpected(line.error())));
}
