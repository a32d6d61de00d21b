#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "python/arrays.h"
#include "python/bind.h"
#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"

// scheduler/ir: schedules and schedule files.
namespace counterflow::python {
namespace {

// One cell as text: "0F3" or "(0F7;7B3)OVERLAP_F_B".
Slot parse_slot(const std::string& text) {
  const ScheduleFile file = parse_schedule(text, "'" + text + "'");
  const Schedule schedule = file.compute();
  const bool one = schedule.ranks.size() == 1 && schedule.ranks.front().size() == 1 &&
                   file.rows.front().size() == 1;
  if (!one) {
    throw InputError(fmt::format(
        "'{}' is not one compute op: write stage, kind and microbatch, as in 0F3", text));
  }
  return schedule.ranks.front().front();
}

Slot slot_of(const py::handle& cell) {
  if (py::isinstance<Slot>(cell)) return cell.cast<Slot>();
  if (py::isinstance<Op>(cell)) return {cell.cast<Op>(), {}};
  if (py::isinstance<py::str>(cell)) return parse_slot(cell.cast<std::string>());
  if (py::isinstance<py::tuple>(cell)) {
    const auto pair = py::reinterpret_borrow<py::tuple>(cell);
    if (pair.size() == 2) {
      return {slot_of(pair[0]).first, slot_of(pair[1]).first};
    }
  }
  throw py::type_error("a cell of a schedule is an Op, a Slot, a pair of two Ops, or text as 0F3");
}

// No number from an array may be one that the text form or a table look-up does not know.
void check_op(const Op& op) {
  if (op.kind > kLastOpKind || op.microbatch < 0 || op.microbatch >= kMaxMicrobatches) {
    throw InputError(fmt::format("kind {}, replica {}, microbatch {} is no op",
                                 static_cast<int>(op.kind), op.replica, op.microbatch));
  }
}

void check_slot(const Slot& slot) {
  check_op(slot.first);
  check_op(slot.second);
  const bool compute = is_compute(slot.first.kind);
  const bool pair = slot.first.kind == OpKind::forward && is_backward(slot.second.kind);
  if (!compute || (slot.is_pair() && !pair)) {
    throw InputError(fmt::format(
        "'{}' cannot stand in a schedule: it holds compute, and a pair is a forward with a "
        "backward; communication is inferred",
        slot.first.kind == OpKind::none ? "" : to_string(slot)));
  }
}

Schedule make_schedule(std::string name, const py::iterable& rows) {
  Schedule schedule{std::move(name), {}};
  for (const py::handle row : rows) {
    if (py::isinstance<py::str>(row)) {
      throw py::type_error("a row of a schedule is a list of cells, not one text");
    }
    std::vector<Slot>& slots = schedule.ranks.emplace_back();
    for (const py::handle cell : py::reinterpret_borrow<py::iterable>(row)) {
      slots.push_back(slot_of(cell));
      check_slot(slots.back());
    }
  }
  return schedule;
}

Schedule schedule_from_arrays(std::string name, const std::vector<py::array>& ranks) {
  Schedule schedule{std::move(name), {}};
  for (const py::array& rank : ranks) {
    schedule.ranks.push_back(table_of<Slot>(rank, "Schedule.from_arrays"));
    for (const Slot& slot : schedule.ranks.back()) check_slot(slot);
  }
  return schedule;
}

py::list arrays_of(const py::object& self) {
  py::list arrays;
  for (const auto& rank : self.cast<const Schedule&>().ranks) arrays.append(view(rank, self));
  return arrays;
}

void bind_compute_schedule(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", "For each rank the order of its compute.")
      .def(py::init(&make_schedule), py::arg("name"), py::arg("rows"))
      .def_static("from_arrays", &schedule_from_arrays, py::arg("name"), py::arg("ranks"))
      .def_static(
          "from_csv",
          [](const std::string& text, const std::string& name) {
            return parse_schedule(text, name).compute();
          },
          py::arg("text"), py::arg("name") = "schedule.csv", WithoutLock())
      .def_readonly("name", &Schedule::name)
      .def_property_readonly("ranks", [](const Schedule& s) { return s.ranks.size(); })
      .def(
          "slots",
          [](const Schedule& s, std::int64_t rank) {
            return s.ranks[checked_index(rank, s.ranks.size(), "rank")];
          },
          py::arg("rank"))
      .def(
          "array",
          [](const py::object& self, std::int64_t rank) {
            const auto& ranks = self.cast<const Schedule&>().ranks;
            return view(ranks[checked_index(rank, ranks.size(), "rank")], self);
          },
          py::arg("rank"))
      .def(
          "to_csv", [](const Schedule& s) { return to_csv(s); }, WithoutLock())
      .def("__len__", &Schedule::size)
      .def(
          "__eq__",
          [](const Schedule& a, const Schedule& b) {
            return a.name == b.name && a.ranks == b.ranks;
          },
          py::is_operator())
      .def("__repr__",
           [](const Schedule& s) {
             return fmt::format("<Schedule {}: {} ranks, {} slots>", s.name, s.ranks.size(),
                                s.size());
           })
      .def("_repr_html_", html("schedule"))
      .def(py::pickle(
          [](const py::object& self) {
            py::list copies;
            for (const py::handle array : arrays_of(self)) copies.append(array.attr("copy")());
            return py::make_tuple(self.attr("name"), copies);
          },
          [](const py::tuple& state) {
            return schedule_from_arrays(state[0].cast<std::string>(),
                                        state[1].cast<std::vector<py::array>>());
          }));
}

void bind_schedule_file(py::module_& module) {
  py::class_<ScheduleFile>(module, "ScheduleFile",
                           "A schedule as a CSV file holds it, with or without communication.")
      .def_static("from_csv", &parse_schedule, py::arg("text"), py::arg("name") = "schedule.csv",
                  WithoutLock())
      .def_readonly("name", &ScheduleFile::name)
      .def_readonly("has_communication", &ScheduleFile::has_communication)
      .def_property_readonly("ranks", [](const ScheduleFile& file) { return file.rows.size(); })
      .def("compute", &ScheduleFile::compute)
      .def(
          "to_csv", [](const ScheduleFile& file) { return to_csv(file); }, WithoutLock())
      .def("__repr__",
           [](const ScheduleFile& file) {
             return fmt::format("<ScheduleFile {}: {} ranks, {} communication>", file.name,
                                file.rows.size(), file.has_communication ? "with" : "without");
           })
      .def(py::pickle(
          [](const ScheduleFile& file) { return py::make_tuple(to_csv(file), file.name); },
          [](const py::tuple& state) {
            return parse_schedule(state[0].cast<std::string>(), state[1].cast<std::string>());
          }));
}

}  // namespace

void bind_schedule(py::module_& module) {
  bind_compute_schedule(module);
  bind_schedule_file(module);
}

}  // namespace counterflow::python
