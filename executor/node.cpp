#include "executor/node.h"

#include <span>

namespace counterflow::exec {
namespace {

using Index = Prerequisites::Index;

Node::Shape shape_of(const Instruction& what, std::size_t wait_for_begin,
                     std::size_t wait_for_end) {
  using Shape = Node::Shape;
  if (wait_for_end > Followers::kMost) return Shape::other;
  if (what.kind == InstructionKind::run && wait_for_begin == 0) return Shape::run;
  const bool one = what.kind == InstructionKind::transfer && what.body.count == 1;
  return one && wait_for_begin <= 1 ? Shape::message : Shape::other;
}

}  // namespace

std::vector<Node> nodes_of(const Program& program, const Prerequisites& prerequisites,
                           const Exchange& exchange) {
  std::vector<Node> nodes;
  nodes.reserve(prerequisites.size());
  for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const Instruction& what : program.ranks[r].instructions) {
      const auto index = static_cast<Index>(nodes.size());
      Node& node = nodes.emplace_back();
      node.shape = shape_of(what, prerequisites.after_begin(index).size(),
                            prerequisites.after_end(index).size());
      node.stream = what.stream;
      node.rank = static_cast<std::uint16_t>(r);
      node.body = what.body;
      if (node.shape == Node::Shape::message) node.body.first = exchange.id(r, what.body.first);
      node.kernel = what.kernel;
      node.op = what.op;
      node.paired = what.paired;
    }
  }
  return nodes;
}

std::vector<Followers> followers_of(const Prerequisites& prerequisites) {
  const auto nobody = static_cast<Index>(prerequisites.size());
  std::vector<Followers> followers(prerequisites.size());
  for (Index index = 0; index < nobody; ++index) {
    const std::span<const Index> begins = prerequisites.after_begin(index);
    const std::span<const Index> ends = prerequisites.after_end(index);
    Followers& its = followers[index];
    its.after_begin = begins.empty() ? nobody : begins.front();
    for (std::size_t k = 0; k < Followers::kMost; ++k) {
      its.after_end[k] = k < ends.size() ? ends[k] : nobody;
    }
  }
  return followers;
}

}  // namespace counterflow::exec
