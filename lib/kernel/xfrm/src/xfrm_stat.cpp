#include <fabric/kernel/xfrm.hpp>

#include <fstream>
#include <string>

namespace fabric::kernel {

Result<std::map<std::string, std::uint64_t>> read_xfrm_stat(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) {
    return fail(Errc::unsupported, "{} cannot be read; the kernel was built without CONFIG_XFRM_STATISTICS",
                file.string());
  }
  std::map<std::string, std::uint64_t> counters;
  std::string name;
  std::uint64_t value = 0;
  while (stream >> name >> value)
    counters.insert_or_assign(name, value);
  return counters;
}

}  // namespace fabric::kernel
