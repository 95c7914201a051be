#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/http/url.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fabric::http {

/// One byte stream to a server, with or without TLS. Closes when destroyed. Errors do not name the peer.
class Connection {
 public:
  struct Options {
    /// Null for plain TCP. Outlives the connection.
    boost::asio::ssl::context* tls = nullptr;
    /// What the server's certificate must carry; empty: the URL's host.
    std::string server_name;
    /// For each address of the host.
    Duration connect_timeout{10'000};
  };

  explicit Connection(boost::asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() = default;

  /// Resolves, connects to the first address that answers, and shakes hands.
  static async::Task<Result<std::unique_ptr<Connection>>> open(Url url, Options options);

  /// At least one byte, or 0 at the end of the stream. The end of a TLS stream without its closing alert is
  /// Errc::unavailable: it may have been cut by somebody else.
  async::Task<Result<std::size_t>> read_some(std::span<char> into);
  async::Task<Result<void>> write(std::string_view text);

  /// Whether the peer has closed, or sent what nobody asked for; a connection that waits in a pool is then useless.
  bool is_stale();

  async::SteadyTime idle_since;

 private:
  async::Task<Result<void>> shake_hands(boost::asio::ssl::context& tls, std::string name);

  SSL* ssl() { return tls_ ? tls_->native_handle() : nullptr; }

  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
};

}  // namespace fabric::http
