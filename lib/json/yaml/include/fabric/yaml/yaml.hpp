#pragma once

#include <fabric/base/error.hpp>
#include <fabric/json/value.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace fabric::yaml {

/// What parse accepts at most; Errc::invalid beyond. `nodes` counts every node after aliases are expanded, so that a
/// document of nested aliases ("billion laughs") is refused instead of filling the memory.
struct Limits {
  std::size_t depth = 100;
  std::size_t bytes = std::size_t{8} << 20U;
  std::size_t nodes = 200'000;
};

/// Reads one YAML document as Kubernetes tools do: plain scalars become null, booleans (true/false), integers and
/// numbers by the YAML 1.2 core schema, everything quoted stays text. Keys must be scalars; `<<` merge keys are
/// refused. Empty text is null. Errors are Errc::invalid with line and column and never quote the text.
Result<json::Value> parse(std::string_view text, const Limits& limits = {});

/// All documents of a stream separated by `---`; empty documents are left out.
Result<std::vector<json::Value>> parse_all(std::string_view text, const Limits& limits = {});

}  // namespace fabric::yaml
