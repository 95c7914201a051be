#pragma once

#include <fabric/base/error.hpp>
#include <fabric/crypto/psk.hpp>
#include <fabric/kube/config.hpp>

#include <filesystem>

namespace fabric::gateway {

/// The mounted PSK Secret: files `psk`, `number`, `previous` as in crypto::PskBundle. The kubelet replaces all of them
/// at once by pointing the link `..data` to another folder.
class PskFolder {
 public:
  explicit PskFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Differs when the content may differ. One readlink() where `..data` is; sizes and times of the files elsewhere.
  std::string version() const;

  /// All files of one version. Errors name the file and the remedy, never a content: not_found while `psk` is missing,
  /// invalid when the bundle is not usable, unavailable when it changed meanwhile.
  Result<crypto::PskSet> read() const;

 private:
  std::filesystem::path current() const;

  std::filesystem::path folder_;
};

/// What the operator put into files for this gateway. Read once at start; the PSKs again when their folder changed.
struct Credentials {
  crypto::PskSet psks;
  crypto::Ed25519KeyPair identity;
  kube::Config broker;
  std::string broker_namespace;
};

/// Below the folder of all credentials.
inline constexpr std::string_view kPskSubfolder = "psk";

/// Reads psk/, identity/ed25519 and broker/{brokerURL,ca.crt,token,namespace} below `folder`. Errors name the file
/// and what the operator does to make it, never a content: not_found while a file is missing, invalid when it is not
/// usable.
Result<Credentials> read_credentials(const std::filesystem::path& folder);

}  // namespace fabric::gateway
