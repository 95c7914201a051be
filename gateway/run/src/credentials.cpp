#include <fabric/api/names.hpp>
#include <fabric/gateway/credentials.hpp>

#include <fstream>

namespace fabric::gateway {

namespace {

namespace names = api::names;

/// Far above any key or token; a file that is larger is not what it should be.
constexpr std::size_t kMaxSize = 64UL << 10U;

Result<Secret> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return fail(Errc::not_found, "{} is not there yet; the operator makes the Secret when the cluster joins",
                path.string());
  Secret content(kMaxSize);
  file.read(reinterpret_cast<char*>(content.writable().data()), static_cast<std::streamsize>(content.size()));
  const auto size = static_cast<std::size_t>(file.gcount());
  if (size == 0 || size == kMaxSize) return fail(Errc::invalid, "{} is empty or too large", path.string());
  return Secret(content.reveal().first(size));
}

Result<std::string> read_text(const std::filesystem::path& path) {
  FABRIC_TRY(const Secret content, read_file(path));
  return std::string(content.reveal_text());
}

}  // namespace

Result<Credentials> read_credentials(const std::filesystem::path& folder) {
  Credentials result;
  FABRIC_TRY(const Secret psk, read_file(folder / "psk" / names::kPskKey));
  FABRIC_TRY(auto first, crypto::Psk::make(1, psk).with((folder / "psk" / names::kPskKey).string()));
  FABRIC_CHECK(result.psks.add(std::move(first)));
  FABRIC_TRY(Secret seed, read_file(folder / "identity" / names::kIdentityKey));
  FABRIC_TRY(
      result.identity,
      crypto::Ed25519KeyPair::from_seed(std::move(seed)).with((folder / "identity" / names::kIdentityKey).string()));
  const auto broker = folder / "broker";
  FABRIC_TRY(std::string url, read_text(broker / names::kBrokerUrlKey));
  FABRIC_TRY(std::string ca, read_text(broker / names::kCaKey));
  FABRIC_TRY(Secret token, read_file(broker / names::kTokenKey));
  FABRIC_TRY(result.broker_namespace, read_text(broker / names::kNamespaceKey));
  FABRIC_TRY(result.broker,
             kube::explicit_config(std::move(url), std::move(ca), std::move(token), result.broker_namespace));
  return result;
}

}  // namespace fabric::gateway
