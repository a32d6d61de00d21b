#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "driver/faults.h"
#include "python/arrays.h"
#include "python/bind.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/graph/evaluate.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/problem/copies.h"
#include "scheduler/verify/verify.h"

// scheduler/problem, graph and bounds: what a schedule is made for, and what an order costs.
namespace counterflow::python {
namespace {

Stage checked_stage(const Problem& problem, std::int64_t stage) {
  return static_cast<Stage>(
      checked_index(stage, static_cast<std::size_t>(problem.stages()), "stage"));
}

int checked_replica(const Problem& problem, std::int64_t replica) {
  return static_cast<int>(
      checked_index(replica, static_cast<std::size_t>(problem.placement.replicas()), "replica"));
}

Rank checked_rank(const Problem& problem, std::int64_t rank) {
  return static_cast<Rank>(checked_index(rank, static_cast<std::size_t>(problem.ranks()), "rank"));
}

Op checked_op(const Problem& problem, const Op& op) {
  (void)checked_stage(problem, op.stage);
  (void)checked_index(op.microbatch, static_cast<std::size_t>(problem.microbatches), "microbatch");
  if (op.kind > OpKind::reload) {
    throw InputError("only F, B, I, W, RECOMPUTE, OFFLOAD and RELOAD have a duration, not " +
                     to_string(op));
  }
  return op;
}

// Of RECOMPUTE, OFFLOAD or RELOAD: as the stage does it, or may choose to.
std::int64_t move_ns(const Problem& problem, const Op& op) {
  const auto has = [&op](const Keeping& way) {
    return op.kind == way.restore_kind() || op.kind == way.store_kind();
  };
  if (has(problem.keeping_of(op.stage))) return problem.costs.duration(op).count();
  if (op.stage < problem.keeping_options.size()) {
    for (const Keeping& way : problem.keeping_options[op.stage]) {
      if (!has(way)) continue;
      std::vector<Keeping> keeping(static_cast<std::size_t>(problem.stages()));
      keeping[op.stage] = way;
      return with_keeping(problem, std::move(keeping)).costs.duration(op).count();
    }
  }
  throw InputError(fmt::format("stage {} has no {}; give stages.{}", op.stage, token(op.kind),
                               op.kind == OpKind::recompute ? "recompute" : "offload"));
}

std::int64_t duration_ns(const Problem& problem, const Op& first, const std::optional<Op>& second) {
  Slot slot{checked_op(problem, first), {}};
  if (!second && restores_or_stores(first.kind)) return move_ns(problem, first);
  if (second) {
    slot.second = checked_op(problem, *second);
    if (first.kind != OpKind::forward || !is_backward(second->kind)) {
      throw InputError("a fused pair is a forward with a backward");
    }
  }
  return problem.duration(slot).count();
}

std::vector<std::pair<Stage, int>> stages_of(const Problem& problem, std::int64_t rank) {
  std::vector<std::pair<Stage, int>> chunks;
  for (const Chunk& chunk : problem.placement.chunks_of(checked_rank(problem, rank))) {
    chunks.emplace_back(chunk.stage, chunk.replica);
  }
  return chunks;
}

std::vector<Stage> listed(std::span<const Stage> stages) {
  return {stages.begin(), stages.end()};
}

// Nothing may be evaluated that names a stage or microbatch there is not.
void require_valid(const Problem& problem, const Schedule& schedule) {
  Diagnostics faults = verify(problem, schedule);
  if (faults.empty()) return;
  const std::string text = fmt::format("schedule {} is faulty\n{}", schedule.name,
                                       to_text(faults, GridOf{to_csv(schedule)}));
  throw FaultyError(text, std::move(faults));
}

std::int64_t makespan_ns(const Problem& problem, const Schedule& schedule) {
  const Problem its = with_keeping_of(problem, schedule);
  require_valid(its, schedule);
  return Evaluator(its).makespan(schedule).count();
}

void bind_structure(py::class_<Problem>& problem) {
  problem
      .def_property_readonly("placement",
                             [](const Problem& p) { return std::string(name(p.placement.kind())); })
      .def(
          "rank_of",
          [](const Problem& p, std::int64_t stage, std::int64_t replica) {
            return p.placement.rank_of(checked_stage(p, stage), checked_replica(p, replica));
          },
          py::arg("stage"), py::arg("replica") = 0)
      .def("stages_of", &stages_of, py::arg("rank"))
      .def(
          "predecessors",
          [](const Problem& p, std::int64_t stage) {
            return listed(p.graph.predecessors(checked_stage(p, stage)));
          },
          py::arg("stage"))
      .def(
          "successors",
          [](const Problem& p, std::int64_t stage) {
            return listed(p.graph.successors(checked_stage(p, stage)));
          },
          py::arg("stage"))
      .def(
          "replica_of",
          [](const Problem& p, std::int64_t microbatch) {
            return p.replica_of(static_cast<Microbatch>(
                checked_index(microbatch, static_cast<std::size_t>(p.microbatches), "microbatch")));
          },
          py::arg("microbatch"))
      .def(
          "trains",
          [](const Problem& p, std::int64_t microbatch) {
            return p.trains(static_cast<Microbatch>(
                checked_index(microbatch, static_cast<std::size_t>(p.microbatches), "microbatch")));
          },
          py::arg("microbatch"))
      .def(
          "needs_backward_weight",
          [](const Problem& p, std::int64_t stage) {
            return p.needs_backward_weight(checked_stage(p, stage));
          },
          py::arg("stage"))
      .def(
          "needs_backward_input",
          [](const Problem& p, std::int64_t stage) {
            return p.needs_backward_input(checked_stage(p, stage));
          },
          py::arg("stage"));
}

std::vector<std::tuple<std::string, Microbatch, int>> phases_of(const Problem& problem) {
  std::vector<std::tuple<std::string, Microbatch, int>> phases;
  for (const Phase& phase : problem.phases) {
    phases.emplace_back(name(phase.kind), phase.first, phase.count);
  }
  return phases;
}

std::vector<std::int64_t> in_bytes(const std::vector<Bytes>& sizes) {
  std::vector<std::int64_t> values;
  for (const Bytes size : sizes) values.push_back(size.value);
  return values;
}

void bind_figures(py::class_<Problem>& problem) {
  problem
      .def_property_readonly("costs",
                             [](const py::object& self) {
                               return view(self.cast<const Problem&>().costs.stages(), self);
                             })
      .def("duration_ns", &duration_ns, py::arg("op"), py::arg("fused_with") = py::none())
      .def(
          "latency_ns",
          [](const Problem& p, std::int64_t from, std::int64_t to) {
            return p.links.latency(checked_rank(p, from), checked_rank(p, to)).count();
          },
          py::arg("source"), py::arg("destination"))
      .def_property_readonly("message_bytes", [](const Problem& p) { return in_bytes(p.message); })
      .def_property_readonly("memory_limits_bytes",
                             [](const Problem& p) { return in_bytes(p.limits.bytes); })
      .def_property_readonly("lower_bound_ns",
                             [](const Problem& p) { return lower_bound(p).count(); });
}

}  // namespace

void bind_problem(py::module_& module) {
  py::class_<Problem> problem(module, "Problem",
                              "Everything a schedule is made for, checked and expanded.");
  problem.def_property_readonly("ranks", &Problem::ranks)
      .def_property_readonly("stages", &Problem::stages)
      .def_readonly("microbatches", &Problem::microbatches)
      .def_property_readonly("data_parallel", &data_parallel)
      .def_property_readonly("replicas", [](const Problem& p) { return p.placement.replicas(); })
      .def_readonly("forward_only", &Problem::forward_only)
      .def_property_readonly("phases", phases_of)
      .def_readonly("group_size", &Problem::group_size)
      .def("__copy__", [](const Problem& p) { return Problem(p); })
      .def("__repr__",
           [](const Problem& p) {
             return fmt::format("<Problem: {} ranks, {} stages ({}), {} microbatches>", p.ranks(),
                                p.stages(), name(p.placement.kind()), p.microbatches);
           })
      .def("_repr_html_", html("problem"));
  bind_structure(problem);
  bind_figures(problem);
  module.def("makespan_ns", &makespan_ns, py::arg("problem"), py::arg("schedule"), WithoutLock());
}

}  // namespace counterflow::python
