#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::kube {

enum class WatchType { added, modified, deleted, bookmark };

std::string_view to_string(WatchType type);

/// One change. A bookmark carries only metadata.resourceVersion. The ERROR event of the API server is not a WatchEvent:
/// it is the Error of the read (Errc::gone for 410).
struct WatchEvent {
  WatchType type = WatchType::added;
  json::Value object;
};

/// An open watch. Closes its connection when destroyed. The client outlives it.
class WatchStream {
 public:
  virtual ~WatchStream() = default;

  /// The events that arrived next, at least one. An empty vector: the server ended the watch in order. Errors: gone
  /// (list again), unavailable, timeout, invalid, cancelled. After an error the stream is of no more use. The events
  /// that came before an error are delivered first.
  virtual async::Task<Result<std::vector<WatchEvent>>> read() = 0;
};

/// Cuts a watch response into its newline-separated JSON documents, from chunks of any size. Pure.
class WatchDecoder {
 public:
  /// An API object is at most 1.5 MiB in etcd; managedFields and JSON escapes make it larger on the wire.
  static constexpr std::size_t kMaxFrame = std::size_t{8} << 20U;

  explicit WatchDecoder(std::size_t max_frame = kMaxFrame) : max_frame_(max_frame) {}

  /// Appends the events that `chunk` completes to `out`. On an error (ERROR event, bad JSON, a frame above the limit)
  /// the events before it are in `out` and the stream cannot be used any more.
  Result<void> feed(std::string_view chunk, std::vector<WatchEvent>& out);

  /// Whether the stream ended between two documents.
  bool at_boundary() const { return pending_.empty(); }

 private:
  Result<void> finish_frame(std::string_view frame, std::vector<WatchEvent>& out) const;

  std::size_t max_frame_;
  std::string pending_;
};

/// Reads one document of a watch stream. Errc::gone and others for an ERROR event, Errc::invalid for anything unknown.
Result<WatchEvent> decode_watch_event(std::string_view frame);

}  // namespace fabric::kube
