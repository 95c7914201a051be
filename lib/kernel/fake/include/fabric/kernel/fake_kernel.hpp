#pragma once

#include <fabric/base/time.hpp>
#include <fabric/kernel/driver.hpp>
#include <fabric/kernel/kernel.hpp>
#include <fabric/kernel/sa_events.hpp>
#include <fabric/netstate/script.hpp>
#include <fabric/netstate/state.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fabric::kernel {

/// The state behind fakes: answers with the errors of a real kernel, without one. One thread.
///
/// What it imitates: SAs are unique by destination and SPI; an object on a link needs the link and goes with it; a
/// chain needs its sets, a set in use cannot go; a policy of others with the same selector is refused; old sysctl
/// values are kept and restored. Keys are not given back.
class FakeKernelState {
 public:
  /// The next `times` steps for which `matches` holds fail with this errno, as a real driver would report it.
  void fail_next(std::function<bool(const netstate::Step&)> matches, int errno_value, int times = 1);
  /// The next steps of a slice.
  void fail_next(netstate::Slice slice, int errno_value, int times = 1);
  /// The next observe() fails.
  void fail_next_observe(int errno_value);

  /// What is in the kernel and ours; tests may edit it, as an administrator with `ip` would.
  netstate::State ours;
  /// What is in the kernel and of others: never observed. Only SAs and policies matter, as they can collide with ours.
  netstate::State foreign;
  /// Links of others that routes may use ("eth0").
  std::set<std::string> interfaces{"eth0"};
  /// Current values below /proc/sys; a sysctl that is not here does not exist.
  std::map<std::string, std::string> sysctls;
  netstate::HostFacts facts;
  bool has_esp = true;
  TimePoint now;  ///< Becomes SaCounters::added.

  /// Every step that was carried out, in order.
  std::vector<netstate::Step> history;
  /// SAs whose key material was installed more than once under the same destination, which repeats nonces. Always a
  /// defect of the planner; tests assert that it is empty.
  std::vector<netstate::SaKey> installed_twice;

  /// Counts traffic on an SA, and emits soft and hard expiry when a limit is reached.
  void count(const netstate::SaKey& key, std::uint64_t packets, std::uint64_t bytes);

  Result<void> carry_out(const netstate::Step& step);
  Result<void> observe(netstate::Slices wanted, netstate::State& into);

  /// Called for each event; FakeSaEvents sets it.
  std::function<void(const SaEvent&)> on_event;

 private:
  struct Failure {
    std::function<bool(const netstate::Step&)> matches;
    int errno_value = 0;
    int times = 0;
  };

  Result<void> sa(netstate::Verb verb, const netstate::SaObject& object);
  Result<void> policy(netstate::Verb verb, const netstate::PolicyObject& object);
  Result<void> link(netstate::Verb verb, const netstate::LinkObject& object);
  Result<void> fdb(netstate::Verb verb, const netstate::FdbEntry& entry);
  Result<void> neighbour(netstate::Verb verb, const netstate::Neighbour& entry);
  Result<void> route(netstate::Verb verb, const netstate::RouteObject& object);
  Result<void> ipset(netstate::Verb verb, const netstate::IpSetObject& object);
  Result<void> chain(netstate::Verb verb, const netstate::ChainObject& object);
  Result<void> sysctl(netstate::Verb verb, const netstate::SysctlObject& object);
  void drop_link(const std::string& name);
  bool has_link(const std::string& name) const;
  bool set_in_use(const std::string& name) const;

  std::deque<Failure> failures_;
  std::deque<int> observe_failures_;
  std::map<std::string, std::string> saved_sysctls_;
  std::set<std::pair<netstate::SaKey, std::vector<std::uint8_t>>> installed_;
};

/// All slices of a FakeKernelState as a driver, for run_script() and the contract suite. The state must outlive it.
std::unique_ptr<Driver> make_fake_driver(FakeKernelState& state);

/// The port over a FakeKernelState, without a thread: every call is done when it returns. The state must outlive it.
class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(FakeKernelState& state);

  async::Task<Result<netstate::State>> observe(netstate::Slices slices) override;
  async::Task<Result<netstate::HostFacts>> facts(FactsRequest request) override;
  async::Task<Report> apply(netstate::Script script) override;

 private:
  FakeKernelState& state_;
  std::vector<std::unique_ptr<Driver>> drivers_;
};

/// The events of a FakeKernelState as a stream. The state must outlive it.
std::unique_ptr<SaEvents> make_fake_sa_events(FakeKernelState& state, async::Executor executor);

}  // namespace fabric::kernel
