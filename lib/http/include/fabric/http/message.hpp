#pragma once

#include <fabric/base/secret.hpp>
#include <fabric/http/url.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabric::http {

enum class Method : std::uint8_t { get, head, post, put, patch, del };

std::string_view to_string(Method method);

struct Header {
  std::string name;
  std::string value;

  bool operator==(const Header&) const = default;
};

using Headers = std::vector<Header>;

/// The first header of this name, in any case.
std::optional<std::string_view> find_header(const Headers& headers, std::string_view name);

struct Request {
  Method method = Method::get;
  Url url{};
  /// Host, Content-Length, Connection, User-Agent and Authorization (from `bearer`) are added by the client.
  Headers headers{};
  std::string body{};
  /// Sent as "Authorization: Bearer ...", only over https or to a loopback address.
  std::shared_ptr<const Secret> bearer{};
};

struct Response {
  int status = 0;
  Headers headers{};
  std::string body{};
};

}  // namespace fabric::http
