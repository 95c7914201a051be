#include <fabric/http/fake/scripted_transport.hpp>

#include <utility>

namespace fabric::http::fake {

struct ScriptedStream::State {
  State(async::Executor executor, Response h) : head(std::move(h)), changed(std::move(executor)) {}

  Response head;
  async::Notifier changed;
  std::deque<std::string> chunks;
  std::optional<Error> error;
  bool finished = false;
  bool closed = false;
};

ScriptedStream::ScriptedStream(async::Executor executor, Response head)
    : state_(std::make_shared<State>(std::move(executor), std::move(head))) {}

void ScriptedStream::push(std::string chunk) {
  // An empty chunk would read as the end of the body.
  if (chunk.empty()) return;
  state_->chunks.push_back(std::move(chunk));
  state_->changed.notify();
}

void ScriptedStream::finish() {
  state_->finished = true;
  state_->changed.notify();
}

void ScriptedStream::fail(Error error) {
  state_->error = std::move(error);
  state_->changed.notify();
}

bool ScriptedStream::closed_by_reader() const {
  return state_->closed;
}

class ScriptedBody final : public BodyStream {
 public:
  explicit ScriptedBody(std::shared_ptr<ScriptedStream::State> state) : state_(std::move(state)) {}

  ScriptedBody(const ScriptedBody&) = delete;
  ScriptedBody& operator=(const ScriptedBody&) = delete;

  ~ScriptedBody() override { state_->closed = true; }

  const Response& head() const override { return state_->head; }

  async::Task<Result<std::string>> next(Duration) override {
    const auto state = state_;
    while (state->chunks.empty()) {
      if (state->error) co_return std::unexpected(*state->error);
      if (state->finished) co_return std::string();
      FABRIC_CO_CHECK(co_await state->changed.wait());
    }
    auto chunk = std::move(state->chunks.front());
    state->chunks.pop_front();
    co_return chunk;
  }

 private:
  std::shared_ptr<ScriptedStream::State> state_;
};

ScriptedTransport::ScriptedTransport(async::Executor executor) : executor_(std::move(executor)) {}

void ScriptedTransport::reply(int status, std::string body, Headers headers) {
  replies_.push_back({Response{.status = status, .headers = std::move(headers), .body = std::move(body)}, nullptr});
}

void ScriptedTransport::reply_error(Errc code, std::string context) {
  replies_.push_back({std::unexpected(Error{code, std::move(context), {}}), nullptr});
}

std::shared_ptr<ScriptedStream> ScriptedTransport::reply_stream(Response head) {
  auto stream = std::make_shared<ScriptedStream>(executor_, std::move(head));
  replies_.push_back({Response{}, stream});
  return stream;
}

void ScriptedTransport::on_request(std::function<Result<Response>(const Request&)> answer) {
  answer_ = std::move(answer);
}

async::Task<Result<Response>> ScriptedTransport::send(Request request, async::Deadline) {
  requests_.push_back(request);
  if (co_await async::cancelled()) co_return fabric::fail(Errc::cancelled, "shutting down");
  if (!replies_.empty() && !replies_.front().stream) {
    auto reply = std::move(replies_.front());
    replies_.pop_front();
    co_return std::move(reply.response);
  }
  if (answer_) co_return answer_(request);
  co_return fabric::fail(Errc::unavailable, "{}: the script has no reply", request.url.to_string());
}

async::Task<Result<std::unique_ptr<BodyStream>>> ScriptedTransport::open_stream(Request request, async::Deadline) {
  requests_.push_back(request);
  if (co_await async::cancelled()) co_return fabric::fail(Errc::cancelled, "shutting down");
  if (replies_.empty()) {
    co_return fabric::fail(Errc::unavailable, "{}: the script has no reply", request.url.to_string());
  }
  auto reply = std::move(replies_.front());
  replies_.pop_front();
  if (!reply.response) co_return std::unexpected(std::move(reply.response).error());
  auto stream = reply.stream;
  if (!stream) {
    // A plain reply is a stream with one chunk, such as an error document.
    Response head = *reply.response;
    stream = std::make_shared<ScriptedStream>(executor_,
                                              Response{.status = head.status, .headers = head.headers, .body = {}});
    stream->push(std::move(head.body));
    stream->finish();
  }
  co_return std::make_unique<ScriptedBody>(stream->state_);
}

}  // namespace fabric::http::fake
