#include <fabric/json/base64.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/config.hpp>
#include <fabric/yaml/yaml.hpp>

#include <fmt/format.h>

#include <utility>

#include "files.hpp"

namespace fabric::kube {
namespace {

/// The member `field` of the entry of `list` whose name is `name`: clusters[name=x].cluster.
Result<const json::Value*> named(const json::Value& root, std::string_view list, std::string_view name,
                                 std::string_view field) {
  const json::Value* entries = root.find(list);
  if (entries != nullptr && entries->is_array()) {
    for (const json::Value& entry : *entries->if_array()) {
      if (entry.string_at({"name"}) != name) continue;
      const json::Value* value = entry.find(field);
      if (value == nullptr || !value->is_object())
        return fail(Errc::invalid, "{} '{}': {}: expected an object", list, name, field);
      return value;
    }
  }
  return fail(Errc::not_found, "{}: no entry is named '{}'", list, name);
}

std::filesystem::path resolved(const std::filesystem::path& folder, const std::string& file) {
  return std::filesystem::path(file).is_absolute() ? std::filesystem::path(file) : folder / file;
}

/// The bytes of `field`-data (base64) or of the file that `field` names; data wins, as in client-go. Empty when
/// neither.
Result<Secret> bytes_of(const json::Value& object, const std::string& field, const std::filesystem::path& folder) {
  const std::string inline_field = field + "-data";
  if (const std::string text = object.string_at({inline_field}); !text.empty())
    return json::decode_base64_secret(text).with(inline_field);
  if (const std::string file = object.string_at({field}); !file.empty())
    return read_secret_file(resolved(folder, file)).with(field);
  return Secret();
}

Result<void> read_cluster(const json::Value& cluster, const std::filesystem::path& folder, Config& out) {
  out.server = cluster.string_at({"server"});
  if (out.server.empty()) return fail(Errc::invalid, "server: required");
  while (out.server.ends_with('/'))
    out.server.pop_back();
  FABRIC_TRY(const Secret authority, bytes_of(cluster, "certificate-authority", folder));
  out.ca_pem = authority.reveal_text();
  out.tls_server_name = cluster.string_at({"tls-server-name"});
  if (const json::Value* skip = cluster.find("insecure-skip-tls-verify"); skip != nullptr && skip->if_bool() != nullptr)
    out.insecure_skip_tls_verify = *skip->if_bool();
  if (out.insecure_skip_tls_verify && !out.ca_pem.empty())
    return fail(Errc::invalid, "certificate-authority and insecure-skip-tls-verify exclude each other: remove one");
  if (cluster.find("proxy-url") != nullptr)
    return fail(Errc::unsupported, "proxy-url: not supported; use an address that is reachable without a proxy");
  return {};
}

Result<void> read_user(const json::Value& user, const std::filesystem::path& folder, Config& out) {
  for (const std::string_view plugin : {"exec", "auth-provider"}) {
    if (user.find(plugin) != nullptr)
      return fail(Errc::unsupported, "{}: not supported; use a ServiceAccount token or a client certificate", plugin);
  }
  FABRIC_TRY(const Secret certificate, bytes_of(user, "client-certificate", folder));
  FABRIC_TRY(out.client_key_pem, bytes_of(user, "client-key", folder));
  out.client_certificate_pem = certificate.reveal_text();
  if (out.client_certificate_pem.empty() != out.client_key_pem.empty())
    return fail(Errc::invalid, "client-certificate and client-key: expected both or neither");
  if (const std::string file = user.string_at({"tokenFile"}); !file.empty()) {
    out.token_file = resolved(folder, file);
  } else if (const json::Value* token = user.find("token"); token != nullptr && token->is_string()) {
    out.token = Secret::from_text(*token->if_string());
  }
  return {};
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos || host.starts_with('[') ? host : "[" + host + "]";
}

}  // namespace

Result<Config> parse_kubeconfig(std::string_view text, const std::filesystem::path& folder, std::string_view context) {
  FABRIC_TRY(const json::Value root, yaml::parse(text));
  const std::string name = context.empty() ? root.string_at({"current-context"}) : std::string(context);
  if (name.empty()) return fail(Errc::invalid, "current-context: required; choose one with kubectl config use-context");
  FABRIC_TRY(const json::Value* chosen, named(root, "contexts", name, "context"));
  const std::string cluster_name = chosen->string_at({"cluster"});
  const std::string user_name = chosen->string_at({"user"});
  FABRIC_TRY(const json::Value* cluster, named(root, "clusters", cluster_name, "cluster"));
  Config out;
  FABRIC_CHECK(read_cluster(*cluster, folder, out).with(fmt::format("cluster '{}'", cluster_name)));
  if (!user_name.empty()) {
    FABRIC_TRY(const json::Value* user, named(root, "users", user_name, "user"));
    FABRIC_CHECK(read_user(*user, folder, out).with(fmt::format("user '{}'", user_name)));
  }
  out.ns = chosen->string_at({"namespace"}, "default");
  return out;
}

Result<Config> load_kubeconfig(const std::filesystem::path& path, std::string_view context) {
  const std::string what = fmt::format("kubeconfig {}", path.string());
  FABRIC_TRY(const Secret text, read_secret_file(path).with(what));
  return parse_kubeconfig(text.reveal_text(), path.parent_path(), context).with(what);
}

Result<Config> load_in_cluster(const InClusterOptions& options) {
  if (options.host.empty() || options.port.empty()) {
    return fail(Errc::invalid,
                "in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; "
                "outside of a pod pass a kubeconfig");
  }
  Config out;
  out.server = fmt::format("https://{}:{}", bracketed(options.host), options.port);
  FABRIC_TRY(out.ca_pem, read_text_file(options.folder / "ca.crt").with("in-cluster configuration"));
  out.token_file = options.folder / "token";
  // A projected volume without the namespace is legal; then the default stays.
  if (auto ns = read_text_file(options.folder / "namespace")) out.ns = trimmed(*std::move(ns));
  return out;
}

Result<Config> explicit_config(std::string server, std::string ca_pem, Secret token, std::string ns) {
  if (!server.starts_with("https://"))
    return fail(Errc::invalid, "API server '{}': expected a URL that begins with https://", server);
  Config out;
  out.server = std::move(server);
  while (out.server.ends_with('/'))
    out.server.pop_back();
  out.ca_pem = std::move(ca_pem);
  out.token = std::move(token);
  out.ns = std::move(ns);
  return out;
}

}  // namespace fabric::kube
