#include "scheduler/ir/stage_graph.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace counterflow {
namespace {

std::vector<Stage> list(std::span<const Stage> stages) {
  return {stages.begin(), stages.end()};
}

std::string refusal_of(int stages, std::vector<StageGraph::Edge> edges) {
  try {
    const StageGraph graph(stages, std::move(edges));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(StageGraph, ChainFeedsTheNext) {
  const StageGraph chain = StageGraph::chain(3);
  EXPECT_EQ(chain.stages(), 3);
  EXPECT_TRUE(chain.predecessors(0).empty());
  EXPECT_EQ(list(chain.successors(0)), (std::vector<Stage>{1}));
  EXPECT_EQ(list(chain.predecessors(2)), (std::vector<Stage>{1}));
  EXPECT_TRUE(chain.successors(2).empty());
  EXPECT_TRUE(chain.has_edge(0, 1));
  EXPECT_FALSE(chain.has_edge(0, 2));
  EXPECT_FALSE(chain.has_edge(1, 0));
}

TEST(StageGraph, OfOneStageHasNoEdges) {
  EXPECT_EQ(StageGraph::chain(1).stages(), 1);
  EXPECT_TRUE(StageGraph::chain(1).successors(0).empty());
}

TEST(StageGraph, KeepsTheDeclaredOrderOfInputs) {
  const StageGraph graph(3, {{1, 2}, {0, 2}, {0, 1}});
  EXPECT_EQ(list(graph.predecessors(2)), (std::vector<Stage>{1, 0}));
  EXPECT_EQ(list(graph.successors(0)), (std::vector<Stage>{2, 1}));
}

TEST(StageGraph, RefusesEdgesThatAreNotThere) {
  EXPECT_EQ(refusal_of(2, {{0, 2}}), "edge [0, 2] names a stage outside 0..1");
  EXPECT_EQ(refusal_of(2, {{-1, 1}}), "edge [-1, 1] names a stage outside 0..1");
  EXPECT_EQ(refusal_of(2, {{1, 0}}),
            "edge [1, 0] does not go to a higher stage; number the stages so that each feeds only "
            "higher ones");
  EXPECT_EQ(refusal_of(2, {{1, 1}}),
            "edge [1, 1] does not go to a higher stage; number the stages so that each feeds only "
            "higher ones");
  EXPECT_EQ(refusal_of(3, {{0, 1}, {1, 2}, {0, 1}}), "edge [0, 1] is given twice");
}

}  // namespace
}  // namespace counterflow
