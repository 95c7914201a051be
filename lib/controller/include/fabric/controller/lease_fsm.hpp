#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fabric::controller {

/// The fields of a coordination.k8s.io/v1 Lease that an election uses.
struct LeaseRecord {
  std::string holder;  ///< Empty: released.
  int duration_seconds = 0;
  std::string acquire_time;  ///< RFC 3339 with microseconds, as the holder wrote it. Never compared with our clock.
  std::string renew_time;
  int transitions = 0;

  bool operator==(const LeaseRecord&) const = default;
};

/// client-go's defaults. Validated by `validate`: lease > renew deadline > 1.2 x retry period.
struct LeaseOptions {
  std::string identity;
  Duration lease_duration{15'000};
  Duration renew_deadline{10'000};
  Duration retry_period{2'000};
  bool release_on_cancel = true;
};

Result<void> validate(const LeaseOptions& options);

/// Leader election over one Lease object with the semantics of client-go's leaderelection: the age of a foreign record
/// is counted from the local moment at which its change was observed, so clock skew between machines does not matter
/// (skew of the rate does). There is no fencing: a leader must still guard its writes. Pure: every call takes the time
/// it needs: monotonic for decisions, wall-clock only for what is written into the record.
class LeaseFsm {
 public:
  enum class Verdict {
    follow,   ///< Somebody else holds it. Look again after retry_period.
    acquire,  ///< Write `record_to_write`; report with `on_written`.
  };

  explicit LeaseFsm(LeaseOptions options) : options_(std::move(options)) {}

  /// What a read of the Lease showed; nullopt when it does not exist.
  Verdict on_observed(std::optional<LeaseRecord> record, async::SteadyTime now);

  /// The record that takes or renews the lease.
  LeaseRecord record_to_write(TimePoint wall) const;

  /// The record that gives the lease up, so that others need not wait for its end.
  LeaseRecord record_to_release(TimePoint wall) const;

  /// Our write was accepted.
  void on_written(LeaseRecord record, async::SteadyTime now);

  /// We are the leader: we hold the record and renewed it within renew_deadline.
  bool is_leader(async::SteadyTime now) const;

  /// How long our leadership lasts from `now` without another renewal; nullopt when we are not the leader.
  std::optional<Duration> leading_for(async::SteadyTime now) const;

  /// We were the leader and could not renew within renew_deadline: stop leading now.
  bool lost(async::SteadyTime now) const;

  /// The holder as last observed; empty when unknown or released.
  std::string_view holder() const { return observed_ ? std::string_view(observed_->holder) : std::string_view(); }

  const LeaseOptions& options() const { return options_; }

 private:
  bool held_by_us() const { return observed_ && observed_->holder == options_.identity; }

  LeaseOptions options_;
  std::optional<LeaseRecord> observed_;
  async::SteadyTime observed_at_;
  std::optional<async::SteadyTime> renewed_at_;
};

}  // namespace fabric::controller
