#pragma once

#include <fabric/base/time.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// Text for terminals: columns and ages as kubectl prints them. Pure.
namespace fabric::ctl {

struct Table {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< Each as long as the header.
};

/// Columns are as wide as their widest cell and three spaces apart, lines end in a newline and in no spaces. An empty
/// cell is shown as "-". Line breaks and control characters in cells, which may come from anybody's objects, become
/// spaces. Nothing at all for a table without rows.
std::string render(const Table& table, std::size_t indent = 0);

/// The text with every control character replaced by a space.
std::string one_line(std::string text);

/// "45s", "12m", "3h20m", "5d4h": two units at most; negative ages, which a clock that is wrong makes, are "0s".
std::string age(Duration duration);
/// The age of what happened `then`.
std::string age(TimePoint now, TimePoint then);

}  // namespace fabric::ctl
