#pragma once

#include <cstdint>
#include <string_view>

#include "scheduler/error.h"
#include "scheduler/ir/units.h"

// Numbers as people write them: strictly decimal, with a unit where there is one. Every function
// reads the whole text or throws an InputError that says the value, the rule and an example; the
// caller adds the place.
namespace counterflow {

// A number without the unit that it needs: what else gives it one only the caller knows.
class MissingUnit : public InputError {
 public:
  using InputError::InputError;
};

// "18.522ms"; units ns, us, ms, s. A bare number counts in `bare_unit`, if there is one; a bare 0
// needs none. Rounded once, to the nearest nanosecond.
[[nodiscard]] Time parse_duration(std::string_view text, std::string_view bare_unit = {});
// "100MiB"; units B, KiB .. TiB (powers of 1024), KB .. TB (powers of 1000). Rounded to whole
// bytes.
[[nodiscard]] Bytes parse_size(std::string_view text);
// "50GB/s" in bytes a second; sizes as above, or bits: Kb/s .. Tb/s. Above zero.
[[nodiscard]] double parse_rate(std::string_view text);
// Where a factor may lie.
struct FactorRange {
  double least = 0;
  double most = 1e9;
  std::string_view rule = "a factor is from 0 to 1e9";  // the same in words
  std::string_view example = "1.7";                     // one that may be written
};
// A bare number in that range.
[[nodiscard]] double parse_factor(std::string_view text, const FactorRange& range = {});
// A whole number from `least` to `most`.
[[nodiscard]] std::int64_t parse_integer(std::string_view text, std::int64_t least,
                                         std::int64_t most);

}  // namespace counterflow
