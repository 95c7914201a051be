#pragma once

#include <fabric/json/codec.hpp>
#include <fabric/net/cidr.hpp>
#include <fabric/net/ip_address.hpp>
#include <fabric/net/mac.hpp>

namespace fabric::json {

/// Types with `static Result<T> parse(std::string_view)` and `std::string to_string() const` are JSON strings.
template <class T>
struct ParsedTextCodec {
  static Result<T> read(const Value& value, const Path& path) {
    const std::string* text = value.if_string();
    if (text == nullptr) return mismatch(path, "a string", value);
    return T::parse(*text).with(path.to_string());
  }

  static Value write(const T& value) { return value.to_string(); }
};

template <>
struct Codec<net::IpAddress> : ParsedTextCodec<net::IpAddress> {};

template <>
struct Codec<net::Cidr> : ParsedTextCodec<net::Cidr> {};

template <>
struct Codec<net::Mac> : ParsedTextCodec<net::Mac> {};

}  // namespace fabric::json
