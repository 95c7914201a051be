#include <fabric/async/event.hpp>
#include <fabric/async/testing.hpp>
#include <fabric/async/timeout.hpp>
#include <fabric/http/client.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "raw_server.hpp"

namespace fabric::http {
namespace {

using std::chrono::seconds;
using test::Peer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using PeerPtr = std::shared_ptr<Peer>;
constexpr auto kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async::Task<void> serve_ok(PeerPtr peer, int) {
  while (!(co_await peer->request()).empty())
    co_await peer->write(kOk);
}

/// Answers one request with `text` and closes.
test::RawServer::Script answer_with(std::string text) {
  return [text = std::move(text)](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->write(text);
    co_await peer->close();
  };
}

class HttpClient : public ::testing::Test {
 protected:
  void serve(test::RawServer::Script script) { server_.emplace(loop_.io(), std::move(script)); }

  void open(ClientOptions options = {}) {
    auto client = Client::open(loop_.executor(), std::move(options));
    ASSERT_TRUE(client);
    client_ = std::move(*client);
  }

  Request request(Method method = Method::get, const std::string& target = "/") const {
    return {.method = method, .url = *Url::parse(fmt::format("http://127.0.0.1:{}{}", server_->port(), target))};
  }

  Result<Response> send(Request what, async::Deadline deadline = async::Deadline::after(seconds(20))) {
    if (!client_) open();
    return loop_.run_blocking(client_->send(std::move(what), deadline));
  }

  Result<std::unique_ptr<BodyStream>> open_stream() {
    if (!client_) open();
    return loop_.run_blocking(client_->open_stream(request(), async::Deadline::after(seconds(20))));
  }

  async::TestLoop loop_;
  std::optional<test::RawServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpClient, SendsWhatWasAskedFor) {
  std::string seen;
  serve([&seen](PeerPtr peer, int) -> async::Task<void> {
    seen = co_await peer->request();
    co_await peer->write(kOk);
  });
  auto what = request(Method::patch, "/api/v1?x=%20");
  what.headers = {{"Content-Type", "application/json"}};
  what.body = "{}";
  what.bearer = std::make_shared<const Secret>(Secret::from_text("t0ken"));
  ASSERT_TRUE(send(what));
  EXPECT_EQ(seen, fmt::format("PATCH /api/v1?x=%20 HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nUser-Agent: fabric\r\n"
                              "Content-Type: application/json\r\nContent-Length: 2\r\n"
                              "Authorization: Bearer t0ken\r\n\r\n{{}}",
                              server_->port()));
}

TEST_F(HttpClient, ReturnsStatusHeadersAndBody) {
  serve(answer_with("HTTP/1.1 409 Conflict\r\nRetry-After: 3\r\nContent-Length: 3\r\n\r\nno!"));
  const auto answer = send(request());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 409);
  EXPECT_EQ(find_header(answer->headers, "retry-after"), "3");
  EXPECT_EQ(answer->body, "no!");
}

TEST_F(HttpClient, ReusesAConnection) {
  serve(serve_ok);
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(send(request()));
  EXPECT_EQ(server_->connections(), 1);
  EXPECT_EQ(client_->idle_connections(), 1);
}

TEST_F(HttpClient, DoesNotReuseAConnectionThatTheServerWantsClosed) {
  serve([](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->write("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(client_->idle_connections(), 0);
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(HttpClient, DoesNotReuseAConnectionThatWasIdleForTooLong) {
  serve(serve_ok);
  open({.idle_timeout = Duration(0)});
  ASSERT_TRUE(send(request()));
  ASSERT_TRUE(send(request()));
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(HttpClient, KeepsNoMoreIdleConnectionsThanAllowed) {
  serve(serve_ok);
  open({.max_idle_per_origin = 1});
  std::optional<Result<Response>> first;
  std::optional<Result<Response>> second;
  loop_.start(client_->send(request(), async::Deadline::after(seconds(20))), first);
  loop_.start(client_->send(request(), async::Deadline::after(seconds(20))), second);
  while (!first || !second)
    loop_.io().run_one();
  EXPECT_EQ(server_->connections(), 2);
  EXPECT_EQ(client_->idle_connections(), 1);
}

TEST_F(HttpClient, NoticesThatTheServerClosedAnIdleConnectionEvenForAPost) {
  serve([](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->write(kOk);
    co_await peer->close();
  });
  ASSERT_TRUE(send(request(Method::post)));
  ASSERT_TRUE(send(request(Method::post)));
  EXPECT_EQ(server_->connections(), 2);
}

/// Closes the first connection upon its second request, as a server does whose idle limit passes just then.
test::RawServer::Script close_at_second_request() {
  return [](PeerPtr peer, int number) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->write(kOk);
    static_cast<void>(co_await peer->request());
    if (number == 0) co_return co_await peer->close();
    co_await peer->write(kOk);
  };
}

TEST_F(HttpClient, RetriesAGetWhosePooledConnectionCloses) {
  serve(close_at_second_request());
  ASSERT_TRUE(send(request()));
  const auto second = send(request());
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(HttpClient, DoesNotRetryAPostWhosePooledConnectionCloses) {
  serve(close_at_second_request());
  ASSERT_TRUE(send(request(Method::post)));
  const auto second = send(request(Method::post));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::unavailable);
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(HttpClient, DoesNotRetryOnAFreshConnection) {
  serve([](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->close();
  });
  const auto answer = send(request());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(HttpClient, DecodesAChunkedBodyThatArrivesByteByByte) {
  serve([](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    for (const char c : std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "3;ext=1\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n")) {
      co_await peer->write(std::string(1, c));
    }
  });
  const auto answer = send(request());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->body, "abc0123456789abcdef");
  EXPECT_EQ(client_->idle_connections(), 1);
}

TEST_F(HttpClient, SkipsInterimResponses) {
  serve(answer_with(fmt::format("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n{}", kOk)));
  const auto answer = send(request());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "ok");
}

TEST_F(HttpClient, AHeadRequestHasNoBody) {
  serve(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"));
  const auto answer = send(request(Method::head));
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->body, "");
}

TEST_F(HttpClient, ReadsABodyThatEndsWithTheConnection) {
  serve(answer_with("HTTP/1.0 200 OK\r\n\r\nall of it"));
  const auto answer = send(request());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->body, "all of it");
  EXPECT_EQ(client_->idle_connections(), 0);
}

struct BadAnswer {
  std::string name;
  std::string text;
  Errc code;
  std::string reason;
};

class HttpClientBadAnswer : public HttpClient, public ::testing::WithParamInterface<BadAnswer> {};

TEST_P(HttpClientBadAnswer, IsAnErrorThatNamesThePeer) {
  serve(answer_with(GetParam().text));
  open({.max_body_bytes = 100, .max_header_bytes = 1000});
  const auto answer = send(request());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, GetParam().code) << answer.error().message();
  EXPECT_THAT(answer.error().context, HasSubstr(GetParam().reason));
  EXPECT_THAT(answer.error().context, HasSubstr(fmt::format("http://127.0.0.1:{}: ", server_->port())));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, HttpClientBadAnswer,
    ::testing::Values(
        BadAnswer{"cut_in_the_head", "HTTP/1.1 200 O", Errc::unavailable, "before the end"},
        BadAnswer{"cut_in_the_body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Errc::unavailable,
                  "before the end"},
        BadAnswer{"cut_in_a_chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", Errc::unavailable,
                  "before the end"},
        BadAnswer{"announced_too_large", "HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", Errc::invalid, "limit"},
        BadAnswer{"chunks_too_large",
                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(0x65, 'x') + "\r\n",
                  Errc::invalid, "limit"},
        BadAnswer{"endless_body", "HTTP/1.0 200 OK\r\n\r\n" + std::string(500, 'x'), Errc::invalid, "limit"},
        BadAnswer{"headers_too_large", "HTTP/1.1 200 OK\r\nA: " + std::string(2000, 'x') + "\r\n\r\n", Errc::invalid,
                  "headers exceed the limit"},
        BadAnswer{"not_http", "SSH-2.0-OpenSSH_9.2\r\n\r\n", Errc::invalid, "not HTTP"},
        BadAnswer{"nonsense_chunk_size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Errc::invalid,
                  "not HTTP"}),
    [](const auto& row) { return row.param.name; });

TEST_F(HttpClient, AServerThatDoesNotAnswerIsATimeout) {
  serve([](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    static_cast<void>(co_await peer->closed_by_client());
  });
  const auto answer = send(request(), async::Deadline::after(Duration(50)));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::timeout);
  EXPECT_EQ(client_->idle_connections(), 0);
}

TEST_F(HttpClient, APortWithoutAServerIsUnavailable) {
  serve(serve_ok);
  const auto what = request();
  server_.reset();
  const auto answer = send(what);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::unavailable);
  EXPECT_THAT(answer.error().context, HasSubstr("Connection refused"));
}

TEST_F(HttpClient, IsCancelledWithItsTask) {
  bool closed = false;
  serve([&closed](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    closed = co_await peer->closed_by_client();
  });
  open();
  std::optional<Result<Response>> answer;
  const auto root = [](Client& c, Request r, std::optional<Result<Response>>& a) -> async::Task<void> {
    a.emplace(co_await c.send(std::move(r), async::Deadline::never()));
  };
  loop_.group().spawn("sender", root(*client_, request(), answer));
  while (server_->connections() == 0)
    loop_.io().run_one();
  loop_.group().stop();
  while (!closed)
    loop_.io().run_one();
  ASSERT_TRUE(answer);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().code, Errc::cancelled);
}

struct BadRequest {
  std::string name;
  std::function<void(Request&)> spoil;
};

class HttpClientBadRequest : public HttpClient, public ::testing::WithParamInterface<BadRequest> {};

TEST_P(HttpClientBadRequest, IsRefusedBeforeAnythingIsSent) {
  serve(serve_ok);
  auto what = request();
  GetParam().spoil(what);
  const auto answer = send(what);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::invalid);
  EXPECT_THAT(answer.error().context, Not(HasSubstr("s3cret")));
  EXPECT_EQ(server_->connections(), 0);
}

std::shared_ptr<const Secret> secret(std::string_view text) {
  return std::make_shared<const Secret>(Secret::from_text(text));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, HttpClientBadRequest,
    ::testing::Values(BadRequest{"target_with_a_space", [](Request& r) { r.url.target = "/a b"; }},
                      BadRequest{"target_with_a_line_break", [](Request& r) { r.url.target = "/\r\nX: y"; }},
                      BadRequest{"target_without_a_slash", [](Request& r) { r.url.target = "a"; }},
                      BadRequest{"header_value_with_a_line_break",
                                 [](Request& r) { r.headers = {{"A", "b\r\nC: d"}}; }},
                      BadRequest{"header_name_with_a_colon", [](Request& r) { r.headers = {{"A:", "b"}}; }},
                      BadRequest{"token_with_a_line_break", [](Request& r) { r.bearer = secret("s3cret\n"); }},
                      BadRequest{"empty_token", [](Request& r) { r.bearer = secret(""); }},
                      BadRequest{"token_over_plain_http",
                                 [](Request& r) {
                                   r.url.host = "192.0.2.1";
                                   r.bearer = secret("s3cret");
                                 }}),
    [](const auto& row) { return row.param.name; });

TEST_F(HttpClient, AStreamYieldsChunksAsTheyComeAndThenItsEnd) {
  async::Notifier more(loop_.executor());
  serve([&more](PeerPtr peer, int) -> async::Task<void> {
    static_cast<void>(co_await peer->request());
    co_await peer->write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    static_cast<void>(co_await more.wait());
    co_await peer->write("6\r\nsecond\r\n0\r\n\r\n");
  });
  auto stream = open_stream();
  ASSERT_TRUE(stream);
  EXPECT_EQ((*stream)->head().status, 200);
  EXPECT_EQ(*loop_.run_blocking((*stream)->next(seconds(20))), "first");
  more.notify();
  std::string rest;
  while (true) {
    const auto chunk = loop_.run_blocking((*stream)->next(seconds(20)));
    ASSERT_TRUE(chunk);
    if (chunk->empty()) break;
    rest += *chunk;
  }
  EXPECT_EQ(rest, "second");
  EXPECT_EQ(*loop_.run_blocking((*stream)->next(seconds(20))), "") << "the end, again";
}

TEST_F(HttpClient, AStreamIsNotLimitedInSize) {
  serve(answer_with("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + std::string(500, 'x')));
  open({.max_body_bytes = 100});
  auto stream = open_stream();
  ASSERT_TRUE(stream);
  std::string all;
  while (true) {
    const auto chunk = loop_.run_blocking((*stream)->next(seconds(20)));
    ASSERT_TRUE(chunk) << chunk.error().message();
    if (chunk->empty()) break;
    all += *chunk;
  }
  EXPECT_EQ(all, std::string(500, 'x'));
}

TEST_F(HttpClient, AStreamThatIsCutIsUnavailable) {
  serve(answer_with("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"));
  auto stream = open_stream();
  ASSERT_TRUE(stream);
  EXPECT_EQ(*loop_.run_blocking((*stream)->next(seconds(20))), "first");
  for (int i = 0; i < 2; ++i) {
    const auto cut = loop_.run_blocking((*stream)->next(seconds(20)));
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Errc::unavailable);
  }
}

async::Task<void> open_a_watch_and_wait(PeerPtr peer, bool& closed) {
  static_cast<void>(co_await peer->request());
  co_await peer->write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  closed = co_await peer->closed_by_client();
}

TEST_F(HttpClient, ASilentStreamTimesOutAndIsClosed) {
  bool closed = false;
  serve([&closed](PeerPtr peer, int) { return open_a_watch_and_wait(std::move(peer), closed); });
  auto stream = open_stream();
  ASSERT_TRUE(stream);
  const auto chunk = loop_.run_blocking((*stream)->next(Duration(20)));
  ASSERT_FALSE(chunk);
  EXPECT_EQ(chunk.error().code, Errc::timeout);
  while (!closed)
    loop_.io().run_one();
}

TEST_F(HttpClient, AStreamClosesItsConnectionWhenItIsDestroyed) {
  bool closed = false;
  serve([&closed](PeerPtr peer, int) { return open_a_watch_and_wait(std::move(peer), closed); });
  {
    auto stream = open_stream();
    ASSERT_TRUE(stream);
  }
  while (!closed)
    loop_.io().run_one();
  EXPECT_EQ(client_->idle_connections(), 0);
}

TEST_F(HttpClient, AStreamIsCancelledWhileItWaits) {
  bool closed = false;
  serve([&closed](PeerPtr peer, int) { return open_a_watch_and_wait(std::move(peer), closed); });
  open();
  bool waiting = false;
  std::optional<Result<std::string>> chunk;
  const auto reader = [](Client& c, Request r, bool& w, std::optional<Result<std::string>>& out) -> async::Task<void> {
    auto stream = co_await c.open_stream(std::move(r), async::Deadline::after(seconds(20)));
    w = stream.has_value();
    if (stream) out.emplace(co_await (*stream)->next(seconds(20)));
  };
  loop_.group().spawn("watch", reader(*client_, request(), waiting, chunk));
  while (!waiting)
    loop_.io().run_one();
  loop_.settle();
  loop_.group().stop();
  while (!closed)
    loop_.io().run_one();
  ASSERT_TRUE(chunk);
  ASSERT_FALSE(*chunk);
  EXPECT_EQ(chunk->error().code, Errc::cancelled);
}

TEST_F(HttpClient, AnErrorStatusOfAStreamCarriesItsDocument) {
  serve(answer_with("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\n{\"\"}"));
  auto stream = open_stream();
  ASSERT_TRUE(stream);
  EXPECT_EQ((*stream)->head().status, 410);
  EXPECT_EQ(*loop_.run_blocking((*stream)->next(seconds(20))), "{\"\"}");
}

}  // namespace
}  // namespace fabric::http
