#include <fabric/async/backoff.hpp>
#include <fabric/async/task_group.hpp>
#include <fabric/async/timeout.hpp>
#include <fabric/http/server.hpp>
#include <fabric/telemetry/log.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>

#include <array>
#include <utility>

namespace fabric::http {

namespace {

using boost::asio::ip::tcp;
namespace beast = boost::beast;
using RequestParser = beast::http::request_parser<beast::http::empty_body>;
constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

std::string_view reason(int status) {
  return beast::http::obsolete_reason(static_cast<beast::http::status>(status));
}

std::string encode(const Response& response, bool with_body, bool keep_alive) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nContent-Length: {}\r\nConnection: {}\r\n", response.status,
                                 reason(response.status), response.body.size(), keep_alive ? "keep-alive" : "close");
  for (const auto& header : response.headers)
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  text += "\r\n";
  if (with_body) text += response.body;
  return text;
}

Response plain(int status, std::string body) {
  return {.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::move(body)};
}

Response answer(const Handlers& handlers, const RequestParser::value_type& request) {
  if (request.method() != beast::http::verb::get && request.method() != beast::http::verb::head) {
    auto response = plain(405, "only GET and HEAD\n");
    response.headers.push_back({"Allow", "GET, HEAD"});
    return response;
  }
  const std::string_view target(request.target().data(), request.target().size());
  const auto handler = handlers.find(target.substr(0, target.find('?')));
  if (handler == handlers.end()) return plain(404, "not found\n");
  return handler->second();
}

/// Connections one after another on a socket that is kept alive.
struct Session {
  tcp::socket socket;
  const Handlers& handlers;
  const ServerOptions& options;
  std::string raw;

  /// Reads one request into the parser; false when the client has closed between two requests.
  async::Task<Result<bool>> read(RequestParser& parser) {
    std::array<char, 2048> scratch{};
    while (true) {
      beast::error_code error;
      if (!raw.empty()) {
        raw.erase(0, parser.put(boost::asio::buffer(raw), error));
        if (error && error != beast::http::error::need_more) co_return fail(Errc::invalid, "{}", error.message());
      }
      if (parser.is_done()) co_return true;
      const auto [failed, count] = co_await socket.async_read_some(boost::asio::buffer(scratch), kAwait);
      if (failed) co_return false;
      raw.append(scratch.data(), count);
    }
  }

  async::Task<Result<bool>> serve_one() {
    RequestParser parser;
    parser.eager(true);
    parser.header_limit(static_cast<std::uint32_t>(options.max_header_bytes));
    // A GET has no body worth reading.
    parser.body_limit(0);
    auto got = co_await read(parser);
    if (got && !*got) co_return false;
    const bool keep = got && parser.keep_alive();
    const auto response = got ? answer(handlers, parser.get()) : plain(400, "bad request\n");
    const auto text = encode(response, !got || parser.get().method() != beast::http::verb::head, keep);
    const auto [failed, count] = co_await boost::asio::async_write(socket, boost::asio::buffer(text), kAwait);
    co_return !failed && keep;
  }
};

async::Task<void> serve(tcp::socket socket, const Handlers& handlers, const ServerOptions& options) {
  Session session{std::move(socket), handlers, options, {}};
  while (true) {
    const auto more = co_await async::with_timeout(session.serve_one(), options.timeout);
    if (!more || !*more) co_return;
  }
}

}  // namespace

struct Server::State {
  State(const async::Executor& executor, ServerOptions o, Handlers h)
      : options(std::move(o)), handlers(std::move(h)), acceptor(executor), sessions(executor) {}

  ServerOptions options;
  Handlers handlers;
  tcp::acceptor acceptor;
  async::TaskGroup sessions;

  Result<void> listen() {
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(options.address, error);
    if (error) return fail(Errc::invalid, "listen address '{}': {}", options.address, error.message());
    tcp::endpoint endpoint(address, options.port);
    const auto done = [&](std::string_view step) -> Result<void> {
      if (!error) return {};
      return fail_errno(error.value(), fmt::format("{} {} port {}", step, options.address, options.port));
    };
    acceptor.open(endpoint.protocol(), error);
    if (error == boost::asio::error::address_family_not_supported && address.is_unspecified()) {
      endpoint.address(boost::asio::ip::address_v4::any());
      acceptor.open(endpoint.protocol(), error);
    }
    FABRIC_CHECK(done("opening"));
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (endpoint.protocol() == tcp::v6())
      acceptor.set_option(boost::asio::ip::v6_only(!address.is_unspecified()), error);
    acceptor.bind(endpoint, error);
    FABRIC_CHECK(done("binding"));
    acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    return done("listening on");
  }
};

Result<std::unique_ptr<Server>> Server::open(async::Executor executor, ServerOptions options, Handlers handlers) {
  auto state = std::make_shared<State>(executor, std::move(options), std::move(handlers));
  FABRIC_CHECK(state->listen());
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::shared_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() = default;

std::uint16_t Server::port() const {
  boost::system::error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

async::Task<Result<void>> Server::run() {
  // Out of file descriptors or memory: they may come back.
  constexpr Duration kPause{100};
  // A session ends at its next wait once it is cancelled.
  constexpr Duration kStopLimit{1000};
  const auto state = state_;
  while (!co_await async::cancelled()) {
    auto [error, socket] = co_await state->acceptor.async_accept(kAwait);
    if (error == boost::asio::error::operation_aborted) break;
    if (error) {
      log::warn("accepting a connection failed", {{"error", error.message()}});
      if (!co_await async::sleep_for(kPause)) break;
      continue;
    }
    if (state->sessions.running().size() >= state->options.max_connections) continue;
    state->sessions.spawn("http session", serve(std::move(socket), state->handlers, state->options));
  }
  state->sessions.stop();
  auto joined = co_await state->sessions.join(kStopLimit);
  ignore(joined, "the sessions are cancelled; the caller is stopping and waits for nothing more");
  co_return fail(Errc::cancelled, "shutting down");
}

async::Task<Result<void>> serve_when_free(async::Executor executor, async::Clock& clock, std::function<double()> random,
                                          ServerOptions options, Handlers handlers) {
  constexpr async::Backoff kBackoff{.initial = Duration{500}, .max = Duration{10'000}};
  for (unsigned attempt = 0;; ++attempt) {
    const auto server = Server::open(executor, options, handlers);
    if (server) {
      if (attempt > 0) log::info("the port of probes and metrics is free now", {{"port", options.port}});
      co_return co_await (*server)->run();
    }
    if (server.error().code != Errc::unavailable) co_return std::unexpected(server.error());
    if (attempt == 0) {
      log::warn("no probes and metrics until the port is free; find the program that has it with ss -tanp",
                {{"error", server.error().message()}});
    }
    if (!co_await async::sleep_for(clock, kBackoff.delay(attempt, random())))
      co_return fail(Errc::cancelled, "shutting down");
  }
}

Handlers observability_handlers(const telemetry::Registry& metrics, const telemetry::Health& health) {
  Handlers handlers;
  handlers["/healthz"] = [] { return plain(200, "ok\n"); };
  handlers["/readyz"] = [&health] { return plain(health.ready() ? 200 : 503, health.report()); };
  handlers["/metrics"] = [&metrics] {
    return Response{.status = 200,
                    .headers = {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
                    .body = metrics.render()};
  };
  return handlers;
}

}  // namespace fabric::http
