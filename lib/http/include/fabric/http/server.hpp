#pragma once

#include <fabric/async/clock.hpp>
#include <fabric/async/task.hpp>
#include <fabric/base/error.hpp>
#include <fabric/base/time.hpp>
#include <fabric/http/message.hpp>
#include <fabric/telemetry/health.hpp>
#include <fabric/telemetry/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace fabric::http {

struct ServerOptions {
  /// An address of this host; "::" is both families, or IPv4 alone where the kernel has no IPv6.
  std::string address = "127.0.0.1";
  /// 0: the kernel chooses; see Server::port.
  std::uint16_t port = 0;
  std::size_t max_connections = 32;
  std::size_t max_header_bytes = 8UL << 10U;
  /// For one request to arrive and be answered, and for a connection to stay idle.
  Duration timeout{10'000};
};

/// Answers a GET or HEAD. Runs on the io thread and does not block.
using Handler = std::function<Response()>;
/// By path, without the query.
using Handlers = std::map<std::string, Handler, std::less<>>;

/// A small HTTP/1.1 server for probes and metrics: GET and HEAD, no bodies, no TLS. Bounded in connections, header size
/// and time; connections beyond the bound are closed at once.
class Server {
 public:
  /// Binds and listens. Errors name the address and port; Errc::unavailable when another socket has it.
  static Result<std::unique_ptr<Server>> open(async::Executor executor, ServerOptions options, Handlers handlers);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  std::uint16_t port() const;
  /// Accepts until cancelled, then closes every connection: a root of the program's TaskGroup.
  async::Task<Result<void>> run();

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Opens a server and runs it until cancelled: a root of the program's TaskGroup. While another socket has the port it
/// tries again with backoff, since the work of an agent does not need it; every other failure is returned.
async::Task<Result<void>> serve_when_free(async::Executor executor, async::Clock& clock, std::function<double()> random,
                                          ServerOptions options, Handlers handlers);

/// /healthz (always 200), /readyz (200 or 503 with the report) and /metrics. Both arguments outlive the server.
Handlers observability_handlers(const telemetry::Registry& metrics, const telemetry::Health& health);

}  // namespace fabric::http
