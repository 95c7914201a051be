#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>

#include <boost/asio/io_context.hpp>

#include <memory>
#include <string>
#include <vector>

namespace fabric::async {

/// Owns the coroutines of a process (or of one component): nothing else spawns. Belongs to one io thread. A root that
/// ends with an error or an exception is logged with its name and stops the whole group; one that ends without an error
/// is just done. The destructor stops what still runs; whatever the roots refer to has to outlive the io_context's run.
class TaskGroup {
 public:
  explicit TaskGroup(Executor executor);
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;
  ~TaskGroup();

  /// Starts a root at the next turn of the loop. After stop() a new root is started cancelled. Names appear in logs and
  /// need not be unique.
  void spawn(std::string name, Task<Result<void>> root);
  void spawn(std::string name, Task<void> root);

  /// Cancels all roots; idempotent.
  void stop();
  bool stopping() const;
  /// Roots that have not ended.
  std::vector<std::string> running() const;
  /// The error that stopped the group, of the first root that failed.
  Result<void> outcome() const;

  /// Waits until no root runs (it does not stop them). Errc::timeout names those that still run.
  Task<Result<void>> join(Duration limit);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Runs a program's loop on the calling thread until every root of the group has ended. SIGTERM and SIGINT stop the
/// group; roots that have not ended `grace` after a stop are named in a log line and abandoned. Returns the error that
/// stopped the group, if any.
Result<void> run_until_stopped(boost::asio::io_context& io, TaskGroup& group, Duration grace);

}  // namespace fabric::async
