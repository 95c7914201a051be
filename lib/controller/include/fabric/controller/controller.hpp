#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/controller/work_queue.hpp>
#include <fabric/kube/resource.hpp>

#include <functional>
#include <map>
#include <string>

namespace fabric::controller {

/// What a successful reconcile asks for: to be called again after this time, or not (zero).
struct RequeueAfter {
  Duration delay{0};
};

/// Makes the world match what the key's object says now. Level-based: it may be called any number of times.
using Reconcile = std::function<async::Task<Result<RequeueAfter>>(kube::ObjectKey)>;

struct ControllerOptions {
  std::string name;  ///< For logs and metrics.
  RateLimiterOptions limits;
};

/// A queue and the loop that empties it. Success forgets the key's backoff; an error puts the key back with a growing
/// delay (at least what the API server asked for); Errc::invalid and
/// Errc::unsupported are not retried until something adds the key again. Start it after the stores have synced.
class Controller {
 public:
  Controller(ControllerOptions options, Reconcile reconcile, const Runtime& runtime);

  WorkQueue& queue() { return queue_; }

  /// One worker, until cancelled or until the queue is shut down and empty (then success). Spawn it several times for
  /// several workers.
  async::Task<Result<void>> run();

 private:
  void finish(const kube::ObjectKey& key, const Result<RequeueAfter>& outcome);

  ControllerOptions options_;
  Reconcile reconcile_;
  Runtime runtime_;
  WorkQueue queue_;
  std::map<kube::ObjectKey, std::string> failing_;  ///< The last error of each key.
};

}  // namespace fabric::controller
