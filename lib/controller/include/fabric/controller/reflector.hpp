#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/controller/list_watch.hpp>
#include <fabric/controller/runtime.hpp>
#include <fabric/controller/watcher_fsm.hpp>
#include <fabric/json/value.hpp>
#include <fabric/kube/resource.hpp>
#include <fabric/kube/watch.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::controller {

/// Where a reflector puts what it sees. Store is one.
class Sink {
 public:
  virtual ~Sink() = default;
  /// The whole collection, as one list saw it.
  virtual void replace(std::vector<json::Value> items) = 0;
  /// One change: added, modified or deleted.
  virtual void change(const kube::WatchEvent& event) = 0;
};

/// Keeps a Sink equal to a collection of the API server by running WatcherFsm over a ListWatch. Logs each change
/// between reachable and not reachable once.
class Reflector {
 public:
  /// `name` is for logs and metrics, e.g. "endpoints". The sink outlives the reflector.
  Reflector(std::string name, std::unique_ptr<ListWatch> source, Sink& sink, Runtime runtime);

  /// Until cancelled (Errc::cancelled); every other error is retried for ever. Runs once.
  async::Task<Result<void>> run();

 private:
  async::Task<Result<void>> step();
  async::Task<Result<void>> list(WatcherFsm::ListPage page);
  async::Task<Result<void>> open(WatcherFsm::StartWatch start);
  async::Task<Result<void>> read();
  void note_failure(std::string_view verb, const Error& error);
  void note_success();

  std::string name_;
  std::unique_ptr<ListWatch> source_;
  Sink& sink_;
  Runtime runtime_;
  WatcherFsm fsm_;
  std::unique_ptr<kube::WatchStream> stream_;
  bool healthy_ = true;
};

/// For Store: one log line per object that does not fit its type.
void log_unreadable(const kube::ObjectKey& key, const Error& error);

}  // namespace fabric::controller
