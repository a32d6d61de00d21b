#include "report/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace counterflow {
namespace {

constexpr Colour kWhite{255, 255, 255};
constexpr double kLightestShade = 0.5;  // share of white in the last chunk

std::uint8_t mixed(std::uint8_t a, std::uint8_t b, double share) {
  return static_cast<std::uint8_t>(std::lround(a + share * (b - a)));
}

}  // namespace

std::string hex(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

Colour mixed(Colour a, Colour b, double share) {
  return {mixed(a.red, b.red, share), mixed(a.green, b.green, share), mixed(a.blue, b.blue, share)};
}

bool is_light(Colour colour) {
  return 0.299 * colour.red + 0.587 * colour.green + 0.114 * colour.blue > 140;
}

Colour base_colour(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
    case OpKind::send_forward:
    case OpKind::receive_forward:
      return {0x2f, 0x7e, 0xbc};
    case OpKind::backward:
    case OpKind::send_backward:
    case OpKind::receive_backward:
      return {0xd5, 0x5e, 0x1f};
    case OpKind::backward_input:
      return {0xe8, 0xa3, 0x1c};
    case OpKind::backward_weight:
      return {0x1f, 0x9e, 0x7a};
    case OpKind::recompute:
      return {0xb8, 0x6f, 0xa6};
    default:
      return {0x80, 0x88, 0x94};
  }
}

LaneColours::LaneColours(const Lane& lane) {
  for (const Box& box : lane.boxes) {
    if (box.kind != InstructionKind::run) continue;
    for (const Op& op : lane.ops_of(box)) {
      if (!replica_) replica_ = op.replica;
      two_replicas_ |= op.replica != *replica_;
      const auto place = std::lower_bound(stages_.begin(), stages_.end(), op.stage);
      if (place == stages_.end() || *place != op.stage) stages_.insert(place, op.stage);
    }
  }
}

Colour LaneColours::of(const Op& op) const {
  const Colour base = base_colour(op.kind);
  if (two_replicas_) return mixed(base, kWhite, op.replica % 2 == 0 ? 0 : kLightestShade);
  if (stages_.size() < 2) return base;
  const auto place = std::lower_bound(stages_.begin(), stages_.end(), op.stage);
  const auto chunk = static_cast<double>(place - stages_.begin());
  return mixed(base, kWhite,
               kLightestShade * std::min(1.0, chunk / static_cast<double>(stages_.size() - 1)));
}

std::string_view LaneColours::lighter() const {
  if (two_replicas_) return "second direction";
  return stages_.size() > 1 ? "later chunk" : "";
}

}  // namespace counterflow
