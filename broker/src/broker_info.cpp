#include <fabric/api/identity.hpp>
#include <fabric/broker/broker_info.hpp>
#include <fabric/broker/names.hpp>
#include <fabric/json/base64.hpp>
#include <fabric/json/value.hpp>

#include <algorithm>

namespace fabric::broker {
namespace {

using json::Object;
using json::Value;

constexpr std::size_t kMaxText = std::size_t{1} << 20U;  // a ConfigMap holds at most 1 MiB
constexpr std::size_t kMaxDepth = 32;                    // managedFields of a real Secret nest about ten deep
constexpr std::string_view kCopyAgain =
    "copy ConfigMap submariner-k8s-broker/submariner-broker-info from the broker cluster again";

std::string without_space(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::ranges::copy_if(text, std::back_inserter(out),
                       [](char c) { return c != ' ' && c != '\t' && c != '\r' && c != '\n'; });
  return out;
}

/// The member of an object of a known path, by case-insensitive name, that must be there.
Result<const Value*> member(const Value& object, std::string_view path, std::string_view key) {
  if (!object.is_object()) return fail(Errc::invalid, "brokerInfo: {} is not a JSON object: {}", path, kCopyAgain);
  const Value* found = object.find_nocase(key);
  if (found == nullptr || found->is_null()) {
    return fail(Errc::invalid, "brokerInfo: {}{}{} is missing: {}", path, path.empty() ? "" : ".", key, kCopyAgain);
  }
  return found;
}

/// The base64 text of Secret `name`'s data[key].
Result<Secret> secret_datum(const Value& root, std::string_view name, std::string_view key) {
  FABRIC_TRY(const Value* secret, member(root, "", name));
  const std::string data_path = fmt::format("{}.data", name);
  FABRIC_TRY(const Value* data, member(*secret, name, "data"));
  FABRIC_TRY(const Value* datum, member(*data, data_path, key));
  const std::string* text = datum->if_string();
  if (text == nullptr || text->empty()) {
    return fail(Errc::invalid, "brokerInfo: {}.{} is {}: {}", data_path, key,
                text == nullptr ? "not a string" : "empty", kCopyAgain);
  }
  auto decoded = json::decode_base64_secret(without_space(*text));
  if (!decoded) {
    return fail(Errc::invalid, "brokerInfo: {}.{}: {}: {}", data_path, key, decoded.error().message(), kCopyAgain);
  }
  if (decoded->empty()) return fail(Errc::invalid, "brokerInfo: {}.{} is empty: {}", data_path, key, kCopyAgain);
  return *std::move(decoded);
}

Result<std::string> read_url(const Value& root) {
  FABRIC_TRY(const Value* value, member(root, "", "brokerURL"));
  const std::string* text = value->if_string();
  if (text == nullptr || text->empty()) {
    return fail(Errc::invalid, "brokerInfo: brokerURL is not a URL such as https://203.0.113.1:6443: {}", kCopyAgain);
  }
  std::string url = *text;
  while (url.ends_with('/'))
    url.pop_back();
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) url.insert(0, "https://");
  const std::string_view host = std::string_view(url).substr(url.find("://") + 3);
  if (!url.starts_with("https://") || host.empty() || host.find_first_of(" \t\r\n/?#@") != std::string_view::npos) {
    return fail(
        Errc::invalid,
        "brokerInfo: brokerURL '{}' is not https://host:port: set brokerConfig.publicAPIServerURL at the broker and {}",
        *text, kCopyAgain);
  }
  return url;
}

std::vector<std::string> read_strings(const Value& root, std::string_view key) {
  std::vector<std::string> out;
  const Value* value = root.find_nocase(key);
  const json::Array* array = value == nullptr ? nullptr : value->if_array();
  if (array == nullptr) return out;
  for (const Value& each : *array) {
    if (const std::string* text = each.if_string()) out.push_back(*text);
  }
  return out;
}

Result<ClientToken> read_client(const Value& root) {
  ClientToken client;
  FABRIC_TRY(const Secret ca, secret_datum(root, "clientToken", "ca.crt"));
  client.ca_pem = ca.reveal_text();
  if (!client.ca_pem.contains("-----BEGIN CERTIFICATE-----")) {
    return fail(Errc::invalid, "brokerInfo: clientToken.data.ca.crt is not a PEM certificate: {}", kCopyAgain);
  }
  FABRIC_TRY(const Secret ns, secret_datum(root, "clientToken", "namespace"));
  client.ns = ns.reveal_text();
  if (!api::is_dns_label(client.ns)) {
    return fail(Errc::invalid, "brokerInfo: clientToken.data.namespace '{}' is not a DNS label: {}", client.ns,
                kCopyAgain);
  }
  FABRIC_TRY(client.token, secret_datum(root, "clientToken", "token"));
  const auto bytes = client.token.reveal();
  if (std::ranges::any_of(bytes, [](std::uint8_t byte) { return byte <= ' ' || byte >= 0x7f; })) {
    return fail(Errc::invalid, "brokerInfo: clientToken.data.token holds white space or control characters: {}",
                kCopyAgain);
  }
  const Value* secret = root.find_nocase("clientToken");
  if (const Value* metadata = secret->find_nocase("metadata")) client.secret_name = metadata->string_at({"name"});
  return client;
}

Result<Secret> read_psk(const Value& root, std::string_view key, std::vector<std::string>& warnings) {
  FABRIC_TRY(Secret psk, secret_datum(root, "ipsecPSK", key));
  if (psk.size() < crypto::kMinPskSize) {
    return fail(Errc::invalid, "brokerInfo: ipsecPSK.data.{} has {} bytes, at least {} are needed: {}", key, psk.size(),
                crypto::kMinPskSize, kCopyAgain);
  }
  if (psk.size() != kPskSize) {
    warnings.push_back(
        fmt::format("brokerInfo: ipsecPSK.data.{} has {} bytes where {} are usual", key, psk.size(), kPskSize));
  }
  return psk;
}

Result<crypto::PskBundle> read_psks(const Value& root, std::vector<std::string>& warnings) {
  crypto::PskBundle bundle;
  FABRIC_TRY(bundle.psk, read_psk(root, names::kPskKey, warnings));
  const Value* data = root.find_nocase("ipsecPSK")->find_nocase("data");
  if (data->find_nocase(names::kPskNumberKey) != nullptr) {
    FABRIC_TRY(const Secret text, secret_datum(root, "ipsecPSK", names::kPskNumberKey));
    const auto number = crypto::parse_psk_number(text.reveal_text());
    if (!number) {
      return fail(Errc::invalid, "brokerInfo: ipsecPSK.data.number: {}: {}", number.error().message(), kCopyAgain);
    }
    bundle.number = *number;
  }
  if (data->find_nocase(names::kPskPreviousKey) != nullptr) {
    FABRIC_TRY(bundle.previous, read_psk(root, names::kPskPreviousKey, warnings));
  }
  if (const auto fits = crypto::make_psk_set(bundle); !fits) {
    return fail(Errc::invalid, "brokerInfo: ipsecPSK.data: {}: {}", fits.error().message(), kCopyAgain);
  }
  return bundle;
}

void read_optional_fields(const Value& root, BrokerInfo& info) {
  info.components = read_strings(root, "components");
  info.custom_domains = read_strings(root, "customDomains");
  if (const Value* value = root.find_nocase("serviceDiscovery"); value != nullptr && value->if_bool() != nullptr) {
    info.service_discovery = *value->if_bool();
  }
  if (const Value* value = root.find_nocase("globalnetCIDRRange"); value != nullptr && value->is_string()) {
    info.globalnet_cidr_range = *value->if_string();
  }
  const Value* size = root.find_nocase("defaultGlobalnetClusterSize");
  if (size != nullptr && size->if_int64() != nullptr && *size->if_int64() > 0) {
    info.default_globalnet_cluster_size = static_cast<std::uint64_t>(*size->if_int64());
  }
}

/// The whole token Secret, as an API server shows it.
Value write_client(const ClientToken& client) {
  return Object{
      {"apiVersion", "v1"},
      {"kind", "Secret"},
      {"metadata",
       Object{{"name", client.secret_name},
              {"namespace", client.ns},
              {"annotations", Object{{std::string(names::kTokenAccountAnnotation), names::kBrokerClientAccount}}}}},
      {"type", names::kTokenSecretType},
      {"data", Object{{"ca.crt", json::encode_base64(client.ca_pem)},
                      {"namespace", json::encode_base64(client.ns)},
                      {"token", json::encode_base64(client.token.reveal())}}}};
}

/// knitnet writes a Secret here that was never sent to an API server: no kind, no type, no time of creation.
Value write_psk(const crypto::PskBundle& psk) {
  return Object{{"metadata", Object{{"name", names::kPskSecret}, {"creationTimestamp", nullptr}}},
                {"data", psk_data(psk)}};
}

json::Array write_strings(const std::vector<std::string>& strings) {
  return {strings.begin(), strings.end()};
}

}  // namespace

Object psk_data(const crypto::PskBundle& psk) {
  Object data{{std::string(names::kPskKey), json::encode_base64(psk.psk.reveal())}};
  if (psk.number != 1) data.emplace(names::kPskNumberKey, json::encode_base64(std::to_string(psk.number)));
  if (psk.previous) data.emplace(names::kPskPreviousKey, json::encode_base64(psk.previous->reveal()));
  return data;
}

std::string write_broker_info(const BrokerInfo& info) {
  Object root;
  root.emplace("brokerURL", info.url);
  root.emplace("clientToken", write_client(info.client));
  root.emplace("ipsecPSK", write_psk(info.psk));
  if (!info.components.empty()) root.emplace("Components", write_strings(info.components));
  if (info.service_discovery) root.emplace("serviceDiscovery", *info.service_discovery);
  if (!info.custom_domains.empty()) root.emplace("customDomains", write_strings(info.custom_domains));
  if (!info.globalnet_cidr_range.empty()) root.emplace("globalnetCIDRRange", info.globalnet_cidr_range);
  if (info.default_globalnet_cluster_size != 0) {
    root.emplace("defaultGlobalnetClusterSize", info.default_globalnet_cluster_size);
  }
  return json::encode_base64(json::write(root), json::Base64Alphabet::url);
}

Result<ReadBrokerInfo> read_broker_info(std::string_view text) {
  if (text.size() > kMaxText) {
    return fail(Errc::invalid, "brokerInfo has {} characters, at most {} are read: {}", text.size(), kMaxText,
                kCopyAgain);
  }
  const std::string packed = without_space(text);
  if (packed.empty()) return fail(Errc::invalid, "brokerInfo is empty: {}", kCopyAgain);
  auto decoded = json::decode_base64_secret(packed);
  if (!decoded) return fail(Errc::invalid, "brokerInfo is not base64: {}: {}", decoded.error().message(), kCopyAgain);
  auto root = json::parse(decoded->reveal_text(), {.depth = kMaxDepth, .bytes = kMaxText});
  if (!root)
    return fail(Errc::invalid, "brokerInfo holds no JSON after base64: {}: {}", root.error().message(), kCopyAgain);
  if (!root->is_object()) return fail(Errc::invalid, "brokerInfo holds JSON, but no object: {}", kCopyAgain);

  ReadBrokerInfo read;
  FABRIC_TRY(read.info.url, read_url(*root));
  FABRIC_TRY(read.info.client, read_client(*root));
  FABRIC_TRY(read.info.psk, read_psks(*root, read.warnings));
  read_optional_fields(*root, read.info);
  return read;
}

}  // namespace fabric::broker
