#include <fabric/api/lease.hpp>
#include <fabric/async/timeout.hpp>
#include <fabric/controller/lease_elector.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace fabric::controller {
namespace {

// client-go's JitterFactor: the pause between tries is retry_period .. 1.2 x retry_period.
constexpr double kJitter = 0.2;

LeaseRecord record_of(const api::Lease& lease) {
  const auto text = [](const std::optional<json::MicroTime>& time) {
    return time ? json::format_micro_time(*time) : std::string();
  };
  return LeaseRecord{lease.spec.holder_identity, lease.spec.lease_duration_seconds.value_or(0),
                     text(lease.spec.acquire_time), text(lease.spec.renew_time),
                     lease.spec.lease_transitions.value_or(0)};
}

json::Value spec_of(const LeaseRecord& record) {
  return json::Object{{"holderIdentity", record.holder.empty() ? json::Value() : json::Value(record.holder)},
                      {"leaseDurationSeconds", record.duration_seconds},
                      {"acquireTime", record.acquire_time},
                      {"renewTime", record.renew_time},
                      {"leaseTransitions", record.transitions}};
}

Result<LeaseRecord> parse(const json::Value& object) {
  FABRIC_TRY(const api::Lease lease, api::from_object<api::Lease>(object));
  return record_of(lease);
}

}  // namespace

Result<std::unique_ptr<LeaseElector>> LeaseElector::open(kube::Client& client, kube::ObjectKey lease,
                                                         LeaseOptions options, Runtime runtime) {
  FABRIC_CHECK(validate(options).with("Lease " + lease.text()));
  return std::unique_ptr<LeaseElector>(
      new LeaseElector(client, std::move(lease), std::move(options), std::move(runtime)));
}

LeaseElector::LeaseElector(kube::Client& client, kube::ObjectKey lease, LeaseOptions options, Runtime runtime)
    : client_(client),
      key_(std::move(lease)),
      runtime_(std::move(runtime)),
      fsm_(std::move(options)),
      leader_(runtime_.executor),
      status_(runtime_.metrics.gauge("leader_election_master_status", "1 while this process holds the lease.",
                                     {{"name", key_.name}})) {}

async::Task<Result<void>> LeaseElector::run() {
  while (true) {
    auto tried = co_await async::with_timeout(attempt(), runtime_.clock, attempt_limit());
    ++tries_;
    update_leading();
    note(tried);
    const auto slept = co_await async::sleep_for(runtime_.clock, pause());
    update_leading();
    if (slept) continue;
    co_await release();
    co_return slept;
  }
}

// Of failures in a row the first one is told: a process that never becomes the leader would be silent otherwise.
void LeaseElector::note(const Result<void>& tried) {
  if (!tried && tried.error().code == Errc::cancelled) return;
  // With a conflict somebody else was quicker.
  const bool failing = !tried && tried.error().code != Errc::conflict;
  const auto before = std::exchange(failing_, failing);
  if (failing) {
    log::write(before != true ? log::Level::warn : log::Level::debug, "lease not renewed",
               {{"lease", key_}, {"error", tried.error()}});
  } else if (before == true) {
    log::info("the lease can be read and written again", {{"lease", key_}});
  }
  if (before != failing && served_) served_(failing ? tried.error().message() : std::string());
}

// A try that hangs must not keep a leader from noticing that its time is over.
Duration LeaseElector::attempt_limit() const {
  return fsm_.leading_for(runtime_.clock.steady()).value_or(fsm_.options().renew_deadline);
}

async::Task<Result<void>> LeaseElector::attempt() {
  auto read = co_await client_.get(kube::resource_of<api::Lease>(), key_);
  std::optional<LeaseRecord> observed;
  if (read) {
    object_ = *std::move(read);
    FABRIC_CO_TRY(observed, parse(object_));
  } else {
    if (read.error().code != Errc::not_found) co_return std::unexpected(std::move(read).error());
    object_ = json::Value();
  }
  if (fsm_.on_observed(std::move(observed), runtime_.clock.steady()) == LeaseFsm::Verdict::follow)
    co_return Result<void>();
  co_return co_await write(fsm_.record_to_write(runtime_.clock.now()));
}

async::Task<Result<void>> LeaseElector::write(LeaseRecord record) {
  json::Value object = object_;
  const bool exists = !object.is_null();
  if (!exists) object = json::Object{{"metadata", json::Object{{"name", key_.name}, {"namespace", key_.ns}}}};
  object["spec"] = spec_of(record);
  // The time counts from before the request: the server may have stored the record long before its answer arrives.
  const async::SteadyTime sent = runtime_.clock.steady();
  auto written = exists ? co_await client_.update(kube::resource_of<api::Lease>(), std::move(object))
                        : co_await client_.create(kube::resource_of<api::Lease>(), std::move(object));
  if (!written) co_return std::unexpected(std::move(written).error());
  object_ = *std::move(written);
  FABRIC_CO_TRY(LeaseRecord stored, parse(object_));
  fsm_.on_written(std::move(stored), sent);
  co_return Result<void>();
}

async::Task<void> LeaseElector::release() {
  // We are being cancelled, and one last request is still to be made.
  co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
  const bool ours = leading_;
  set_leading(false);
  if (!ours || !fsm_.options().release_on_cancel) co_return;
  const auto released = co_await async::with_timeout(write(fsm_.record_to_release(runtime_.clock.now())),
                                                     runtime_.clock, fsm_.options().retry_period);
  if (!released) log::warn("lease not released", {{"lease", key_}, {"error", released.error()}});
}

Duration LeaseElector::pause() {
  const auto base = static_cast<double>(fsm_.options().retry_period.count());
  const auto jittered = Duration(static_cast<Duration::rep>(base * (1.0 + kJitter * runtime_.random())));
  // A leader wakes up in time to notice that its leadership is over.
  return std::min(jittered, fsm_.leading_for(runtime_.clock.steady()).value_or(jittered));
}

void LeaseElector::update_leading() {
  set_leading(fsm_.is_leader(runtime_.clock.steady()));
}

void LeaseElector::set_leading(bool leading) {
  if (std::exchange(leading_, leading) == leading) return;
  if (leading)
    leader_.set();
  else
    leader_.clear();
  status_.set(leading ? 1 : 0);
  log::info("leadership changed", {{"lease", key_}, {"leader", leading}, {"holder", holder()}});
  for (const auto& handler : handlers_)
    handler(leading);
}

}  // namespace fabric::controller
