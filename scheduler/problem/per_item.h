#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/problem/config.h"

// One value for all, or a list with one for each: made into one for each.
namespace counterflow::per_item {

[[nodiscard]] inline std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

// "key: message" at a place of the config.
[[noreturn]] inline void fail(const SourceLocation& where, std::string_view key,
                              std::string_view message) {
  throw InputError(where, fmt::format("{}: {}", key, message));
}

// One entry for each of `count` stages or ranks (`unit`). Throws InputError where a list has
// another length.
template <typename T>
[[nodiscard]] std::vector<T> expand(const PerItem<T>& item, int count, std::string_view unit) {
  if (!item.is_list) return std::vector<T>(index(count), item.values.front());
  if (item.values.size() != index(count)) {
    fail(item.where, item.key,
         fmt::format("a list of {} for {} {}; give {} entries, or one number for all",
                     item.values.size(), count, unit, count));
  }
  return item.values;
}

template <typename T>
[[nodiscard]] std::vector<T> expand(const std::optional<PerItem<T>>& item, int count,
                                    std::string_view unit) {
  return item ? expand(*item, count, unit) : std::vector<T>(index(count));
}

// Throws InputError where there is no such stage.
inline void check_stage(int stage, int stages, const SourceLocation& where, std::string_view key) {
  if (stage < stages) return;
  fail(where, key,
       fmt::format("there is no stage {}; name one of the {} stages, 0 to {}", stage, stages,
                   stages - 1));
}

}  // namespace counterflow::per_item
