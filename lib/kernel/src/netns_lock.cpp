#include <fabric/kernel/netns_lock.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>

#include <sys/file.h>
#include <sys/stat.h>

namespace fabric::kernel {

Result<NetnsLock> take_netns_lock(std::string_view name, const std::filesystem::path& directory) {
  struct stat netns{};
  if (::stat("/proc/thread-self/ns/net", &netns) != 0) return fail_errno(errno, "/proc/thread-self/ns/net");
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail_errno(error.value(), directory.string());

  const std::string file = directory / fmt::format("{}.{}.lock", name, netns.st_ino);
  constexpr mode_t kOwnerOnly = 0600;
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly);
  if (fd < 0) return fail_errno(errno, file);
  NetnsLock lock(nullptr, [fd](const void*) { ::close(fd); });
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return fail_errno(errno, file);
  return lock;
}

}  // namespace fabric::kernel
