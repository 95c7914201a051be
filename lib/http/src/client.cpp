#include <fabric/async/timeout.hpp>
#include <fabric/http/client.hpp>

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "connection.hpp"
#include "response_reader.hpp"
#include "tls.hpp"

namespace fabric::http {

namespace {

using Origin = std::tuple<Scheme, std::string, std::uint16_t>;

Origin origin_of(const Url& url) {
  return {url.scheme, url.host, url.port};
}

std::string peer_of(const Url& url) {
  return fmt::format("{}://{}", url.scheme == Scheme::https ? "https" : "http", url.authority());
}

/// RFC 9110 §9.2.2.
bool is_idempotent(Method method) {
  return method != Method::post && method != Method::patch;
}

bool is_loopback(const std::string& host) {
  boost::system::error_code not_an_address;
  const auto address = boost::asio::ip::make_address(host, not_an_address);
  return !not_an_address && address.is_loopback();
}

bool is_token(std::string_view text) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || kOthers.contains(c);
  });
}

bool is_field_value(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

/// Refuses what would change the meaning of the request line or of the headers.
Result<void> check_request(const Request& request) {
  const bool target_ok = request.url.target.starts_with('/') &&
                         std::ranges::all_of(request.url.target, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!target_ok) return fail(Errc::invalid, "the request's target is not percent-encoded");
  for (const auto& header : request.headers) {
    if (!is_token(header.name) || !is_field_value(header.value)) {
      return fail(Errc::invalid, "header '{}' cannot be sent", header.name);
    }
  }
  if (!request.bearer) return {};
  const auto token = request.bearer->reveal_text();
  if (token.empty() || !std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7f; })) {
    return fail(Errc::invalid, "the bearer token is empty or has characters that cannot be sent");
  }
  if (request.url.scheme == Scheme::http && !is_loopback(request.url.host)) {
    return fail(Errc::invalid, "a bearer token is not sent over plain http; use https");
  }
  return {};
}

Secret encode(const Request& request, const std::string& user_agent) {
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\n", to_string(request.method),
                                 request.url.target, request.url.authority(), user_agent);
  for (const auto& header : request.headers)
    head += fmt::format("{}: {}\r\n", header.name, header.value);
  if (!request.body.empty() || !is_idempotent(request.method) || request.method == Method::put) {
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  // The token is only ever in memory that is cleansed.
  constexpr std::string_view kAuthorization = "Authorization: Bearer ";
  const std::string_view token = request.bearer ? request.bearer->reveal_text() : std::string_view();
  const std::array<std::string_view, 5> parts{head, token.empty() ? std::string_view() : kAuthorization, token,
                                              token.empty() ? std::string_view("\r\n") : "\r\n\r\n", request.body};
  std::size_t size = 0;
  for (const auto part : parts)
    size += part.size();
  Secret wire(size);
  auto at = wire.writable().begin();
  for (const auto part : parts)
    at = std::ranges::copy(part, at).out;
  return wire;
}

}  // namespace

struct Client::State : std::enable_shared_from_this<Client::State> {
  async::Executor executor;
  ClientOptions options;
  std::unique_ptr<boost::asio::ssl::context> tls;
  std::map<Origin, std::deque<std::unique_ptr<Connection>>> idle;

  /// The connection that was used last, which is the one most likely to be alive; null when there is none.
  std::unique_ptr<Connection> take_idle(const Url& url) {
    const auto found = idle.find(origin_of(url));
    if (found == idle.end()) return nullptr;
    auto& pool = found->second;
    const auto oldest = std::chrono::steady_clock::now() - options.idle_timeout;
    std::erase_if(pool, [&](const auto& c) { return c->idle_since < oldest || c->is_stale(); });
    if (pool.empty()) return nullptr;
    auto connection = std::move(pool.back());
    pool.pop_back();
    return connection;
  }

  void put_back(const Url& url, std::unique_ptr<Connection> connection) {
    if (!connection) return;
    connection->idle_since = std::chrono::steady_clock::now();
    auto& pool = idle[origin_of(url)];
    pool.push_back(std::move(connection));
    if (pool.size() > options.max_idle_per_origin) pool.pop_front();
  }

  async::Task<Result<std::unique_ptr<Connection>>> connect(Url url) {
    Connection::Options how{.tls = url.scheme == Scheme::https ? tls.get() : nullptr,
                            .server_name = options.tls.server_name,
                            .connect_timeout = options.connect_timeout};
    return Connection::open(std::move(url), std::move(how));
  }

  struct Exchange {
    Response head;
    std::unique_ptr<ResponseReader> reader;
  };

  /// One attempt on one connection. `heard_anything` tells whether a retry could repeat an effect.
  async::Task<Result<Exchange>> attempt(std::unique_ptr<Connection> connection, Method method, std::string_view wire,
                                        ResponseReader::Limits limits, bool& heard_anything) {
    auto written = co_await connection->write(wire);
    if (!written && written.error().code != Errc::unavailable) co_return std::unexpected(std::move(written).error());
    // A server may answer and close before it has read the request (413, 401): its answer explains the failed write.
    auto reader = std::make_unique<ResponseReader>(std::move(connection), method, limits);
    auto head = co_await reader->read_head();
    heard_anything = reader->heard_anything();
    if (!head) co_return std::unexpected(std::move(!written && !heard_anything ? written.error() : head.error()));
    co_return Exchange{std::move(*head), std::move(reader)};
  }

  /// Sends a request, on a pooled connection if there is one, and reads the head of the answer.
  async::Task<Result<Exchange>> begin(Request request, ResponseReader::Limits limits) {
    FABRIC_CO_CHECK(check_request(request));
    const Secret wire = encode(request, options.user_agent);
    if (auto pooled = take_idle(request.url)) {
      bool heard_anything = false;
      auto answer = co_await attempt(std::move(pooled), request.method, wire.reveal_text(), limits, heard_anything);
      const bool closed_meanwhile = !answer && answer.error().code == Errc::unavailable && !heard_anything;
      if (!closed_meanwhile || !is_idempotent(request.method)) co_return answer;
    }
    FABRIC_CO_TRY(auto connection, co_await connect(request.url));
    bool heard_anything = false;
    co_return co_await attempt(std::move(connection), request.method, wire.reveal_text(), limits, heard_anything);
  }

  async::Task<Result<Response>> exchange(Request request) {
    const Url url = request.url;
    const ResponseReader::Limits limits{options.max_header_bytes, options.max_body_bytes};
    FABRIC_CO_TRY(auto begun, co_await begin(std::move(request), limits));
    FABRIC_CO_TRY(begun.head.body, co_await begun.reader->read_all());
    put_back(url, begun.reader->release());
    co_return std::move(begun.head);
  }
};

namespace {

class ClientStream final : public BodyStream {
 public:
  ClientStream(std::string peer, Response head, std::unique_ptr<ResponseReader> reader)
      : peer_(std::move(peer)), head_(std::move(head)), reader_(std::move(reader)) {}

  const Response& head() const override { return head_; }

  async::Task<Result<std::string>> next(Duration idle_timeout) override {
    if (!reader_) co_return fail(Errc::unavailable, "{}: the stream has failed before", peer_);
    auto chunk = co_await async::with_timeout(reader_->read_some(), idle_timeout);
    if (!chunk) reader_.reset();
    co_return std::move(chunk).with(peer_);
  }

 private:
  std::string peer_;
  Response head_;
  std::unique_ptr<ResponseReader> reader_;
};

}  // namespace

Result<std::unique_ptr<Client>> Client::open(async::Executor executor, ClientOptions options) {
  auto state = std::make_shared<State>();
  FABRIC_TRY(state->tls, make_tls_context(options.tls));
  state->executor = std::move(executor);
  state->options = std::move(options);
  return std::unique_ptr<Client>(new Client(std::move(state)));
}

Client::Client(std::shared_ptr<State> state) : state_(std::move(state)) {}

Client::~Client() = default;

async::Task<Result<Response>> Client::send(Request request, async::Deadline deadline) {
  const auto state = state_;
  const auto peer = peer_of(request.url);
  async::SystemClock clock(state->executor);
  auto answer = co_await async::with_deadline(state->exchange(std::move(request)), clock, deadline.at);
  co_return std::move(answer).with(peer);
}

async::Task<Result<std::unique_ptr<BodyStream>>> Client::open_stream(Request request, async::Deadline deadline) {
  const auto state = state_;
  const auto peer = peer_of(request.url);
  async::SystemClock clock(state->executor);
  const ResponseReader::Limits limits{state->options.max_header_bytes, std::nullopt};
  auto begun = co_await async::with_deadline(state->begin(std::move(request), limits), clock, deadline.at);
  if (!begun) co_return std::unexpected(std::move(begun).error().with(peer));
  co_return std::make_unique<ClientStream>(peer, std::move(begun->head), std::move(begun->reader));
}

std::size_t Client::idle_connections() const {
  std::size_t count = 0;
  for (const auto& [origin, pool] : state_->idle)
    count += pool.size();
  return count;
}

}  // namespace fabric::http
