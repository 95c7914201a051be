#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/kernel/driver.hpp>
#include <fabric/kernel/sa_events.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace fabric::kernel {

/// The kernel's SA database and policy database (XFRM over netlink) in the network namespace of the opening thread.
/// Needs CAP_NET_ADMIN there. Adding an SA fails with unsupported and a remedy when the kernel has no ESP.
class XfrmDriver final : public Driver {
 public:
  static Result<std::unique_ptr<XfrmDriver>> open();
  ~XfrmDriver() override;

  netstate::Slices slices() const override;
  Result<void> observe(netstate::Slices wanted, netstate::State& into) override;

  /// SAs: add refuses an SA whose destination and SPI exist already, replace is refused. Policies: one of others with
  /// the same selector is left alone and the step fails with already_exists.
  std::vector<Result<void>> apply(std::span<const netstate::Step> steps) override;

  /// Makes the kernel find and change our policies by hash instead of walking them, see kRemoteBits4 in the source.
  /// Changes nothing about which policy applies. To be called once after start; idempotent.
  Result<void> set_policy_hash_thresholds();

  /// Makes the kernel load what an SA with this algorithm needs, which can take seconds the first time: adds an SA that
  /// no policy can lead to (127.0.0.1, reqid 0), and removes it in the same batch. Should that fail, the kernel removes
  /// it after some seconds. An error says what adding a real one would say.
  Result<void> warm_up(netstate::Aead aead);

 private:
  struct Impl;
  explicit XfrmDriver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct SaEventsOptions {
  /// Also report packets that met no SA. While somebody listens for these, the kernel keeps a larval state of up to
  /// 30 s for each such flow.
  bool acquire = false;
  /// Also report that somebody removed all SAs or policies. The kernel then copies every change of them to us.
  bool flushes = false;
};

/// Subscribes in the network namespace of the calling thread. Call on the io thread of `executor`.
Result<std::unique_ptr<SaEvents>> open_sa_events(async::Executor executor, SaEventsOptions options = {});

/// The kernel's counters of dropped packets by reason ("XfrmInNoStates"), for metrics. unsupported when the kernel was
/// built without CONFIG_XFRM_STATISTICS.
Result<std::map<std::string, std::uint64_t>> read_xfrm_stat(
    const std::filesystem::path& file = "/proc/thread-self/net/xfrm_stat");

}  // namespace fabric::kernel
