#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/bind.h"
#include "report/compare.h"
#include "report/draw.h"
#include "report/json/reader.h"
#include "report/report.h"
#include "report/report_json.h"
#include "scheduler/error.h"

// report: figures, pictures, comparison.
namespace counterflow::python {
namespace {

using SharedReport = std::shared_ptr<Report>;

// A member that is a Time or Bytes, as a plain number.
template <typename Class, typename T>
auto number(T Class::*member) {
  return [member](const Class& value) -> std::int64_t {
    if constexpr (std::is_same_v<T, Bytes>) {
      return (value.*member).value;
    } else {
      return (value.*member).count();
    }
  };
}

Report report_from_json(const std::string& text, const std::string& file) {
  const nlohmann::json document = json::parse(text, file);
  return read_report(json::Node(document, file));
}

void bind_rank_report(py::module_& module) {
  py::class_<RankReport>(module, "RankReport", "The figures of one rank.")
      .def_property_readonly("busy_ns", number(&RankReport::busy))
      .def_property_readonly("idle_ns", number(&RankReport::idle))
      .def_property_readonly("first_start_ns", number(&RankReport::first_start))
      .def_property_readonly("last_end_ns", number(&RankReport::last_end))
      .def_readonly("peak_activations", &RankReport::peak_activations)
      .def_readonly("peak_in_flight", &RankReport::peak_in_flight)
      .def_property_readonly("peak_memory_bytes", number(&RankReport::peak_memory))
      .def_property_readonly("comm_exposed_ns", number(&RankReport::comm_exposed))
      .def("__repr__", [](const RankReport& r) {
        return fmt::format("<RankReport: busy {} ns, idle {} ns>", r.busy.count(), r.idle.count());
      });
}

void bind_consecutive_steps(py::module_& module) {
  py::class_<ConsecutiveSteps>(module, "ConsecutiveSteps",
                               "The figures of steps one behind the other, without a barrier.")
      .def_readonly("steps", &ConsecutiveSteps::steps)
      .def_property_readonly("makespan_ns", number(&ConsecutiveSteps::makespan))
      .def_property_readonly("steady_step_ns", number(&ConsecutiveSteps::step))
      .def_property_readonly("peak_memory_bytes",
                             [](const ConsecutiveSteps& c) {
                               std::vector<std::int64_t> peaks;
                               for (const Bytes peak : c.peak_memory) peaks.push_back(peak.value);
                               return peaks;
                             })
      .def("__repr__", [](const ConsecutiveSteps& c) {
        return fmt::format("<ConsecutiveSteps: {} of {} ns each>", c.steps, c.step.count());
      });
}

void bind_figures(py::module_& module) {
  py::class_<Report, SharedReport>(module, "Report", "The figures of one run.")
      .def_readonly("schedule", &Report::schedule)
      .def_readonly("ranks", &Report::ranks)
      .def_readonly("stages", &Report::stages)
      .def_readonly("microbatches", &Report::microbatches)
      .def_readonly("execution", &Report::execution)
      .def_property_readonly("makespan_ns", number(&Report::makespan))
      .def_property_readonly("span_ns", number(&Report::span))
      .def_readonly("bubble_fraction", &Report::bubble_fraction)
      .def_readonly("span_bubble_fraction", &Report::span_bubble_fraction)
      .def_property_readonly("lower_bound_ns", number(&Report::lower_bound))
      .def_readonly("lower_bound_by", &Report::bound_argument)
      .def_readonly("gap", &Report::gap)
      .def_property_readonly("formula_idle_ns",
                             [](const Report& r) -> std::optional<std::int64_t> {
                               if (!r.formula_idle) return std::nullopt;
                               return r.formula_idle->count();
                             })
      .def_readonly("formula_source", &Report::formula_source)
      .def_property_readonly("step_ns",
                             [](const Report& r) -> std::optional<std::int64_t> {
                               if (!r.step) return std::nullopt;
                               return r.step->count();
                             })
      .def_readonly("consecutive_steps", &Report::consecutive)
      .def_readonly("notes", &Report::notes)
      .def_readonly("warnings", &Report::warnings)
      .def_readonly("per_rank", &Report::per_rank)
      .def("summary", [](const Report& r) { return summary(r); })
      .def("to_json", [](const Report& r) { return to_json(r); })
      .def_static("from_json", &report_from_json, py::arg("text"), py::arg("file") = "report.json")
      .def(
          "__eq__", [](const Report& a, const Report& b) { return to_json(a) == to_json(b); },
          py::is_operator())
      .def("__repr__",
           [](const Report& r) {
             return fmt::format("<Report of {}: makespan {} ns, bubble {:.4f}>", r.schedule,
                                r.makespan.count(), r.bubble_fraction);
           })
      .def("_repr_html_", html("report"))
      .def(py::pickle(
          [](const Report& value) { return to_json(value); },
          [](const std::string& text) { return report_from_json(text, "report.json"); }));
}

DrawContext context(const ProgramTimeline& timeline, const Report& report) {
  return {*timeline.program, timeline.times, report, timeline.memory_limits};
}

// The drawing that `draw` makes of a run.
template <typename Draw>
auto drawn(Draw draw) {
  return [draw](const SharedRun& run) { return draw(context(*run.timeline, *run.report)); };
}

void bind_run(py::module_& module) {
  py::class_<SharedRun>(module, "Run", "A program that ran to its end, and its figures.")
      .def(py::init([](std::shared_ptr<ProgramTimeline> timeline, SharedReport report) {
             return SharedRun{timeline->program, std::move(timeline), std::move(report)};
           }),
           py::arg("timeline").none(false), py::arg("report").none(false))
      .def_readonly("program", &SharedRun::program)
      .def_readonly("timeline", &SharedRun::timeline)
      .def_readonly("report", &SharedRun::report)
      .def("svg", drawn([](const DrawContext& c) { return timeline_svg(c); }), WithoutLock())
      .def("html", drawn([](const DrawContext& c) { return timeline_html(c); }), WithoutLock())
      .def("trace_json", drawn([](const DrawContext& c) { return trace_json(c); }), WithoutLock())
      .def("timeline_json", drawn([](const DrawContext& c) { return timeline_json(c); }),
           WithoutLock())
      .def("__repr__",
           [](const SharedRun& r) {
             return fmt::format("<Run of {}: makespan {} ns, bubble {:.4f}>", r.report->schedule,
                                r.report->makespan.count(), r.report->bubble_fraction);
           })
      .def("_repr_html_", html("run"));
}

NamedRun named_run(const std::string& name, const SharedRun& run) {
  return {name, make_drawing(context(*run.timeline, *run.report))};
}

// A list of its own, which Python does not take for any list.
struct Comparison {
  std::vector<NamedRun> runs;
};

Comparison compared(const std::vector<const NamedRun*>& runs) {
  Comparison comparison;
  for (const NamedRun* run : runs) {
    if (run == nullptr) throw py::type_error("None is no run");
    comparison.runs.push_back(*run);
  }
  if (runs.empty()) throw InputError("there is nothing to compare");
  return comparison;
}

// A list of what `get` says of each run.
template <typename Get>
auto of_each(Get get) {
  return [get](const Comparison& comparison) {
    py::list values;
    for (const NamedRun& run : comparison.runs) values.append(get(run));
    return values;
  };
}

void bind_comparison(py::module_& module) {
  py::class_<NamedRun>(module, "NamedRun", "What a comparison knows of one run.")
      .def(py::init(&named_run), py::arg("name"), py::arg("run"))
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& name) {
            return NamedRun{name, parse_timeline_json(text, name)};
          },
          py::arg("text"), py::arg("name") = "timeline.json", WithoutLock())
      .def_readonly("name", &NamedRun::name)
      .def_property_readonly("report", [](const NamedRun& run) { return run.drawing.report; });
  py::class_<Comparison>(module, "Comparison", "Several runs side by side.")
      .def(py::init(&compared), py::arg("runs"))
      .def_property_readonly("names", of_each([](const NamedRun& run) { return run.name; }))
      .def_property_readonly("reports",
                             of_each([](const NamedRun& run) { return run.drawing.report; }))
      .def("table", [](const Comparison& c) { return compare_table(c.runs); })
      .def(
          "html", [](const Comparison& c) { return compare_html(c.runs); }, WithoutLock())
      .def("to_json", [](const Comparison& c) { return compare_json(c.runs); })
      .def("__len__", [](const Comparison& c) { return c.runs.size(); })
      .def("__str__", [](const Comparison& c) { return compare_table(c.runs); })
      .def(
          "__repr__",
          [](const Comparison& c) { return fmt::format("<Comparison of {} runs>", c.runs.size()); })
      .def("_repr_html_", html("comparison"));
}

}  // namespace

void bind_report(py::module_& module) {
  bind_rank_report(module);
  bind_consecutive_steps(module);
  bind_figures(module);
  bind_run(module);
  bind_comparison(module);
  module.def(
      "measure",
      [](const ProgramTimeline& timeline) { return measure(*timeline.program, timeline.times); },
      py::arg("timeline"), WithoutLock());
}

}  // namespace counterflow::python
