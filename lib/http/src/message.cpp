#include <fabric/http/message.hpp>

#include <algorithm>

namespace fabric::http {

std::string_view to_string(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::patch:
      return "PATCH";
    case Method::del:
      return "DELETE";
  }
  return "GET";
}

std::optional<std::string_view> find_header(const Headers& headers, std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto found = std::ranges::find_if(
      headers, [&](const Header& header) { return std::ranges::equal(header.name, name, {}, lower, lower); });
  if (found == headers.end()) return std::nullopt;
  return found->value;
}

}  // namespace fabric::http
