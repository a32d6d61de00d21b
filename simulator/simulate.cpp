#include "simulator/simulate.h"

#include <cstdint>

#include "simulator/disturbances.h"
#include "simulator/engine.h"
#include "simulator/memory.h"

namespace counterflow {
namespace {

// The first instruction of each rank that could not end.
Diagnostics stuck(const Program& program, const Timeline& timeline) {
  Diagnostics diagnostics;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const auto& times = timeline.ranks[rank].instructions;
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i].end >= Time{0}) continue;
      diagnostics.push_back(
          {.rule = "deadlock",
           .rank = static_cast<Rank>(rank),
           .index = static_cast<std::int64_t>(i),
           .op = program.ranks[rank].instructions[i].op,
           .message = times[i].begin >= Time{0} ? "began and never ends" : "never begins"});
      break;
    }
  }
  return diagnostics;
}

Simulation outcome(const Program& program, const sim::Engine& engine) {
  Simulation simulation;
  simulation.timeline.ranks = engine.timelines();
  simulation.diagnostics = stuck(program, simulation.timeline);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    RankTimeline& timeline = simulation.timeline.ranks[rank];
    timeline.memory = memory_over_time(program, program.ranks[rank], timeline.instructions);
  }
  return simulation;
}

}  // namespace

Simulation simulate(const Program& program, const Links& links, const ExecutionModel& execution) {
  const sim::Wiring wiring(program, links, execution);
  sim::Engine engine(wiring);
  engine.run();
  return outcome(program, engine);
}

Simulation simulate(const Program& program, const Links& links, const ExecutionModel& execution,
                    const Scenario& scenario) {
  const sim::Wiring wiring(program, links, execution);
  const sim::Disturbances disturbances(scenario, links, program.ranks.size());
  sim::Engine engine(wiring, &disturbances);
  engine.run();
  return outcome(program, engine);
}

}  // namespace counterflow
