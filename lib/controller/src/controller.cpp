#include <fabric/controller/controller.hpp>
#include <fabric/kube/status.hpp>
#include <fabric/telemetry/log.hpp>

#include <utility>

namespace fabric::controller {
namespace {

bool worth_retrying(Errc code) {
  switch (code) {
    case Errc::invalid:
    case Errc::unsupported:
      return false;
    case Errc::not_found:
    case Errc::already_exists:
    case Errc::conflict:
    case Errc::gone:
    case Errc::unauthorized:
    case Errc::forbidden:
    case Errc::unavailable:
    case Errc::timeout:
    case Errc::cancelled:
    case Errc::internal:
      return true;
  }
  return true;
}

}  // namespace

Controller::Controller(ControllerOptions options, Reconcile reconcile, const Runtime& runtime)
    : options_(std::move(options)),
      reconcile_(std::move(reconcile)),
      runtime_(runtime),
      queue_(options_.name, runtime, options_.limits) {}

async::Task<Result<void>> Controller::run() {
  while (true) {
    auto key = co_await queue_.get();
    if (!key) {
      if (queue_.is_shut_down() && !co_await async::cancelled()) co_return Result<void>();
      co_return std::unexpected(std::move(key).error());
    }
    const auto outcome = co_await reconcile_(*key);
    // Only our own end drops a key; a reconcile that was cancelled for its own reasons failed like any other.
    if (!co_await async::cancelled()) finish(*key, outcome);
    queue_.done(*key);
  }
}

void Controller::finish(const kube::ObjectKey& key, const Result<RequeueAfter>& outcome) {
  const auto count = [&](const char* result) {
    runtime_.metrics
        .counter("controller_runtime_reconcile_total", "Reconciles by controller and result.",
                 {{"controller", options_.name}, {"result", result}})
        .add();
  };
  if (outcome) {
    queue_.forget(key);
    if (failing_.erase(key) > 0) log::info("reconciled again", {{"controller", options_.name}, {"object", key}});
    count(outcome->delay > Duration::zero() ? "requeue_after" : "success");
    if (outcome->delay > Duration::zero()) queue_.add_after(key, outcome->delay);
    return;
  }
  const Error& error = outcome.error();
  count("error");
  // One line per change of the error, not per retry.
  const std::string message = error.message();
  if (std::exchange(failing_[key], message) != message)
    log::warn("reconcile failed", {{"controller", options_.name}, {"object", key}, {"error", message}});
  if (!worth_retrying(error.code)) return queue_.forget(key);
  queue_.add_rate_limited(key, kube::retry_after(error).value_or(Duration::zero()));
}

}  // namespace fabric::controller
