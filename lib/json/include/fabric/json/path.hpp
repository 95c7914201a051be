#pragma once

#include <fabric/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace fabric::json {

/// Where a value is in its document, for error messages only. Lives on the stack of the reader: a child refers to its
/// parent and to the key's characters, so neither is stored beyond the call.
class Path {
 public:
  Path() = default;

  explicit Path(std::string_view root) : key_(root) {}

  Path field(std::string_view key) const { return {this, key, 0}; }

  Path index(std::size_t index) const { return {this, {}, index}; }

  /// "spec.gateways[0].node"; keys with other characters than letters, digits, '_' and '-' are quoted: labels["a/b"].
  std::string to_string() const;

 private:
  Path(const Path* parent, std::string_view key, std::size_t index) : parent_(parent), key_(key), index_(index) {}

  const Path* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

/// Errc::invalid "spec.nattPort: expected 0..65535, got 70000". Strings, arrays and objects are named, not quoted.
std::unexpected<Error> mismatch(const Path& path, std::string_view expected, const Value& got);
/// Errc::invalid "spec.clusterID: required".
std::unexpected<Error> missing(const Path& path);
/// Errc::invalid "path: what".
std::unexpected<Error> wrong(const Path& path, std::string_view what);

}  // namespace fabric::json
