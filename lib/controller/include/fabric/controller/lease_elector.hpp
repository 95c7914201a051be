#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/event.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/controller/lease_fsm.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/kube/client.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fabric::controller {

/// Runs LeaseFsm on a Lease object of an API server. `run` never gives up: after a loss it competes again; a program
/// that must not lead twice ends itself in `on_change(false)`. Belongs to the io thread.
class LeaseElector {
 public:
  /// Errc::invalid for options that `validate` refuses. The client outlives the elector.
  static Result<std::unique_ptr<LeaseElector>> open(kube::Client& client, kube::ObjectKey lease, LeaseOptions options,
                                                    Runtime runtime);

  /// Called with true when we become the leader, with false when we stop being it (lost, or cancelled).
  void on_change(std::function<void(bool leader)> handler) { handlers_.push_back(std::move(handler)); }

  /// Called when the first try has ended, and whenever the API server ceases or begins again to serve the lease: with
  /// the reason, or with an empty text while it does. One handler.
  void on_served(std::function<void(const std::string& failure)> handler) { served_ = std::move(handler); }

  /// True only while the lease is ours and was renewed within renew_deadline.
  bool is_leader() const { return leading_ && fsm_.is_leader(runtime_.clock.steady()); }

  /// Errc::cancelled.
  async::Task<Result<void>> wait_leading() { return leader_.wait(); }

  /// The identity of the current holder as last seen; empty when unknown.
  std::string holder() const { return std::string(fsm_.holder()); }

  /// How many times the lease was read and, if it was free or ours, written; successfully or not.
  std::uint64_t tries() const { return tries_; }

  /// Until cancelled (Errc::cancelled); then releases the lease when `release_on_cancel`.
  async::Task<Result<void>> run();

 private:
  LeaseElector(kube::Client& client, kube::ObjectKey lease, LeaseOptions options, Runtime runtime);

  async::Task<Result<void>> attempt();
  async::Task<Result<void>> write(LeaseRecord record);
  async::Task<void> release();
  Duration attempt_limit() const;
  Duration pause();
  void note(const Result<void>& tried);
  void update_leading();
  void set_leading(bool leading);

  kube::Client& client_;
  kube::ObjectKey key_;
  Runtime runtime_;
  LeaseFsm fsm_;
  json::Value object_;  ///< The Lease as last read or written; null when it does not exist.
  bool leading_ = false;
  std::optional<bool> failing_;  ///< Once tried.
  std::uint64_t tries_ = 0;
  async::Event leader_;
  std::vector<std::function<void(bool)>> handlers_;
  std::function<void(const std::string&)> served_;
  telemetry::Gauge status_;
};

}  // namespace fabric::controller
