#include <fabric/program/program.hpp>
#include <fabric/telemetry/log.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>

namespace fabric::program {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<void> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return fail(Errc::cancelled, "{}", app.help());
  } catch (const CLI::ParseError& error) {
    return fail(Errc::invalid, "{}; see --help", error.what());
  }
  return {};
}

Result<kube::Config> api_server(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return kube::load_kubeconfig(kubeconfig);
  kube::InClusterOptions options;
  options.host = environment("KUBERNETES_SERVICE_HOST");
  options.port = environment("KUBERNETES_SERVICE_PORT");
  return kube::load_in_cluster(options);
}

int finish(std::string_view name, const Result<void>& result) {
  if (result) return EXIT_SUCCESS;
  if (result.error().code == Errc::cancelled) {
    fmt::print("{}\n", result.error().message());
    return EXIT_SUCCESS;
  }
  log::error("the program ends", {{"program", name}, {"error", result.error().message()}});
  return EXIT_FAILURE;
}

}  // namespace fabric::program
