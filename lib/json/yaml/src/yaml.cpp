#include <fabric/yaml/yaml.hpp>

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>
#include <cmath>
#include <exception>
#include <optional>
#include <string>

namespace fabric::yaml {

namespace {

using json::Value;

std::unexpected<Error> refused(const YAML::Mark& mark, std::string_view what) {
  if (mark.is_null()) return fail(Errc::invalid, "YAML: {}", what);
  return fail(Errc::invalid, "YAML at line {}, column {}: {}", mark.line + 1, mark.column + 1, what);
}

template <class T>
std::optional<T> number(std::string_view text, int base = 10) {
  T out{};
  const char* end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::integral<T>) {
    result = std::from_chars(text.data(), end, out, base);
  } else {
    result = std::from_chars(text.data(), end, out);
  }
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return out;
}

std::optional<Value> integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with("0x")) {
    if (const auto hex = number<std::uint64_t>(text.substr(2), 16)) return Value(*hex);
  }
  if (text.starts_with("0o")) {
    if (const auto octal = number<std::uint64_t>(text.substr(2), 8)) return Value(*octal);
  }
  if (const auto small = number<std::int64_t>(text)) return Value(*small);
  if (const auto large = number<std::uint64_t>(text)) return Value(*large);
  return std::nullopt;
}

Value plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto found = integer(text)) return *std::move(found);
  // Digits only before letters such as "inf" and "nan", which from_chars would also take and JSON does not have.
  const bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string::npos;
  if (numeric) {
    const std::string_view unsigned_text = text.starts_with('+') ? std::string_view(text).substr(1) : text;
    if (const auto found = number<double>(unsigned_text); found && std::isfinite(*found)) return *found;
  }
  return text;
}

class Converter {
 public:
  explicit Converter(const Limits& limits) : limits_(limits) {}

  Result<Value> convert(const YAML::Node& node, std::size_t depth = 0) {
    if (depth >= limits_.depth) return refused(node.Mark(), fmt::format("nested deeper than {} levels", limits_.depth));
    if (++nodes_ > limits_.nodes) {
      return refused(node.Mark(), fmt::format("more than {} nodes after expanding aliases", limits_.nodes));
    }
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Value();
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence:
        return sequence(node, depth);
      case YAML::NodeType::Map:
        return mapping(node, depth);
    }
    return refused(node.Mark(), "unknown kind of node");
  }

 private:
  // yaml-cpp tags quoted scalars "!" and plain ones "?".
  static Result<Value> scalar(const YAML::Node& node) {
    const std::string& tag = node.Tag();
    if (tag == "?" || tag.empty()) return plain_scalar(node.Scalar());
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Value(node.Scalar());
    return refused(node.Mark(), "tags are not supported");
  }

  Result<Value> sequence(const YAML::Node& node, std::size_t depth) {
    json::Array out;
    for (const auto& element : node) {
      FABRIC_TRY(auto value, convert(element, depth + 1));
      out.push_back(std::move(value));
    }
    return Value(std::move(out));
  }

  Result<Value> mapping(const YAML::Node& node, std::size_t depth) {
    json::Object out;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return refused(entry.first.Mark(), "a key must be a scalar");
      const std::string& key = entry.first.Scalar();
      if (key == "<<") return refused(entry.first.Mark(), "merge keys are not supported");
      FABRIC_TRY(auto value, convert(entry.second, depth + 1));
      if (!out.try_emplace(key, std::move(value)).second) return refused(entry.first.Mark(), "duplicate key");
    }
    return Value(std::move(out));
  }

  Limits limits_;
  std::size_t nodes_ = 0;
};

}  // namespace

Result<std::vector<Value>> parse_all(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Errc::invalid, "YAML text of {} bytes is larger than the limit of {}", text.size(), limits.bytes);
  }
  // yaml-cpp reports syntax errors by exceptions only; they end here. Its own nesting limit keeps its recursion
  // bounded.
  try {
    std::vector<Value> out;
    Converter converter(limits);
    for (const auto& document : YAML::LoadAll(std::string(text))) {
      FABRIC_TRY(auto value, converter.convert(document));
      if (!value.is_null()) out.push_back(std::move(value));
    }
    return out;
  } catch (const YAML::Exception& exception) {
    return refused(exception.mark, "not valid YAML");
  } catch (const std::exception&) {
    return fail(Errc::invalid, "YAML: not valid");
  }
}

Result<Value> parse(std::string_view text, const Limits& limits) {
  FABRIC_TRY(auto documents, parse_all(text, limits));
  if (documents.empty()) return Value();
  if (documents.size() > 1) return fail(Errc::invalid, "YAML: {} documents where one is expected", documents.size());
  return std::move(documents.front());
}

}  // namespace fabric::yaml
