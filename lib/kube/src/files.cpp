#include "files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fcntl.h>
#include <span>
#include <unistd.h>

namespace fabric::kube {
namespace {

constexpr std::size_t kMaxFile = std::size_t{1} << 20U;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_;
};

Result<std::size_t> read_some(int fd, std::span<std::uint8_t> into, const std::filesystem::path& path) {
  while (true) {
    const ssize_t got = ::read(fd, into.data(), into.size());
    const int error = errno;
    if (got >= 0) return static_cast<std::size_t>(got);
    if (error != EINTR) return fail_errno(error, fmt::format("reading {}", path.string()));
  }
}

}  // namespace

Result<Secret> read_secret_file(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT(cppcoreguidelines-pro-type-vararg)
  const int error = errno;
  if (file.get() < 0) return fail_errno(error, fmt::format("opening {}", path.string()));
  Secret content(0);
  std::size_t size = 0;
  for (std::size_t capacity = 8192; capacity <= kMaxFile; capacity *= 2) {
    Secret larger(capacity);
    std::ranges::copy(content.reveal().first(size), larger.writable().begin());
    content = std::move(larger);
    while (size < capacity) {
      FABRIC_TRY(const std::size_t got, read_some(file.get(), content.writable().subspan(size), path));
      if (got == 0) return Secret(content.reveal().first(size));
      size += got;
    }
  }
  return fail(Errc::invalid, "{}: larger than {} bytes", path.string(), kMaxFile);
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  FABRIC_TRY(const Secret content, read_secret_file(path));
  return std::string(content.reveal_text());
}

}  // namespace fabric::kube
