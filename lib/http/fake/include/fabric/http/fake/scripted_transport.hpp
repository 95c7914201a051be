#pragma once

#include <fabric/async/event.hpp>
#include <fabric/http/transport.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fabric::http::fake {

/// The other end of a fake stream. Chunks that are pushed before the reader asks wait for it.
class ScriptedStream {
 public:
  explicit ScriptedStream(async::Executor executor, Response head = {.status = 200});

  void push(std::string chunk);
  /// The clean end of the body.
  void finish();
  /// A broken connection.
  void fail(Error error);
  /// Whether the reader destroyed its end.
  bool closed_by_reader() const;

 private:
  friend class ScriptedTransport;
  friend class ScriptedBody;
  struct State;
  std::shared_ptr<State> state_;
};

/// A Transport for tests that answers from a script, in order, and records what was sent. A request beyond the script
/// gets Errc::unavailable. `on_request` instead of a script gives a stateful fake.
class ScriptedTransport final : public Transport {
 public:
  explicit ScriptedTransport(async::Executor executor);

  void reply(int status, std::string body = {}, Headers headers = {});
  void reply_error(Errc code, std::string context);
  /// The next open_stream gets this stream; push to it at any time.
  std::shared_ptr<ScriptedStream> reply_stream(Response head = {.status = 200});
  /// Answers every send() that the script does not.
  void on_request(std::function<Result<Response>(const Request&)> answer);

  const std::vector<Request>& requests() const { return requests_; }

  /// Replies that were not asked for.
  std::size_t remaining() const { return replies_.size(); }

  async::Task<Result<Response>> send(Request request, async::Deadline deadline) override;
  async::Task<Result<std::unique_ptr<BodyStream>>> open_stream(Request request, async::Deadline deadline) override;

 private:
  struct Reply {
    Result<Response> response;
    std::shared_ptr<ScriptedStream> stream;
  };

  async::Executor executor_;
  std::deque<Reply> replies_;
  std::vector<Request> requests_;
  std::function<Result<Response>(const Request&)> answer_;
};

}  // namespace fabric::http::fake
