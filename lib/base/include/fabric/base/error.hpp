#pragma once

#include <fmt/format.h>

#include <expected>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace fabric {

/// What the caller can do about an error; the cause of it is in Error::context and Error::cause.
enum class Errc {
  not_found,       ///< The object does not exist.
  already_exists,  ///< The object exists and differs.
  conflict,        ///< Somebody else changed it: read again and retry at once.
  gone,            ///< A resource version or watch is too old: list again.
  invalid,         ///< The input is wrong: retrying does not help until it changes.
  unsupported,     ///< The kernel, API server or build lacks it: retrying does not help.
  unauthorized,    ///< The credentials were not accepted.
  forbidden,       ///< The credentials were accepted but do not allow this.
  unavailable,     ///< The other side cannot be reached or is overloaded: back off and retry.
  timeout,         ///< No answer in time: back off and retry.
  cancelled,       ///< We are shutting down.
  internal,        ///< Anything else.
};

std::string_view to_string(Errc code);

/// An error as a value. `context` is one sentence fragment for a person, outermost context first, without secrets.
struct Error {
  Errc code = Errc::internal;
  std::string context;
  std::error_code cause;

  /// Puts what the caller knows before what the callee said: "reading Secret ns/x: not found".
  Error with(std::string_view outer) &&;

  /// "context: cause" for logs, events and conditions.
  std::string message() const;
};

/// Builds an unexpected Error from a format string: `return fail(Errc::invalid, "port {}: out of range", p);`
template <class... Args>
std::unexpected<Error> fail(Errc code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...), {}});
}

/// Builds an unexpected Error from an errno value that was captured in the statement after the call.
std::unexpected<Error> fail_errno(int errno_value, std::string context);

/// The Errc that an errno value means for a caller.
Errc errc_of_errno(int errno_value);

/// A value or an Error. Discarding one does not compile.
template <class T = void>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;

  /// Adds context to an error and passes a value through.
  Result with(std::string_view outer) && {
    if (!this->has_value()) return std::unexpected(std::move(this->error()).with(outer));
    return std::move(*this);
  }
};

/// Says that a result is deliberately not looked at, and why.
template <class T>
void ignore(const Result<T>&, std::string_view) {}

}  // namespace fabric

template <>
struct fmt::formatter<fabric::Error> : fmt::formatter<std::string> {
  auto format(const fabric::Error& error, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(error.message(), ctx);
  }
};

#define FABRIC_CONCAT_INNER(a, b) a##b
#define FABRIC_CONCAT(a, b) FABRIC_CONCAT_INNER(a, b)
#define FABRIC_TRY_IMPL(tmp, ret, decl, expr)            \
  auto tmp = (expr);                                     \
  if (!tmp) ret std::unexpected(std::move(tmp).error()); \
  decl = *std::move(tmp)
#define FABRIC_CHECK_IMPL(tmp, ret, expr) \
  if (auto tmp = (expr); !tmp) ret std::unexpected(std::move(tmp).error())

/// FABRIC_TRY(auto value, function()); returns the error to the caller. The CO_ forms are for coroutines, the CHECK
/// forms for Result<void>.
#define FABRIC_TRY(decl, ...) FABRIC_TRY_IMPL(FABRIC_CONCAT(fabric_try_, __LINE__), return, decl, (__VA_ARGS__))
#define FABRIC_CO_TRY(decl, ...) FABRIC_TRY_IMPL(FABRIC_CONCAT(fabric_try_, __LINE__), co_return, decl, (__VA_ARGS__))
#define FABRIC_CHECK(...) FABRIC_CHECK_IMPL(FABRIC_CONCAT(fabric_check_, __LINE__), return, (__VA_ARGS__))
#define FABRIC_CO_CHECK(...) FABRIC_CHECK_IMPL(FABRIC_CONCAT(fabric_check_, __LINE__), co_return, (__VA_ARGS__))
