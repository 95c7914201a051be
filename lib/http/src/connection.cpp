#include "connection.hpp"

#include <fabric/async/event.hpp>
#include <fabric/async/timeout.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <cerrno>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "tls.hpp"

namespace fabric::http {

namespace {

using boost::asio::ip::tcp;
constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

/// getaddrinfo runs on a thread of Asio's and cannot be interrupted: a cancelled coroutine leaves it behind, and what
/// it writes to is shared with it.
async::Task<Result<std::vector<tcp::endpoint>>> resolve(Url url) {
  const auto executor = co_await boost::asio::this_coro::executor;
  boost::system::error_code not_an_address;
  const auto address = boost::asio::ip::make_address(url.host, not_an_address);
  if (!not_an_address) co_return std::vector{tcp::endpoint(address, url.port)};

  struct Lookup {
    explicit Lookup(const async::Executor& e) : resolver(e), done(e) {}

    tcp::resolver resolver;
    async::Event done;
    boost::system::error_code error;
    std::vector<tcp::endpoint> endpoints;
  };

  auto lookup = std::make_shared<Lookup>(executor);
  lookup->resolver.async_resolve(url.host, std::to_string(url.port), tcp::resolver::numeric_service,
                                 [lookup](const boost::system::error_code& error, const auto& results) {
                                   lookup->error = error;
                                   for (const auto& entry : results)
                                     lookup->endpoints.push_back(entry.endpoint());
                                   lookup->done.set();
                                 });
  FABRIC_CO_CHECK(co_await lookup->done.wait());
  if (lookup->error) co_return fail(Errc::unavailable, "resolving '{}': {}", url.host, lookup->error.message());
  co_return std::move(lookup->endpoints);
}

/// A cancellation does not reach an operation that starts after it.
async::Task<Result<void>> unless_cancelled() {
  if (co_await async::cancelled()) co_return fail(Errc::cancelled, "shutting down");
  co_return Result<void>();
}

async::Task<Result<void>> connect_one(tcp::socket& socket, tcp::endpoint endpoint) {
  FABRIC_CO_CHECK(co_await unless_cancelled());
  const auto [error] = co_await socket.async_connect(endpoint, kAwait);
  if (error) co_return std::unexpected(tls_error(error, nullptr).with("connecting"));
  boost::system::error_code ignored;
  // Small requests wait for nothing.
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
  co_return Result<void>();
}

async::Task<Result<tcp::socket>> connect(std::vector<tcp::endpoint> endpoints, Duration timeout) {
  const auto executor = co_await boost::asio::this_coro::executor;
  Result<tcp::socket> outcome = fail(Errc::unavailable, "connecting: the name has no address");
  for (const auto& endpoint : endpoints) {
    tcp::socket socket(executor);
    auto connected = co_await async::with_timeout(connect_one(socket, endpoint), timeout);
    if (connected) co_return std::move(socket);
    const bool stop = connected.error().code == Errc::cancelled;
    outcome = std::unexpected(std::move(connected).error());
    if (stop) break;
  }
  co_return outcome;
}

}  // namespace

async::Task<Result<std::unique_ptr<Connection>>> Connection::open(Url url, Options options) {
  FABRIC_CO_TRY(auto endpoints, co_await resolve(url));
  FABRIC_CO_TRY(auto socket, co_await connect(std::move(endpoints), options.connect_timeout));
  auto connection = std::make_unique<Connection>(std::move(socket));
  if (options.tls != nullptr) {
    auto name = options.server_name.empty() ? url.host : options.server_name;
    FABRIC_CO_CHECK(co_await connection->shake_hands(*options.tls, std::move(name)));
  }
  co_return std::move(connection);
}

async::Task<Result<void>> Connection::shake_hands(boost::asio::ssl::context& tls, std::string name) {
  tls_.emplace(socket_, tls);
  FABRIC_CO_CHECK(expect_peer(ssl(), name));
  FABRIC_CO_CHECK(co_await unless_cancelled());
  const auto [error] = co_await tls_->async_handshake(boost::asio::ssl::stream_base::client, kAwait);
  if (error) co_return std::unexpected(tls_error(error, ssl()).with("TLS handshake"));
  co_return Result<void>();
}

async::Task<Result<std::size_t>> Connection::read_some(std::span<char> into) {
  FABRIC_CO_CHECK(co_await unless_cancelled());
  const auto buffer = boost::asio::buffer(into.data(), into.size());
  const auto [error, count] =
      tls_ ? co_await tls_->async_read_some(buffer, kAwait) : co_await socket_.async_read_some(buffer, kAwait);
  if (error == boost::asio::error::eof) co_return std::size_t{0};
  if (error) co_return std::unexpected(tls_error(error, ssl()).with("reading"));
  co_return count;
}

async::Task<Result<void>> Connection::write(std::string_view text) {
  FABRIC_CO_CHECK(co_await unless_cancelled());
  const auto buffer = boost::asio::buffer(text.data(), text.size());
  const auto [error, count] = tls_ ? co_await boost::asio::async_write(*tls_, buffer, kAwait)
                                   : co_await boost::asio::async_write(socket_, buffer, kAwait);
  if (error) co_return std::unexpected(tls_error(error, ssl()).with("writing"));
  co_return Result<void>();
}

bool Connection::is_stale() {
  char byte = 0;
  const auto count = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace fabric::http
