#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/secret.hpp>

#include <filesystem>
#include <string>

namespace fabric::kube {

/// The content of a small file (at most 1 MiB). Errors name the file.
Result<std::string> read_text_file(const std::filesystem::path& path);
/// The same into memory that is cleansed.
Result<Secret> read_secret_file(const std::filesystem::path& path);

}  // namespace fabric::kube
