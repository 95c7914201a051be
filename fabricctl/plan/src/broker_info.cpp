#include <fabric/api/names.hpp>
#include <fabric/broker/broker_info.hpp>
#include <fabric/ctl/broker_info.hpp>
#include <fabric/json/value.hpp>

#include <fmt/format.h>

namespace fabric::ctl {

namespace names = api::names;

namespace {

/// A JSON string is a YAML string in double quotes.
std::string quoted(std::string_view text) {
  return json::write(json::Value(text));
}

std::string labels_of(const api::ConfigMap& config_map) {
  std::string out;
  for (const std::string_view key : {names::kFabricNameLabel, names::kFabricNamespaceLabel}) {
    if (const std::string* value = config_map.metadata.label(key)) {
      out += fmt::format("    {}: {}\n", quoted(key), quoted(*value));
    }
  }
  return out.empty() ? out : "  labels:\n" + out;
}

}  // namespace

Result<BrokerInfoManifest> broker_info_manifest(const api::ConfigMap& config_map) {
  const std::string where = api::describe(config_map);
  const auto value = config_map.data.find(names::kBrokerInfoKey);
  if (value == config_map.data.end()) {
    return fail(Errc::invalid, "{}: data.{} is absent: the broker's operator writes it; see kubectl describe fabric",
                where, names::kBrokerInfoKey);
  }
  auto info = broker::read_broker_info(value->second);
  if (!info) return std::unexpected(std::move(info).error().with(where));
  BrokerInfoManifest out;
  out.warnings = std::move(info->warnings);
  out.yaml = fmt::format(
      "# Holds the pre-shared key of all clusters and a token: keep it as you keep a key.\n"
      "# On the joining cluster: kubectl apply -f THIS FILE\n"
      "apiVersion: v1\n"
      "kind: Namespace\n"
      "metadata:\n"
      "  name: {0}\n"
      "---\n"
      "apiVersion: v1\n"
      "kind: ConfigMap\n"
      "metadata:\n"
      "  name: {1}\n"
      "  namespace: {0}\n"
      "{2}"
      "data:\n"
      "  {3}: {4}\n",
      names::kBrokerNamespace, names::kBrokerInfo, labels_of(config_map), names::kBrokerInfoKey, quoted(value->second));
  return out;
}

}  // namespace fabric::ctl
