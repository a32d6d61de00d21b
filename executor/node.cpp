#include "executor/node.h"

#include <span>

namespace counterflow::exec {
namespace {

using Index = Prerequisites::Index;

Node::Shape shape_of(const Instruction& what, std::size_t wait_for_begin,
                     std::size_t wait_for_end) {
  using Shape = Node::Shape;
  if (wait_for_end > Node::kFollowers) return Shape::other;
  if (what.kind == InstructionKind::run && wait_for_begin == 0) return Shape::run;
  const bool one = what.kind == InstructionKind::transfer && what.body.count == 1;
  return one && wait_for_begin <= 1 ? Shape::message : Shape::other;
}

}  // namespace

std::vector<Node> nodes_of(const Program& program, const Prerequisites& prerequisites,
                           const Exchange& exchange) {
  const auto nobody = static_cast<Index>(prerequisites.size());
  std::vector<Node> nodes(prerequisites.size() + 1);
  Index index = 0;
  for (std::uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const Instruction& what : program.ranks[r].instructions) {
      const std::span<const Index> begins = prerequisites.after_begin(index);
      const std::span<const Index> ends = prerequisites.after_end(index);
      Node& node = nodes[index++];
      node.shape = shape_of(what, begins.size(), ends.size());
      node.stream = what.stream;
      node.rank = static_cast<std::uint16_t>(r);
      node.body = what.body;
      if (node.shape == Node::Shape::message) node.body.first = exchange.id(r, what.body.first);
      node.kernel = what.kernel;
      node.op = what.op;
      node.paired = what.paired;
      node.after_begin = begins.empty() ? nobody : begins.front();
      for (std::size_t k = 0; k < Node::kFollowers; ++k) {
        node.after_end[k] = k < ends.size() ? ends[k] : nobody;
      }
    }
  }
  return nodes;
}

}  // namespace counterflow::exec
