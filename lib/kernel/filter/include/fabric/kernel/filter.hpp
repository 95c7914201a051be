#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/state.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Sets of prefixes and packet filter rules of this network namespace. Blocking; one thread (the kernel thread) uses an
/// object from open() to destruction, and stays in one network namespace meanwhile.
namespace fabric::kernel {

/// The slice of netstate::State that a packet filter holds.
struct FilterState {
  std::map<std::string, netstate::IpSet> ipsets;
  std::map<netstate::ChainKey, std::vector<netstate::FilterRule>> chains;
  bool operator==(const FilterState&) const = default;
};

/// What to write. Sets and chains that are not named stay; nullopt removes; an empty list of rules removes the chain.
/// A set replaces the former content as a whole; prefixes that another one of the set contains are left out, so whoever
/// compares with observe() passes net::canonical_set().
struct FilterChange {
  std::map<std::string, std::optional<netstate::IpSet>> ipsets;
  std::map<netstate::ChainKey, std::optional<std::vector<netstate::FilterRule>>> chains;

  bool empty() const { return ipsets.empty() && chains.empty(); }
};

/// One way to have rules in the kernel. Both ways make one decision: what is ours is known by name (set names with
/// netstate::kSetPrefix, chains with netstate::kChainPrefix, nftables tables named netstate::kNftTable).
class FilterDriver {
 public:
  virtual ~FilterDriver() = default;

  /// What is ours, decoded. A rule that is not one of ours, a chain that is not entered first or a set that lacks
  /// properties shows up as something that equals no valid desired state, so that a diff repairs it.
  virtual Result<FilterState> observe() = 0;

  /// Sets first, then chains, then removal of sets, so a batch may contain a set and the rules that use it. A change to
  /// one table (legacy) or to everything (nft) is one transaction.
  /// Errors: invalid (a rule that cannot be expressed, a set of another family: nothing was written), unavailable (lock
  /// or table busy: retry), unsupported.
  virtual Result<void> apply(const FilterChange& change) = 0;

  /// Takes away everything of ours. Nothing there is success.
  virtual Result<void> remove_all() = 0;
};

struct FilterOptions {
  /// Absent: detected (see detect_filter_backend).
  std::optional<netstate::FilterBackend> backend;
  /// The lock file that every iptables binary of the node takes; the agent's pod mounts the node's.
  std::string xtables_lock = "/run/xtables.lock";
};

/// What the node shows; `reason` is one sentence for logs and status.
struct FilterDetection {
  netstate::FilterBackend backend = netstate::FilterBackend::nft;
  bool nft_supported = false;         ///< For IPv4 and IPv6, with all that our rules need.
  bool masquerade_in_legacy = false;  ///< KUBE-POSTROUTING is seen in the legacy nat table of either family.
  bool masquerade_in_nft = false;     ///< kube-proxy's rules are seen in nftables (its own mode, or iptables-nft).
  std::string reason;
};

/// nft wherever the kernel supports it, because an early nftables source NAT decides before a masquerade of either
/// backend, while a legacy ACCEPT stops legacy rules only. Does not load the legacy tables. Writes nothing.
FilterDetection detect_filter_backend();

/// Asks the kernel to check (not to commit) a table with everything that our rules need.
bool nft_supported();

Result<std::unique_ptr<FilterDriver>> open_legacy_filter(const FilterOptions& options);
Result<std::unique_ptr<FilterDriver>> open_nft_filter();

/// The driver that agents use: the chosen backend, with leftovers of the other one removed after a successful apply (a
/// node whose backend changed is never without rules). remove_all() empties both.
class PacketFilter final : public FilterDriver {
 public:
  static Result<PacketFilter> open(const FilterOptions& options);

  netstate::FilterBackend backend() const { return detection_.backend; }

  const FilterDetection& detection() const { return detection_; }

  Result<FilterState> observe() override;
  Result<void> apply(const FilterChange& change) override;
  Result<void> remove_all() override;

 private:
  PacketFilter(FilterDetection detection, std::unique_ptr<FilterDriver> chosen, std::unique_ptr<FilterDriver> other);
  FilterDetection detection_;
  std::unique_ptr<FilterDriver> chosen_;
  std::unique_ptr<FilterDriver> other_;  ///< Null where the kernel lacks it.
};

}  // namespace fabric::kernel
