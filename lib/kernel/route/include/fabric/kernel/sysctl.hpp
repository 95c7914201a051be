#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/ownership.hpp>

#include <map>
#include <string>
#include <string_view>

namespace fabric::kernel {

struct SysctlOptions {
  std::string root = "/proc/sys";
  std::string state_directory = std::string(netstate::kSysctlStateDirectory);
};

/// Kernel settings below /proc/sys, by keys such as "net/ipv4/conf/eth0/rp_filter". The value that was there before our
/// first write is kept in a file of the state directory, which is made before that write and never overwritten, so that
/// a crash at any point keeps it. Blocking; any one thread.
class SysctlDriver {
 public:
  static Result<SysctlDriver> open(SysctlOptions options = {});

  /// The value without the newline. Errc::not_found: no such setting (an interface that is gone).
  Result<std::string> read(std::string_view key) const;

  /// The settings that we changed and their present values; a setting that is gone is left out.
  Result<std::map<std::string, std::string>> observe() const;

  /// Keeps the old value, then writes. Nothing is kept or written when the value is already there.
  /// Errc::not_found when the setting is gone.
  Result<void> put(std::string_view key, std::string_view value);

  /// Restores the old value and forgets it. A setting that is gone, or that we never changed, is success.
  Result<void> restore(std::string_view key);
  /// Restores all and removes the state directory; goes on after an error and returns the first one.
  Result<void> restore_all();

 private:
  explicit SysctlDriver(SysctlOptions options);
  Result<std::map<std::string, std::string>> saved() const;
  SysctlOptions options_;
};

}  // namespace fabric::kernel
