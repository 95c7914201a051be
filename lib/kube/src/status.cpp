#include <fabric/kube/status.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

namespace fabric::kube {
namespace {

// Carries the Retry-After of an answer inside Error::cause, so that Error stays one type for all modules.
class RetryAfterCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "retry-after"; }

  std::string message(int seconds) const override { return fmt::format("retry after {} s", seconds); }
};

const std::error_category& retry_after_category() {
  static const RetryAfterCategory kCategory;
  return kCategory;
}

struct CodeRow {
  int code;
  Errc errc;
};

// One row per HTTP status with a meaning of its own; the rest is decided by its class in errc_of_status.
constexpr std::array kCodes{
    CodeRow{400, Errc::invalid},     CodeRow{401, Errc::unauthorized}, CodeRow{403, Errc::forbidden},
    CodeRow{404, Errc::not_found},   CodeRow{405, Errc::unsupported},  CodeRow{406, Errc::unsupported},
    CodeRow{408, Errc::timeout},     CodeRow{409, Errc::conflict},     CodeRow{410, Errc::gone},
    CodeRow{413, Errc::invalid},     CodeRow{415, Errc::unsupported},  CodeRow{422, Errc::invalid},
    CodeRow{429, Errc::unavailable}, CodeRow{500, Errc::unavailable},  CodeRow{501, Errc::unsupported},
    CodeRow{502, Errc::unavailable}, CodeRow{503, Errc::unavailable},  CodeRow{504, Errc::unavailable},
};

constexpr int kMaxRetryAfterSeconds = 3600;

// The date form of Retry-After (RFC 9110, section 10.2.3) is not sent by API servers and reads as absent.
std::optional<int> seconds_of(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::min(seconds, kMaxRetryAfterSeconds);
}

std::optional<int> retry_seconds_of(const json::Value& status) {
  const json::Value* seconds = status.at({"details", "retryAfterSeconds"});
  if (seconds == nullptr || seconds->if_int64() == nullptr) return std::nullopt;
  if (*seconds->if_int64() <= 0) return std::nullopt;
  return static_cast<int>(std::min<std::int64_t>(*seconds->if_int64(), kMaxRetryAfterSeconds));
}

Error make_error(Errc code, std::string_view what, std::string_view message, std::optional<int> retry) {
  Error error{code, message.empty() ? std::string(what) : fmt::format("{}: {}", what, message), {}};
  if (retry) error.cause = std::error_code(*retry, retry_after_category());
  return error;
}

}  // namespace

Errc errc_of_status(int code, std::string_view reason) {
  if (reason == "AlreadyExists") return Errc::already_exists;
  if (reason == "Expired" || reason == "Gone") return Errc::gone;
  if (reason == "Timeout" || reason == "ServerTimeout") return Errc::unavailable;
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row.errc;
  }
  if (code >= 500) return Errc::unavailable;
  if (code >= 400) return Errc::invalid;
  return Errc::internal;
}

Error error_of_status(const json::Value& status, std::string_view what) {
  const json::Value* code = status.find("code");
  const int number =
      code != nullptr && code->if_int64() != nullptr && *code->if_int64() >= 0 && *code->if_int64() < 1000
          ? static_cast<int>(*code->if_int64())
          : 0;
  return make_error(errc_of_status(number, status.string_at({"reason"})), what, status.string_at({"message"}),
                    retry_seconds_of(status));
}

Error error_of_response(int code, std::string_view what, std::string_view body, std::string_view retry_after) {
  const auto status = json::parse(body);
  if (status && status->string_at({"kind"}) == "Status") {
    const std::string message = status->string_at({"message"});
    const auto retry = retry_after.empty() ? retry_seconds_of(*status) : seconds_of(retry_after);
    return make_error(errc_of_status(code, status->string_at({"reason"})), what,
                      message.empty() ? fmt::format("HTTP {}", code) : message, retry);
  }
  // A proxy or an overloaded server answers with plain text; its beginning tells a person who spoke.
  constexpr std::size_t kMaxQuote = 200;
  std::string_view quote = body.substr(0, kMaxQuote);
  while (!quote.empty() && (quote.back() == '\n' || quote.back() == '\r'))
    quote.remove_suffix(1);
  return make_error(errc_of_status(code, {}), what,
                    quote.empty() ? fmt::format("HTTP {}", code) : fmt::format("HTTP {}: {}", code, quote),
                    seconds_of(retry_after));
}

std::optional<Duration> retry_after(const Error& error) {
  if (error.cause.category() != retry_after_category()) return std::nullopt;
  return std::chrono::seconds(error.cause.value());
}

}  // namespace fabric::kube
