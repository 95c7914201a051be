#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/event.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/controller/queue_state.hpp>
#include <fabric/controller/rate_limiter.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/kube/resource.hpp>

#include <string>

namespace fabric::controller {

/// QueueState with waiting workers, delays and retries. Belongs to the io thread; the destructor may run at any time
/// when no worker waits.
class WorkQueue {
 public:
  /// `name` is the label of the workqueue_* metrics.
  WorkQueue(std::string name, const Runtime& runtime, RateLimiterOptions limits = {});
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  ~WorkQueue() = default;

  void add(const kube::ObjectKey& key);
  void add_after(const kube::ObjectKey& key, Duration delay);
  /// Adds after the key's next backoff, but not before `at_least` has passed.
  void add_rate_limited(const kube::ObjectKey& key, Duration at_least = Duration::zero());

  /// The key succeeded: its backoff starts again.
  void forget(const kube::ObjectKey& key) { limiter_.forget(key); }

  int failures(const kube::ObjectKey& key) const { return limiter_.failures(key); }

  /// The next key; call `done` when the work on it ended. Errc::cancelled when the coroutine is cancelled, or when the
  /// queue is shut down and empty.
  async::Task<Result<kube::ObjectKey>> get();
  void done(const kube::ObjectKey& key);

  /// No new keys; what is queued is still handed out, what is delayed is dropped.
  void shut_down();

  bool is_shut_down() const { return shut_down_; }

  std::size_t depth() const { return state_.depth(); }

  /// Nothing is queued and nothing is worked on. Delayed keys do not count.
  bool idle() const { return state_.idle(); }

 private:
  void arm();
  void refresh();

  async::Clock& clock_;
  QueueState state_;
  RateLimiter limiter_;
  async::Event available_;
  async::Timer timer_;
  bool shut_down_ = false;
  telemetry::Gauge depth_;
  telemetry::Counter adds_;
  telemetry::Counter retries_;
};

}  // namespace fabric::controller
