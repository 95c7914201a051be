#include <fabric/json/path.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fabric::json {

namespace {

bool is_plain(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::string shown(const Value& value) {
  if (const bool* b = value.if_bool()) return *b ? "true" : "false";
  if (value.is_integer() || value.if_double() != nullptr) return write(value);
  return std::string(to_string(value.kind()));
}

}  // namespace

std::string Path::to_string() const {
  if (parent_ == nullptr) return std::string(key_);
  std::string out = parent_->to_string();
  if (key_.data() == nullptr) return fmt::format("{}[{}]", out, index_);
  if (!is_plain(key_)) return fmt::format("{}[\"{}\"]", out, key_);
  return out.empty() ? std::string(key_) : fmt::format("{}.{}", out, key_);
}

std::unexpected<Error> mismatch(const Path& path, std::string_view expected, const Value& got) {
  return wrong(path, fmt::format("expected {}, got {}", expected, shown(got)));
}

std::unexpected<Error> missing(const Path& path) {
  return wrong(path, "required");
}

std::unexpected<Error> wrong(const Path& path, std::string_view what) {
  const std::string where = path.to_string();
  return where.empty() ? fail(Errc::invalid, "{}", what) : fail(Errc::invalid, "{}: {}", where, what);
}

}  // namespace fabric::json
