#include <fabric/base/assert.hpp>
#include <fabric/kernel/netns_lock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/un.h>

namespace fabric::kernel {

Result<NetnsLock> take_netns_lock(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A name that begins with a zero byte is abstract; it ends with the length, not with another zero.
  FABRIC_ASSERT(name.size() + 1 <= sizeof(address.sun_path));
  std::ranges::copy(name, address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());

  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail_errno(errno, "opening a socket for a lock");
  NetnsLock lock(nullptr, [fd](const void*) { ::close(fd); });
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return fail_errno(errno, fmt::format("lock '{}'", name));
  return lock;
}

}  // namespace fabric::kernel
