#include <fabric/base/assert.hpp>
#include <fabric/ctl/table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace fabric::ctl {

namespace {

constexpr std::size_t kGap = 3;  // As kubectl.

std::string cell(const std::string& text) {
  return text.empty() ? "-" : one_line(text);
}

std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths, std::size_t indent) {
  std::string out(indent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    out += cells[i];
    if (i + 1 < cells.size()) out.append(widths[i] + kGap - cells[i].size(), ' ');
  }
  return out + "\n";
}

}  // namespace

std::string one_line(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return text;
}

std::string render(const Table& table, std::size_t indent) {
  if (table.rows.empty()) return {};
  std::vector<std::vector<std::string>> lines{table.header};
  for (const auto& row : table.rows) {
    FABRIC_ASSERT(row.size() == table.header.size());
    auto& cells = lines.emplace_back();
    for (const std::string& text : row)
      cells.push_back(cell(text));
  }
  std::vector<std::size_t> widths(table.header.size(), 0);
  for (const auto& cells : lines) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out;
  for (const auto& cells : lines)
    out += line(cells, widths, indent);
  return out;
}

std::string age(Duration duration) {
  using std::chrono::floor;
  const auto whole = std::max(floor<std::chrono::seconds>(duration), std::chrono::seconds(0));
  const auto days = floor<std::chrono::days>(whole).count();
  const auto hours = (floor<std::chrono::hours>(whole) % std::chrono::days(1)).count();
  const auto minutes = (floor<std::chrono::minutes>(whole) % std::chrono::hours(1)).count();
  if (days > 0) return hours > 0 ? fmt::format("{}d{}h", days, hours) : fmt::format("{}d", days);
  if (hours > 0) return minutes > 0 ? fmt::format("{}h{}m", hours, minutes) : fmt::format("{}h", hours);
  if (minutes > 0) return fmt::format("{}m", minutes);
  return fmt::format("{}s", whole.count());
}

std::string age(TimePoint now, TimePoint then) {
  return age(std::chrono::duration_cast<Duration>(now - then));
}

}  // namespace fabric::ctl
