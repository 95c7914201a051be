#pragma once

#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/kernel/driver.hpp>
#include <fabric/netstate/state.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Sets of prefixes and packet filter rules of one network namespace, in the backend that suits the node.
namespace fabric::kernel {

class FilterEngine;

struct FilterOptions {
  /// Absent: detected (see detect_filter_backend).
  std::optional<netstate::FilterBackend> backend;
  /// The lock file that every iptables binary of the node takes; the agent's pod mounts the node's.
  std::string xtables_lock = "/run/xtables.lock";
  /// How long a step waits for that lock before it fails with unavailable.
  Duration lock_patience = std::chrono::seconds(5);
};

/// What the node shows.
struct FilterDetection {
  netstate::FilterBackend backend = netstate::FilterBackend::nft;
  bool nft_supported = false;         ///< For IPv4 and IPv6, with all that our rules need.
  bool masquerade_in_legacy = false;  ///< A KUBE-POSTROUTING chain is seen in a legacy nat table.
  bool masquerade_in_nft = false;     ///< Rules of kube-proxy are seen in nftables (its own mode, or iptables-nft).
  std::string reason;                 ///< One sentence for logs and status.
};

/// nft wherever the kernel supports it, because a source translation in an early nftables chain decides before a
/// masquerade of either backend, while a legacy ACCEPT stops legacy rules only. Writes nothing and loads no legacy
/// table.
FilterDetection detect_filter_backend();

/// Slices ipsets and chains. Blocking; one thread uses an object, in one network namespace from open() on.
///
/// Ours are: sets named with netstate::kSetPrefix, chains named with netstate::kChainPrefix, nftables tables named
/// netstate::kNftTable. Observed rules are decoded; a rule that is none of ours, or a chain that is not entered first
/// in its hook, is reported as a rule that no plan contains, so that a diff writes the chain again.
///
/// Sets hold no prefix that another one of the set contains: plan with net::canonical_set(), as else every diff
/// differs. KeepSource and SourceNat belong to nat_postrouting, ClampMss to mangle_forward, Accept to the filter hooks;
/// all else is Errc::invalid. With the nft backend, Accept ends our own table only: a later chain of somebody else can
/// still drop.
///
/// The steps of one call are one transaction if possible (per table in the legacy backend); when it fails they are
/// tried one by one, so that every step has its own result. Errors: unavailable (lock or table busy, retry), invalid,
/// unsupported.
///
/// What an earlier run left in the other backend is removed after the first successful write of chains, so that a node
/// whose backend changes is never without rules.
class PacketFilter final : public Driver {
 public:
  static Result<std::unique_ptr<PacketFilter>> open(const FilterOptions& options);
  ~PacketFilter() override;

  netstate::FilterBackend backend() const { return detection_.backend; }

  const FilterDetection& detection() const { return detection_; }

  netstate::Slices slices() const override;
  Result<void> observe(netstate::Slices wanted, netstate::State& into) override;
  std::vector<Result<void>> apply(std::span<const netstate::Step> steps) override;

 private:
  PacketFilter(FilterDetection detection, std::unique_ptr<FilterEngine> chosen, std::unique_ptr<FilterEngine> other);
  Result<void> sweep(std::span<const netstate::Step> steps);
  FilterDetection detection_;
  std::unique_ptr<FilterEngine> chosen_;
  std::unique_ptr<FilterEngine> other_;  ///< Null once it is known to hold nothing of ours.
};

}  // namespace fabric::kernel
