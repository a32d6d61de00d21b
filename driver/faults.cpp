#include "driver/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

constexpr std::ptrdiff_t kCellsAround = 3;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The cells of one rank around a position, and a line of markers under it.
std::string excerpt(const std::vector<std::string_view>& cells, std::ptrdiff_t index,
                    std::string_view head) {
  const auto count = static_cast<std::ptrdiff_t>(cells.size());
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, index - kCellsAround);
  const std::ptrdiff_t last = std::min(count, index + kCellsAround + 1);
  std::string line = fmt::format("  {}{}", head, first > 0 ? " ..." : "");
  std::string marker;
  for (std::ptrdiff_t i = first; i < last; ++i) {
    const std::string_view cell = cells[static_cast<std::size_t>(i)];
    line += ' ';
    if (i == index) marker = std::string(line.size(), ' ') + std::string(cell.size(), '^');
    line += cell;
  }
  if (last < count) line += " ...";
  return fmt::format("{}\n{}\n", line, marker);
}

}  // namespace

std::string to_text(const Diagnostics& faults, const GridOf& grid, std::size_t most) {
  const std::vector<std::string_view> rows = split(grid.csv, '\n');
  std::vector<std::vector<std::string_view>> cells(rows.size());  // of the rows that have faults
  std::string text;
  for (std::size_t i = 0; i < std::min(most, faults.size()); ++i) {
    const Diagnostic& fault = faults[i];
    text += to_line(fault) + '\n';
    if (!fault.rank || !fault.index) continue;
    const auto rank = static_cast<std::size_t>(*fault.rank);
    if (rank >= rows.size()) continue;
    if (cells[rank].empty()) cells[rank] = split(rows[rank], ',');
    if (*fault.index < 0 || static_cast<std::size_t>(*fault.index) >= cells[rank].size()) continue;
    text += excerpt(cells[rank], *fault.index, fmt::format("rank {}:", *fault.rank));
  }
  return text;
}

nlohmann::ordered_json to_json(const Diagnostics& faults) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Diagnostic& fault : faults) {
    nlohmann::ordered_json entry;
    entry["rule"] = fault.rule;
    entry["rank"] = nullptr;
    entry["index"] = nullptr;
    entry["op"] = nullptr;
    if (fault.rank) entry["rank"] = *fault.rank;
    if (fault.index) entry["index"] = *fault.index;
    if (fault.op.kind != OpKind::none) entry["op"] = to_string(fault.op);
    entry["message"] = fault.message;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace counterflow
