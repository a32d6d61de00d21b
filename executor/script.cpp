#include "executor/script.h"

#include <cstdint>
#include <utility>

namespace counterflow::exec {

Script script_of(const Program& program, const std::vector<Node>& nodes,
                 std::vector<Prerequisites::Index> order) {
  Script script;
  script.nodes.reserve(order.size());
  for (const Prerequisites::Index index : order) {
    Node& node = script.nodes.emplace_back(nodes[index]);
    if (node.shape != Node::Shape::run) continue;
    const auto first = program.ranks[node.rank].accesses.begin() + node.body.first;
    node.body.first = static_cast<std::uint32_t>(script.accesses.size());
    script.accesses.insert(script.accesses.end(), first, first + node.body.count);
  }
  script.order = std::move(order);
  return script;
}

}  // namespace counterflow::exec
