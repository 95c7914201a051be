#include <fabric/http/url.hpp>

#include <algorithm>
#include <charconv>

namespace fabric::http {

namespace {

constexpr std::size_t kMaxUrlBytes = 8192;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

bool is_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 &&
         std::ranges::all_of(host, [](char c) { return is_alnum(c) || c == '-' || c == '.' || c == '_'; });
}

bool is_v6(std::string_view host) {
  return host.contains(':') && std::ranges::all_of(host, [](char c) {
           return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'f') || c == ':' || c == '.';
         });
}

Result<std::uint16_t> parse_port(std::string_view url, std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) {
    return fail(Errc::invalid, "URL '{}': port '{}': expected 1..65535", url, digits);
  }
  return port;
}

/// Splits "host", "host:port", "[v6]" or "[v6]:port" into `url`.
Result<void> read_authority(std::string_view text, std::string_view authority, Url& url) {
  std::string_view host = authority;
  std::string_view rest;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return fail(Errc::invalid, "URL '{}': '[' without ']'", text);
    host = authority.substr(1, close - 1);
    rest = authority.substr(close + 1);
    if (!is_v6(host)) return fail(Errc::invalid, "URL '{}': '{}' is not an IPv6 address", text, host);
  } else {
    const auto colon = authority.find(':');
    if (colon != std::string_view::npos) {
      host = authority.substr(0, colon);
      rest = authority.substr(colon);
    }
    if (!is_name(host)) return fail(Errc::invalid, "URL '{}': '{}' is not a host name or address", text, host);
  }
  url.host.resize(host.size());
  std::ranges::transform(host, url.host.begin(), lower);
  if (rest.empty()) return {};
  if (!rest.starts_with(':')) return fail(Errc::invalid, "URL '{}': '{}' after the host", text, rest);
  FABRIC_TRY(url.port, parse_port(text, rest.substr(1)));
  return {};
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  if (text.size() > kMaxUrlBytes)
    return fail(Errc::invalid, "URL of {} bytes: longer than {}", text.size(), kMaxUrlBytes);
  if (!std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; })) {
    return fail(Errc::invalid, "URL: contains a character that has to be percent-encoded");
  }
  Url url;
  const auto separator = text.find("://");
  std::string scheme(text.substr(0, separator == std::string_view::npos ? 0 : separator));
  std::ranges::transform(scheme, scheme.begin(), lower);
  if (scheme == "http") {
    url.scheme = Scheme::http;
    url.port = 80;
  } else if (scheme != "https") {
    return fail(Errc::invalid, "URL: expected http:// or https:// at the start");
  }
  const auto rest = text.substr(separator + 3);
  const auto end = std::min(rest.find_first_of("/?#"), rest.size());
  // Checked before anything is quoted in an error: user information may hold a password.
  if (rest.substr(0, end).contains('@')) return fail(Errc::invalid, "URL: user information is not accepted");
  FABRIC_CHECK(read_authority(text, rest.substr(0, end), url));
  const auto target = rest.substr(end);
  if (target.contains('#')) return fail(Errc::invalid, "URL '{}': fragments are not accepted", text);
  if (!target.empty()) url.target = (target.starts_with('?') ? "/" : "") + std::string(target);
  return url;
}

Url Url::with_target(std::string new_target) const {
  Url url = *this;
  url.target = std::move(new_target);
  return url;
}

std::string Url::authority() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string Url::to_string() const {
  return fmt::format("{}://{}{}", scheme == Scheme::https ? "https" : "http", authority(), target);
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

}  // namespace fabric::http
