#include <fabric/async/testing.hpp>
#include <fabric/http/client.hpp>
#include <fabric/http/server.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fabric::http {
namespace {

using boost::asio::ip::tcp;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

/// Sends bytes and returns all that comes until the server closes.
async::Task<Result<std::string>> talk(std::uint16_t port, std::string text) {
  tcp::socket socket(co_await boost::asio::this_coro::executor);
  const tcp::endpoint server(boost::asio::ip::address_v4::loopback(), port);
  const auto [refused] = co_await socket.async_connect(server, kAwait);
  if (refused) co_return fail(Errc::unavailable, "{}", refused.message());
  static_cast<void>(co_await boost::asio::async_write(socket, boost::asio::buffer(text), kAwait));
  std::string answer;
  static_cast<void>(co_await boost::asio::async_read(socket, boost::asio::dynamic_buffer(answer), kAwait));
  co_return answer;
}

class HttpServer : public ::testing::Test {
 protected:
  void start(ServerOptions options = {}) {
    health_.set("stores", false, "endpoints not synced");
    auto server = Server::open(loop_.executor(), std::move(options), observability_handlers(metrics_, health_));
    ASSERT_TRUE(server) << server.error().message();
    server_ = std::move(*server);
    loop_.group().spawn("http", server_->run());
  }

  Result<Response> get(const std::string& target) {
    if (!client_) client_ = std::move(*Client::open(loop_.executor(), {}));
    const auto url = Url::parse(fmt::format("http://127.0.0.1:{}{}", server_->port(), target));
    return loop_.run_blocking(client_->send({.method = Method::get, .url = *url}, async::Deadline::after(seconds(20))));
  }

  std::string raw(const std::string& text) { return *loop_.run_blocking(talk(server_->port(), text)); }

  telemetry::Registry metrics_;
  telemetry::Health health_;
  async::TestLoop loop_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpServer, AnswersProbesAndMetrics) {
  metrics_.counter("x_total", "Help.").add();
  start();
  EXPECT_EQ(get("/healthz")->status, 200);
  EXPECT_EQ(get("/readyz")->status, 503);
  EXPECT_EQ(get("/readyz")->body, "stores waiting: endpoints not synced\n");
  health_.set("stores", true);
  EXPECT_EQ(get("/readyz?verbose")->status, 200);
  EXPECT_THAT(get("/metrics")->body, HasSubstr("x_total 1\n"));
  EXPECT_EQ(get("/other")->status, 404);
  EXPECT_EQ(client_->idle_connections(), 1);
}

TEST_F(HttpServer, AnswersHeadWithoutABody) {
  start();
  const auto answer = raw("HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(HttpServer, AnswersPipelinedRequestsInOrder) {
  start();
  const auto answer =
      raw("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
          "GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_LT(answer.find("200 OK"), answer.find("404 Not Found"));
}

struct Odd {
  std::string name;
  std::string text;
  std::string answer;
};

class HttpServerOdd : public HttpServer, public ::testing::WithParamInterface<Odd> {};

TEST_P(HttpServerOdd, IsAnsweredAndClosed) {
  start();
  EXPECT_THAT(raw(GetParam().text), StartsWith(GetParam().answer));
}

INSTANTIATE_TEST_SUITE_P(
    Rows, HttpServerOdd,
    ::testing::Values(Odd{"post", "POST /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                          "HTTP/1.1 405 "},
                      Odd{"body", "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 400 "},
                      Odd{"not_http", "\x16\x03\x01 nonsense\r\n\r\n", "HTTP/1.1 400 "},
                      Odd{"headers_too_large", "GET / HTTP/1.1\r\nA: " + std::string(9000, 'x') + "\r\n\r\n",
                          "HTTP/1.1 400 "}),
    [](const auto& row) { return row.param.name; });

TEST_F(HttpServer, ClosesAConnectionThatIsTooSlow) {
  start({.timeout = Duration(20)});
  EXPECT_EQ(raw("GET /hea"), "");
}

TEST_F(HttpServer, ClosesConnectionsBeyondTheBound) {
  start({.max_connections = 1});
  ASSERT_TRUE(get("/healthz"));
  EXPECT_EQ(raw(""), "") << "the client's idle connection occupies the only place";
  EXPECT_TRUE(get("/healthz"));
}

TEST_F(HttpServer, StopsWithItsGroup) {
  start();
  ASSERT_TRUE(get("/healthz"));
  loop_.group().stop();
  EXPECT_TRUE(loop_.run_blocking(loop_.group().join(seconds(10))));
  EXPECT_TRUE(loop_.group().outcome());
}

TEST_F(HttpServer, APortInUseIsNamed) {
  start();
  const auto second = Server::open(loop_.executor(), {.port = server_->port()}, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().context, HasSubstr(fmt::format("127.0.0.1 port {}", server_->port())));
}

TEST_F(HttpServer, WaitsForAPortThatAnotherSocketHas) {
  const log::Capture captured;
  tcp::acceptor other(loop_.io(), tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  const auto port = other.local_endpoint().port();
  loop_.group().spawn("http", serve_when_free(
                                  loop_.executor(), loop_.clock(), [] { return 0.5; }, {.port = port},
                                  observability_handlers(metrics_, health_)));
  loop_.advance(seconds(3));
  EXPECT_THAT(captured.text(), HasSubstr(fmt::format("binding 127.0.0.1 port {}", port)));
  EXPECT_TRUE(loop_.group().outcome()) << "the program goes on";
  other.close();
  loop_.advance(seconds(20));
  EXPECT_THAT(captured.text(), HasSubstr("is free now"));
  EXPECT_THAT(*loop_.run_blocking(talk(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServer, WaitsForNoAddressThatIsNone) {
  const auto ended =
      loop_.run(serve_when_free(loop_.executor(), loop_.clock(), [] { return 0.5; }, {.address = "localhost"}, {}));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Errc::invalid);
}

TEST_F(HttpServer, AnAddressThatIsNoneIsInvalid) {
  const auto server = Server::open(loop_.executor(), {.address = "localhost"}, {});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, Errc::invalid);
}

}  // namespace
}  // namespace fabric::http
