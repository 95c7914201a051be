#pragma once

#include <fabric/base/error.hpp>
#include <fabric/kube/config.hpp>

#include <string>
#include <string_view>

namespace CLI {
class App;
}

/// What the main functions of all programs share.
namespace fabric::program {

/// Parses the command line into what the options of `app` are bound to. Errc::invalid with the reason; Errc::cancelled
/// with the help text for --help.
Result<void> parse(CLI::App& app, int argc, const char* const* argv);

/// The API server that a kubeconfig names, or with an empty path that of the pod's own cluster.
Result<kube::Config> api_server(const std::string& kubeconfig);

/// The exit code of a program that ended like this. Help goes to stdout; an error is logged under the program's name.
int finish(std::string_view name, const Result<void>& result);

}  // namespace fabric::program
