#include <fabric/api/names.hpp>
#include <fabric/gateway/credentials.hpp>

#include <fmt/format.h>

#include <fstream>
#include <system_error>

namespace fabric::gateway {

namespace {

namespace names = api::names;

/// Far above any key or token; a file that is larger is not what it should be.
constexpr std::size_t kMaxSize = 64UL << 10U;

/// By which the kubelet switches all files of a volume at once (atomic_writer.go of Kubernetes).
constexpr std::string_view kDataLink = "..data";

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

Result<std::optional<Secret>> read_optional(const std::filesystem::path& path) {
  auto content = read_file(path);
  if (content) return std::optional(*std::move(content));
  if (content.error().code == Errc::not_found) return std::optional<Secret>();
  return std::unexpected(std::move(content).error());
}

}  // namespace

std::filesystem::path PskFolder::current() const {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(folder_ / kDataLink, error);
  return error ? folder_ : folder_ / target;
}

std::string PskFolder::version() const {
  if (const auto now = current(); now != folder_) return now.string();
  std::error_code error;
  std::string version;
  for (const auto name : {names::kPskKey, names::kPskNumberKey, names::kPskPreviousKey}) {
    const auto size = std::filesystem::file_size(folder_ / name, error);
    if (error) continue;
    const auto time = std::filesystem::last_write_time(folder_ / name, error);
    version += fmt::format("{}:{}:{};", name, size, time.time_since_epoch().count());
  }
  return version;
}

Result<crypto::PskSet> PskFolder::read() const {
  // Resolved once: the files of one folder belong together, also when the link moves on meanwhile.
  const auto before = version();
  const auto folder = current();
  crypto::PskBundle bundle;
  FABRIC_TRY(bundle.psk, read_file(folder / names::kPskKey));
  FABRIC_TRY(const auto number, read_optional(folder / names::kPskNumberKey));
  const auto number_file = (folder_ / names::kPskNumberKey).string();
  if (number) {
    FABRIC_TRY(bundle.number, crypto::parse_psk_number(number->reveal_text()).with(number_file));
  }
  FABRIC_TRY(bundle.previous, read_optional(folder / names::kPskPreviousKey));
  // The old folder is removed after the switch, and a file that vanished looks like one that never was.
  if (version() != before) return fail(Errc::unavailable, "{} changed while it was read", folder_.string());
  return crypto::make_psk_set(bundle).with(folder_.string());
}

Result<Credentials> read_credentials(const std::filesystem::path& folder) {
  Credentials result;
  FABRIC_TRY(result.psks, PskFolder(folder / kPskSubfolder).read());
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
