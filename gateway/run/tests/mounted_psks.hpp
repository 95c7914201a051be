#pragma once

#include <fabric/api/names.hpp>
#include <fabric/gateway/credentials.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace fabric::gateway::testing {

/// The PSK `one_psk(seed)` holds, as file content.
inline std::string psk_text(std::uint8_t seed) {
  std::string text(48, '\0');
  text[0] = static_cast<char>(seed);
  return text;
}

/// A folder of credentials with psk/ as the kubelet mounts a Secret: files are links into a folder that `..data` names.
class MountedPsks {
 public:
  explicit MountedPsks(const std::string& name)
      : root_(std::filesystem::temp_directory_path() /
              fmt::format("fabric-{}-{}-{}", name, ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(folder());
  }

  MountedPsks(const MountedPsks&) = delete;
  MountedPsks& operator=(const MountedPsks&) = delete;

  ~MountedPsks() { std::filesystem::remove_all(root_); }

  const std::filesystem::path& root() const { return root_; }

  std::filesystem::path folder() const { return root_ / kPskSubfolder; }

  /// The next version of the Secret, in place of the former at once.
  void mount(const std::map<std::string, std::string>& files) {
    const std::string next = fmt::format("..version-{}", ++version_);
    std::filesystem::create_directory(folder() / next);
    for (const auto& [name, content] : files)
      std::ofstream(folder() / next / name, std::ios::binary) << content;
    std::filesystem::create_symlink(next, folder() / "..data_tmp");
    std::filesystem::rename(folder() / "..data_tmp", folder() / "..data");
    std::filesystem::remove_all(folder() / fmt::format("..version-{}", version_ - 1));
  }

 private:
  std::filesystem::path root_;
  int version_ = 0;
};

}  // namespace fabric::gateway::testing
