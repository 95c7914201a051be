#pragma once

#include <fabric/base/error.hpp>
#include <fabric/netstate/script.hpp>
#include <fabric/netstate/state.hpp>

#include <span>
#include <vector>

namespace fabric::kernel {

/// One group of slices of the kernel, over one C library. Synchronous; opened anywhere, then used by one thread only.
///
/// Concrete drivers are made by `static Result<std::unique_ptr<X>> open(...)`, which fails with a remedy when the
/// kernel lacks what it needs. Idempotence (EEXIST, ENOENT, ESRCH) is decided here and nowhere above, as netstate::Verb
/// says.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  /// The slices that this driver observes and changes. No two drivers of a composition share one.
  virtual netstate::Slices slices() const = 0;

  /// Fills the slices that are both wanted and its own with our objects; objects of others are left out.
  virtual Result<void> observe(netstate::Slices wanted, netstate::State& into) = 0;

  /// Carries out steps of one phase, all about its slices; the failure of one does not stop the others. Returns one
  /// result per step. The context of an error says what the kernel said; the caller puts the step's description before.
  virtual std::vector<Result<void>> apply(std::span<const netstate::Step> steps) = 0;
};

}  // namespace fabric::kernel
