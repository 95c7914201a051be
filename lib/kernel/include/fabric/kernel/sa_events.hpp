#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/netstate/state.hpp>

#include <cstdint>

namespace fabric::kernel {

/// What the kernel says about an SA without being asked.
struct SaEvent {
  enum class Kind : std::uint8_t {
    soft_expired,  ///< The soft packet or byte limit is reached: time for the next generation. Said once per SA.
    hard_expired,  ///< The SA is gone.
    acquire,       ///< A packet met an ESP policy without an SA and was dropped; key.spi is 0.
    flushed,       ///< Somebody removed all SAs or all policies. The other members say nothing.
    overrun,       ///< Events were lost: observe the SAs anew. The other members say nothing.
  };
  Kind kind = Kind::overrun;
  netstate::SaKey key;
  netstate::Reqid reqid;
  bool operator==(const SaEvent&) const = default;
};

/// A stream of events about our own SAs (those of others are left out), on the io thread, for one reader.
class SaEvents {
 public:
  SaEvents() = default;
  SaEvents(const SaEvents&) = delete;
  SaEvents& operator=(const SaEvents&) = delete;
  virtual ~SaEvents() = default;

  /// The next event. Errors: cancelled; unavailable when the stream broke, then it has to be opened anew.
  virtual async::Task<Result<SaEvent>> next() = 0;
};

}  // namespace fabric::kernel
