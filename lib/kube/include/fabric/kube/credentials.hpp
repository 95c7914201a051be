#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <filesystem>
#include <memory>
#include <optional>

namespace fabric::kube {

/// The bearer token of a client: none, fixed, or from a file that the kubelet replaces. Belongs to the io thread.
class Credentials {
 public:
  static std::shared_ptr<Credentials> none();
  static std::shared_ptr<Credentials> fixed(Secret token);
  /// Reads the file once now; Errc::not_found or invalid when that fails.
  static Result<std::shared_ptr<Credentials>> from_file(std::filesystem::path path, async::Clock& clock);

  /// The token to send; null when there is none. A file is read again when the last reading is a minute old; when that
  /// fails, the last good token stays.
  std::shared_ptr<const Secret> token();

  /// The server refused the token. Reads the file at once; true when it now has another token, so that one more try
  /// makes sense.
  bool refused();

 private:
  Credentials() = default;
  bool reload();

  std::shared_ptr<const Secret> token_;
  std::optional<std::filesystem::path> file_;
  async::Clock* clock_ = nullptr;
  async::SteadyTime read_at_;
};

}  // namespace fabric::kube
