#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/drawing.h"
#include "scheduler/ir/op.h"

namespace counterflow {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  friend constexpr auto operator<=>(const Colour&, const Colour&) = default;
};

// "#0072b2"
[[nodiscard]] std::string hex(Colour colour);
// `share` of b, the rest of a.
[[nodiscard]] Colour mixed(Colour a, Colour b, double share);
// Does dark text read better on it than white?
[[nodiscard]] bool is_light(Colour colour);

// The colour of a kind: hues of Okabe and Ito's palette, told apart whatever one's colour vision.
[[nodiscard]] Colour base_colour(OpKind kind);

// The colours of one rank: the hue says the kind, the shade the chunk, or the direction where the
// rank holds two replicas.
class LaneColours {
 public:
  explicit LaneColours(const Lane& lane);
  [[nodiscard]] Colour of(const Op& op) const;
  // What the lighter shades of this rank mean: "second direction", "later chunk", or nothing.
  [[nodiscard]] std::string_view lighter() const;

 private:
  std::vector<std::uint16_t> stages_;    // of this rank, ascending
  std::optional<std::uint8_t> replica_;  // of the first op
  bool two_replicas_ = false;            // an even one, that is the first direction, and the next
};

}  // namespace counterflow
