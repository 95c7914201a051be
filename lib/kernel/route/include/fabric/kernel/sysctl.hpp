#pragma once

#include <fabric/base/error.hpp>
#include <fabric/kernel/driver.hpp>
#include <fabric/netstate/ownership.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::kernel {

struct SysctlOptions {
  std::string root = "/proc/sys";
  std::string state_directory = std::string(netstate::kSysctlStateDirectory);
};

/// The value of a key such as "net/ipv4/conf/eth0/rp_filter" without the newline. Errc::not_found: there is no such
/// setting (an interface that is gone); invalid: not a key below net/.
Result<std::string> read_sysctl(const SysctlOptions& options, std::string_view key);

/// Settings below /proc/sys. The value that was there before our first write is kept in a file of the state directory,
/// which is made before that write and never overwritten, so that a crash at any point keeps it.
/// Observed are the settings with a kept value. Removing one restores that value and forgets it; a setting whose
/// interface is gone is forgotten; the directory goes with its last file. Blocking; one thread uses an object, in one
/// network namespace.
class SysctlDriver final : public Driver {
 public:
  static Result<std::unique_ptr<SysctlDriver>> open(SysctlOptions options = {});

  netstate::Slices slices() const override;
  Result<void> observe(netstate::Slices wanted, netstate::State& into) override;
  /// Errc::not_found when a setting to write is gone.
  std::vector<Result<void>> apply(std::span<const netstate::Step> steps) override;

 private:
  explicit SysctlDriver(SysctlOptions options) : options_(std::move(options)) {}

  Result<void> put(const netstate::SysctlObject& object);
  Result<void> restore(const std::string& key);
  SysctlOptions options_;
};

}  // namespace fabric::kernel
