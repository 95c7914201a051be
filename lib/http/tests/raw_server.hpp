#pragma once

#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fabric::http::test {

/// One accepted connection, from the server's side. A script writes whatever bytes it likes.
class Peer {
 public:
  Peer(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);

  async::Task<bool> handshake();
  /// The next request's head and body (by Content-Length); empty when the client has closed.
  async::Task<std::string> request();
  async::Task<void> write(std::string text);
  /// Waits for the client to close; true when it did.
  async::Task<bool> closed_by_client();
  /// Ends the connection, with TLS's closing alert if there is TLS.
  async::Task<void> close();
  /// Ends the TCP connection and nothing else.
  void cut();

 private:
  async::Task<std::size_t> read_some(std::vector<char>& into);

  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  std::string raw_;
};

/// Accepts on a free loopback port and runs `script` for each connection; `number` counts them from 0.
class RawServer {
 public:
  using Script = std::function<async::Task<void>(std::shared_ptr<Peer> peer, int number)>;

  RawServer(boost::asio::io_context& io, Script script, std::optional<boost::asio::ssl::context> tls = std::nullopt);
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  ~RawServer();

  std::uint16_t port() const;

  int connections() const { return state_->connections; }

 private:
  struct State {
    State(boost::asio::io_context& io, Script s, std::optional<boost::asio::ssl::context> t)
        : acceptor(io), script(std::move(s)), tls(std::move(t)) {}

    boost::asio::ip::tcp::acceptor acceptor;
    Script script;
    std::optional<boost::asio::ssl::context> tls;
    int connections = 0;
  };

  static async::Task<void> accept(std::shared_ptr<State> state);
  static async::Task<void> serve(std::shared_ptr<State> state, std::shared_ptr<Peer> peer, int number);

  std::shared_ptr<State> state_;
};

/// A certificate and its key, PEM.
struct Certificate {
  std::string certificate;
  std::string key;
};

struct CertificateOptions {
  std::string common_name = "test";
  /// OpenSSL's notation: "DNS:name,IP:127.0.0.1"; empty for none.
  std::string alternative_names{};
  bool is_ca = false;
  /// Validity from now, in seconds; negative for one that has expired.
  long valid_seconds = 3600;
};

/// Draws a key and signs a certificate by `issuer`, or by itself when null.
Certificate make_certificate(const CertificateOptions& options, const Certificate* issuer);

/// A server's context; `client_ca` makes it ask for a client certificate and refuse a client without.
boost::asio::ssl::context server_context(const Certificate& own, const std::string& client_ca = {});

}  // namespace fabric::http::test
