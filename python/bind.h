#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "report/report.h"
#include "scheduler/ir/diagnostic.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/problem/problem.h"

// The Python module: one function a folder declares what that folder offers. Everything bound is
// immutable from Python, so that arrays may look into it and threads may share it.
namespace counterflow::python {

namespace py = pybind11;

// Long work runs without the interpreter's lock.
using WithoutLock = py::call_guard<py::gil_scoped_release>;

// A timeline together with the program it times, as Python holds it.
struct ProgramTimeline {
  std::shared_ptr<Program> program;
  Timeline times;
  std::vector<Bytes> memory_limits;  // one a rank, or empty
};

// A run as Python holds it: its parts are shared with whoever asks for them.
struct SharedRun {
  std::shared_ptr<Program> program;
  std::shared_ptr<ProgramTimeline> timeline;
  std::shared_ptr<Report> report;
};

// Calls a function of counterflow._html on the object: how it shows itself in a notebook.
[[nodiscard]] inline auto html(const char* function) {
  return [function](const py::object& self) {
    return py::module_::import("counterflow._html").attr(function)(self).cast<std::string>();
  };
}

// An index from Python, where it is one of 0..size-1. Throws IndexError.
[[nodiscard]] std::size_t checked_index(std::int64_t index, std::size_t size, const char* what);

// Throws InputError unless every number and name of the program means something.
void check_program(const Program& program);

// Throws InputError unless the program has the problem's ranks, stages and microbatches.
void check_same_shape(const Program& program, const Problem& problem);

// A number of threads from Python; 0: one a core. Throws InputError.
[[nodiscard]] int checked_threads(std::int64_t threads);

void bind_errors(py::module_& module);
void bind_ops(py::module_& module);
void bind_schedule(py::module_& module);
void bind_problem(py::module_& module);
void bind_program(py::module_& module);
void bind_families(py::module_& module);
void bind_timeline(py::module_& module);
void bind_trials(py::module_& module);
void bind_search(py::module_& module);
void bind_report(py::module_& module);
void bind_driver(py::module_& module);

}  // namespace counterflow::python
