#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "scheduler/problem/config.h"

namespace counterflow {
namespace {

constexpr std::size_t kEdit = 2;
constexpr std::size_t kOtherCase = 1;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::size_t replacement(char a, char b) {
  if (a == b) return 0;
  return lower(a) == lower(b) ? kOtherCase : kEdit;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j * kEdit;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = (i + 1) * kEdit;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + replacement(a[i], b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + kEdit, row[j + 1] + kEdit});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t kLongestWord = 64;  // a pasted page must not cost its length
  std::string_view best;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word.substr(0, kLongestWord), candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace counterflow
