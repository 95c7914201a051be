#include "response_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace fabric::http {

namespace {

namespace beast = boost::beast;

constexpr std::size_t kReadBytes = 16UL << 10U;
/// Interim responses before the final one; more than one is unusual.
constexpr int kMaxInterim = 8;

Error decode_error(const beast::error_code& error) {
  if (error == beast::http::error::body_limit) return {Errc::invalid, "the answer is larger than the limit", {}};
  if (error == beast::http::error::header_limit) return {Errc::invalid, "the answer's headers exceed the limit", {}};
  if (error == beast::http::error::partial_message || error == beast::http::error::end_of_stream) {
    return {Errc::unavailable, "the connection was closed before the end of the answer", {}};
  }
  return {Errc::invalid, fmt::format("the answer is not HTTP: {}", error.message()), {}};
}

}  // namespace

ResponseReader::ResponseReader(std::unique_ptr<Connection> connection, Method method, Limits limits)
    : connection_(std::move(connection)), method_(method), limits_(limits), scratch_(kReadBytes) {
  start_message();
}

void ResponseReader::start_message() {
  parser_ = std::make_unique<Parser>();
  parser_->eager(true);
  parser_->header_limit(static_cast<std::uint32_t>(
      std::min<std::size_t>(limits_.header_bytes, std::numeric_limits<std::uint32_t>::max())));
  if (limits_.body_bytes) {
    parser_->body_limit(*limits_.body_bytes);
  } else {
    parser_->body_limit(boost::none);
  }
  if (method_ == Method::head) parser_->skip(true);
}

Result<bool> ResponseReader::decode() {
  if (raw_.empty()) return false;
  beast::error_code error;
  const auto used = parser_->put(boost::asio::buffer(raw_), error);
  raw_.erase(0, used);
  if (error && error != beast::http::error::need_more) return std::unexpected(decode_error(error));
  // What is left over is an unfinished header or chunk header, both of which are short.
  if (!parser_->is_done() && raw_.size() > limits_.header_bytes + kReadBytes) {
    return fail(Errc::invalid, "the answer's headers exceed the limit");
  }
  return used > 0;
}

async::Task<Result<void>> ResponseReader::advance() {
  FABRIC_CO_TRY(const bool progress, decode());
  if (progress) co_return Result<void>();
  FABRIC_CO_TRY(const auto count, co_await connection_->read_some(scratch_));
  if (count == 0) {
    if (!parser_->got_some()) co_return fail(Errc::unavailable, "the connection was closed before an answer");
    beast::error_code error;
    parser_->put_eof(error);
    if (error) co_return std::unexpected(decode_error(error));
    co_return Result<void>();
  }
  heard_anything_ = true;
  raw_.append(scratch_.data(), count);
  FABRIC_CO_TRY(const bool ignored, decode());
  static_cast<void>(ignored);
  co_return Result<void>();
}

async::Task<Result<Response>> ResponseReader::read_head() {
  for (int interim = 0; interim <= kMaxInterim; ++interim) {
    while (!parser_->is_header_done())
      FABRIC_CO_CHECK(co_await advance());
    const auto& message = parser_->get();
    // 101 ends HTTP on the connection and is never asked for; it is passed on as it is.
    if (message.result_int() / 100 == 1 && message.result_int() != 101) {
      start_message();
      continue;
    }
    Response head;
    head.status = static_cast<int>(message.result_int());
    for (const auto& field : message)
      head.headers.push_back({std::string(field.name_string()), std::string(field.value())});
    co_return head;
  }
  co_return fail(Errc::invalid, "the answer is not HTTP: too many interim responses");
}

async::Task<Result<std::string>> ResponseReader::read_some() {
  while (parser_->get().body().empty() && !parser_->is_done())
    FABRIC_CO_CHECK(co_await advance());
  co_return std::exchange(parser_->get().body(), {});
}

async::Task<Result<std::string>> ResponseReader::read_all() {
  while (!parser_->is_done())
    FABRIC_CO_CHECK(co_await advance());
  co_return std::exchange(parser_->get().body(), {});
}

std::unique_ptr<Connection> ResponseReader::release() {
  if (!parser_->is_done() || !parser_->keep_alive() || !raw_.empty()) return nullptr;
  return std::move(connection_);
}

}  // namespace fabric::http
