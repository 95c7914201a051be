#include <fabric/base/assert.hpp>

#include <netlink/msg.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dump.hpp"

/// A dump of rtnetlink. The kernel is the only sender, yet other versions of it send other attributes: whatever comes,
/// nothing is read beyond the end of a message, and the length of a prefix fits its family.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fabric::kernel;
  // In words, as messages are aligned, and of this very size, so that the sanitizer sees a read behind it.
  std::vector<std::uint32_t> dump(size / sizeof(std::uint32_t));
  std::copy_n(data, dump.size() * sizeof(std::uint32_t), reinterpret_cast<std::uint8_t*>(dump.data()));
  auto rest = static_cast<int>(dump.size() * sizeof(std::uint32_t));
  for (auto* message = reinterpret_cast<nlmsghdr*>(dump.data()); nlmsg_ok(message, rest) != 0;
       message = nlmsg_next(message, &rest)) {
    read_interface(*message);
    read_address(*message);
    read_default(*message);
    read_neighbour(*message);
    read_link(*message);
    if (const auto route = read_route(*message)) {
      const auto length = route->object.key.dst.length();
      FABRIC_ASSERT(length >= 0 && length <= (route->object.key.dst.address().is_v4() ? 32 : 128));
    }
  }
  return 0;
}
