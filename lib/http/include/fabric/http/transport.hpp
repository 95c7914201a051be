#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/http/message.hpp>

#include <memory>
#include <string>

namespace fabric::http {

/// A response whose body arrives over time (a watch). Closes its connection when destroyed, so a reader leaves at any
/// time. Belongs to the io thread.
class BodyStream {
 public:
  virtual ~BodyStream() = default;

  /// Status and headers; the body is empty. A status other than 2xx is a stream too: its chunks are the error document.
  virtual const Response& head() const = 0;

  /// The next decoded bytes (any boundaries); an empty string is the clean end of the body, again and again.
  /// Errc::timeout when nothing arrives for `idle_timeout` (the stream is closed then), Errc::unavailable when the
  /// connection breaks before the end of the body, Errc::cancelled.
  virtual async::Task<Result<std::string>> next(Duration idle_timeout) = 0;
};

/// How requests leave the process. Errors are about the exchange and name the peer; an HTTP status of any kind is a
/// success here. Errc::unavailable: not reachable, refused, connection cut. Errc::timeout: the deadline passed.
/// Errc::unauthorized: the peer's certificate is not accepted, or it does not accept ours. Errc::invalid: the request
/// cannot be sent, or the answer is not HTTP or is larger than the limit. Errc::cancelled. Belongs to the io thread;
/// outlives the tasks and streams that it returned.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual async::Task<Result<Response>> send(Request request, async::Deadline deadline) = 0;
  /// Returns when the head of the response has arrived; the deadline is for that.
  virtual async::Task<Result<std::unique_ptr<BodyStream>>> open_stream(Request request, async::Deadline deadline) = 0;
};

}  // namespace fabric::http
