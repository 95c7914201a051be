#include <fabric/controller/lease_fsm.hpp>
#include <fabric/json/time.hpp>

namespace fabric::controller {
namespace {

int whole_seconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Result<void> validate(const LeaseOptions& options) {
  constexpr double kJitterFactor = 1.2;  // client-go's JitterFactor
  if (options.identity.empty()) return fail(Errc::invalid, "lease identity is empty");
  if (options.retry_period <= Duration::zero())
    return fail(Errc::invalid, "lease retry period {} ms: expected more than 0", options.retry_period.count());
  if (options.lease_duration <= options.renew_deadline)
    return fail(Errc::invalid, "lease duration {} ms: expected more than the renew deadline {} ms",
                options.lease_duration.count(), options.renew_deadline.count());
  if (static_cast<double>(options.renew_deadline.count()) <=
      kJitterFactor * static_cast<double>(options.retry_period.count()))
    return fail(Errc::invalid, "lease renew deadline {} ms: expected more than 1.2 x the retry period {} ms",
                options.renew_deadline.count(), options.retry_period.count());
  return {};
}

LeaseFsm::Verdict LeaseFsm::on_observed(std::optional<LeaseRecord> record, async::SteadyTime now) {
  if (record != observed_) {
    observed_ = std::move(record);
    observed_at_ = now;
    if (!held_by_us()) renewed_at_.reset();
  }
  if (!observed_ || observed_->holder.empty() || held_by_us()) return Verdict::acquire;
  // The holder's own duration counts: it may run with other options than we do.
  const auto foreign_duration = std::chrono::seconds(observed_->duration_seconds);
  return now >= observed_at_ + foreign_duration ? Verdict::acquire : Verdict::follow;
}

LeaseRecord LeaseFsm::record_to_write(TimePoint wall) const {
  LeaseRecord record{options_.identity, whole_seconds(options_.lease_duration), json::format_micro_time(wall),
                     json::format_micro_time(wall), 0};
  if (!observed_) return record;
  record.transitions = observed_->transitions;
  if (held_by_us())
    record.acquire_time = observed_->acquire_time;
  else
    ++record.transitions;
  return record;
}

LeaseRecord LeaseFsm::record_to_release(TimePoint wall) const {
  // client-go writes a duration of one second, because the API refuses zero.
  return LeaseRecord{"", 1, json::format_micro_time(wall), json::format_micro_time(wall),
                     observed_ ? observed_->transitions : 0};
}

void LeaseFsm::on_written(LeaseRecord record, async::SteadyTime now) {
  observed_ = std::move(record);
  observed_at_ = now;
  if (held_by_us())
    renewed_at_ = now;
  else
    renewed_at_.reset();
}

bool LeaseFsm::is_leader(async::SteadyTime now) const {
  return held_by_us() && renewed_at_ && now < *renewed_at_ + options_.renew_deadline;
}

std::optional<Duration> LeaseFsm::leading_for(async::SteadyTime now) const {
  if (!is_leader(now)) return std::nullopt;
  return std::chrono::ceil<Duration>(*renewed_at_ + options_.renew_deadline - now);
}

bool LeaseFsm::lost(async::SteadyTime now) const {
  return renewed_at_ && now >= *renewed_at_ + options_.renew_deadline;
}

}  // namespace fabric::controller
