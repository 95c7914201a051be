#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fabric::kube {

/// How to reach and trust one API server, and who we are there. A value: nothing is read after loading except the token
/// file. Move-only because of the secrets.
struct Config {
  std::string server;           ///< "https://host:port", without a trailing slash.
  std::string ca_pem;           ///< Empty: the system's trust store.
  std::string tls_server_name;  ///< Empty: the host of `server`.
  bool insecure_skip_tls_verify = false;

  std::string client_certificate_pem;
  Secret client_key_pem;

  Secret token;                                     ///< A fixed bearer token, or empty.
  std::optional<std::filesystem::path> token_file;  ///< Read again at most every minute and after a 401.

  std::string ns = "default";  ///< The namespace of the context or of the pod.
};

/// Reads a kubeconfig. Relative file names in it count from the folder of `path`. `context` empty takes
/// current-context. Errors: not_found (file, context, cluster, user), invalid (names the field), unsupported (exec and
/// auth-provider).
Result<Config> load_kubeconfig(const std::filesystem::path& path, std::string_view context = {});

/// The same from text; `folder` resolves relative file names.
Result<Config> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder,
                                std::string_view context = {});

/// What a pod gets from its kubelet; main() passes the values of KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
struct InClusterOptions {
  std::string host;
  std::string port;
  std::filesystem::path folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};

Result<Config> load_in_cluster(const InClusterOptions& options);

/// A server known by its URL, CA and token, such as the broker.
Result<Config> explicit_config(std::string server, std::string ca_pem, Secret token, std::string ns);

}  // namespace fabric::kube
