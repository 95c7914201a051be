#pragma once

#include <fabric/base/error.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace fabric::http {

enum class Scheme : std::uint8_t { http, https };

/// An absolute http or https URL. User information and fragments are refused.
struct Url {
  Scheme scheme = Scheme::https;
  /// A name in lower case, or an address; IPv6 without brackets.
  std::string host;
  std::uint16_t port = 443;
  /// Path and query, percent-encoded as given, at least "/".
  std::string target = "/";

  /// Errc::invalid names the URL and what is wrong with it.
  static Result<Url> parse(std::string_view text);

  /// The same origin with another target; `target` starts with "/" and is already encoded.
  Url with_target(std::string target) const;
  /// "host:port" or "[v6]:port".
  std::string authority() const;
  std::string to_string() const;

  auto operator<=>(const Url&) const = default;
};

/// Encodes everything but unreserved characters (RFC 3986 §2.3), for one path segment or one query value.
std::string percent_encode(std::string_view text);

}  // namespace fabric::http
