#pragma once

#include <fabric/http/transport.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace fabric::http {

struct TlsOptions {
  /// Certificates that are trusted, PEM, one or several. Empty: the system's store.
  std::string ca_pem{};
  /// A client certificate (chain) and its key, both or neither.
  std::string certificate_pem{};
  std::shared_ptr<const Secret> key_pem{};
  /// The name that the server's certificate must carry, when it is not the URL's host.
  std::string server_name{};
  /// Accepts any certificate, and logs a warning. Only for a cluster whose kubeconfig says so.
  bool insecure_skip_verify = false;
};

struct ClientOptions {
  TlsOptions tls{};
  std::string user_agent = "fabric";
  /// Of a whole body in send(); a stream is not limited.
  std::size_t max_body_bytes = 64UL << 20U;
  std::size_t max_header_bytes = 64UL << 10U;
  Duration connect_timeout{10'000};
  /// Idle connections are closed after this time: below the 90 s after which client-go's servers and most load
  /// balancers forget them.
  Duration idle_timeout{55'000};
  std::size_t max_idle_per_origin = 4;
};

/// HTTP/1.1 over TLS 1.2+ or plain TCP with a pool of kept-alive connections per origin. A request whose pooled
/// connection turns out to be closed is sent once more on a new one when its method is idempotent.
class Client final : public Transport {
 public:
  /// Errc::invalid when a certificate or key cannot be read.
  static Result<std::unique_ptr<Client>> open(async::Executor executor, ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() override;

  async::Task<Result<Response>> send(Request request, async::Deadline deadline) override;
  async::Task<Result<std::unique_ptr<BodyStream>>> open_stream(Request request, async::Deadline deadline) override;

  /// Connections that wait for the next request.
  std::size_t idle_connections() const;

 private:
  struct State;
  explicit Client(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace fabric::http
