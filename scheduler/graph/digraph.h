#pragma once

#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <cstdint>
#include <utility>
#include <vector>

namespace counterflow {

using Vertex = std::uint32_t;

// Why one thing waits for another.
enum class Reason : std::uint8_t {
  // Between the ops of a schedule.
  order,       // the rank's order
  activation,  // output of F(previous stage)
  gradient,    // input gradient of the next stage
  stash,       // a backward needs its own forward
  weight,      // W needs its I
  // Between the instructions of a program.
  begin,   // an instruction ends after it begins
  stream,  // in-order stream
  event,   // waits for a recorded event
  peer,    // the other end of a message has to be there
};

struct EdgeReason {
  Reason reason = Reason::order;
};

// Compressed sparse rows: 8 bytes a vertex and edge, built in one go.
using Digraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, EdgeReason,
                                                   boost::no_property, Vertex, Vertex>;

// Collects edges; build() sorts them into rows. O(V + E).
class DigraphBuilder {
 public:
  void reserve(std::size_t edges);
  void add(Vertex from, Vertex to, Reason reason);
  [[nodiscard]] Digraph build(Vertex vertices) &&;

 private:
  std::vector<std::pair<Vertex, Vertex>> edges_;
  std::vector<EdgeReason> reasons_;
};

// Kahn's algorithm: every vertex after all it depends on. Vertices on or behind a cycle are left
// out, so the graph is acyclic exactly if all are in. O(V + E).
[[nodiscard]] std::vector<Vertex> topological_order(const Digraph& graph);

// One step of a cycle: `vertex`, and why the next one (the first after the last) waits for it.
struct CycleStep {
  Vertex vertex = 0;
  Reason reason = Reason::order;
};

// A short cycle, empty if there is none. O(V + E).
[[nodiscard]] std::vector<CycleStep> find_cycle(const Digraph& graph);

}  // namespace counterflow
