#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/arrays.h"
#include "python/bind.h"
#include "report/draw.h"
#include "report/program_json.h"
#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"

// scheduler/ir: programs, their tables as arrays.
namespace counterflow::python {
namespace {

template <typename T>
using Table = std::vector<T> RankProgram::*;

// The names of an enumeration, from the first to `last`, at their numbers.
template <typename E>
py::tuple names_up_to(E last) {
  py::tuple names(static_cast<std::size_t>(last) + 1);
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = std::string(name(static_cast<E>(i)));
  }
  return names;
}

template <typename E>
void check_number(E value, E last, const char* what) {
  if (value <= last) return;
  throw InputError(
      fmt::format("{} {} is outside 0..{}", what, static_cast<int>(value), static_cast<int>(last)));
}

void check_op_numbers(const Op& op) {
  check_number(op.kind, kLastOpKind, "op kind");
  if (op.replica > 1) throw InputError(fmt::format("replica {} is outside 0..1", op.replica));
}

void check_instruction(const Instruction& instruction) {
  check_number(instruction.kind, InstructionKind::step_end, "instruction kind");
  check_op_numbers(instruction.op);
  check_op_numbers(instruction.paired);
  if (instruction.kind == InstructionKind::run) {
    if (instruction.kernel == kNone || !is_compute(instruction.op.kind)) {
      throw InputError("a run needs a kernel and an op that computes");
    }
  } else if (instruction.kind != InstructionKind::step_end &&
             instruction.communicator == kNoCommunicator) {
    throw InputError(fmt::format("a {} needs a communicator", name(instruction.kind)));
  }
}

// The numbers that stand for names, and what machines rely on; the rest the reader of program.json
// checks.
void check_numbers(const RankProgram& rank) {
  for (const Instruction& each : rank.instructions) check_instruction(each);
  for (const Transfer& each : rank.transfers) {
    check_number(each.type, DataType::fp8, "transfer type");
    check_number(each.payload.kind, PayloadKind::metadata, "payload kind");
  }
  for (const Collective& each : rank.collectives) {
    check_number(each.kind, CollectiveKind::barrier, "collective kind");
  }
  for (const BufferSlot& each : rank.slots) {
    check_number(each.pool, kLastBufferPool, "slot pool");
  }
}

// Read as a byte before it becomes a bool.
void check_flag(const py::array& array, const char* field) {
  const py::object bytes = array[py::str(field)];
  if (py::bool_(bytes.attr("__gt__")(1).attr("any")())) {
    throw InputError(fmt::format("{} is 0 or 1", field));
  }
}

using OptionalArray = std::optional<py::array>;

struct Tables {
  OptionalArray instructions, waits, transfers, collectives, accesses, slots;
  std::optional<std::vector<Stream>> streams;
  std::optional<std::uint32_t> events;
};

RankProgram replaced(RankProgram rank, const Tables& tables) {
  const auto put = [&rank](auto table, const OptionalArray& array, const char* what) {
    using T = typename std::decay_t<decltype(rank.*table)>::value_type;
    if (array) rank.*table = table_of<T>(*array, what);
  };
  put(&RankProgram::instructions, tables.instructions, "instructions");
  put(&RankProgram::waits, tables.waits, "waits");
  put(&RankProgram::transfers, tables.transfers, "transfers");
  if (tables.transfers) check_flag(*tables.transfers, "is_send");
  put(&RankProgram::collectives, tables.collectives, "collectives");
  put(&RankProgram::accesses, tables.accesses, "accesses");
  put(&RankProgram::slots, tables.slots, "slots");
  if (tables.streams) rank.streams = *tables.streams;
  if (tables.events) rank.events = *tables.events;
  return rank;
}

Program with_rank(const Program& program, std::int64_t rank, const Tables& tables) {
  const std::size_t index = checked_index(rank, program.ranks.size(), "rank");
  Program next = program;
  next.ranks[index] = replaced(std::move(next.ranks[index]), tables);
  check_program(next);
  return next;
}

template <typename T>
auto table_view(Table<T> table) {
  return [table](const py::object& self) {
    return view(self.cast<const RankProgram&>().*table, self);
  };
}

void bind_stream(py::module_& module) {
  module.attr("STREAM_ROLES") = names_up_to(StreamRole::host);
  py::class_<Stream>(module, "Stream", "An in-order queue of a rank.")
      .def(py::init([](const std::string& role, int priority, const std::string& label) {
             for (int i = 0; i <= static_cast<int>(StreamRole::host); ++i) {
               if (name(static_cast<StreamRole>(i)) != role) continue;
               if (priority < -128 || priority > 127) {
                 throw InputError(fmt::format("priority {} is outside -128..127", priority));
               }
               return Stream{static_cast<StreamRole>(i), static_cast<std::int8_t>(priority), label};
             }
             throw InputError(fmt::format("unknown role '{}' of a stream; see STREAM_ROLES", role));
           }),
           py::arg("role"), py::arg("priority") = 0, py::arg("label") = "")
      .def_property_readonly("role", [](const Stream& s) { return std::string(name(s.role)); })
      .def_property_readonly("priority", [](const Stream& s) { return int{s.priority}; })
      .def_readonly("label", &Stream::label)
      .def(
          "__eq__", [](const Stream& a, const Stream& b) { return a == b; }, py::is_operator())
      .def("__repr__", [](const Stream& s) {
        return fmt::format("Stream(role='{}', priority={}, label='{}')", name(s.role),
                           int{s.priority}, s.label);
      });
}

void bind_rank(py::module_& module) {
  py::class_<RankProgram>(module, "RankProgram", "One rank's instructions in host issue order.")
      .def_readonly("streams", &RankProgram::streams)
      .def_property_readonly("instructions", table_view(&RankProgram::instructions))
      .def_property_readonly("waits", table_view(&RankProgram::waits))
      .def_property_readonly("transfers", table_view(&RankProgram::transfers))
      .def_property_readonly("collectives", table_view(&RankProgram::collectives))
      .def_property_readonly("accesses", table_view(&RankProgram::accesses))
      .def_property_readonly("slots", table_view(&RankProgram::slots))
      .def_readonly("events", &RankProgram::events)
      .def_property_readonly("static_memory_bytes",
                             [](const RankProgram& r) { return r.static_memory.value; })
      .def("__len__", [](const RankProgram& r) { return r.instructions.size(); })
      .def("__repr__", [](const RankProgram& r) {
        return fmt::format("<RankProgram: {} instructions on {} streams>", r.instructions.size(),
                           r.streams.size());
      });
}

void bind_files(py::class_<Program, std::shared_ptr<Program>>& program) {
  program.def(
             "to_csv", [](const Program& p) { return to_csv(p); }, WithoutLock())
      .def(
          "to_json", [](const Program& p) { return program_json(p); }, WithoutLock())
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& file) {
            return parse_program_json(text, file);
          },
          py::arg("text"), py::arg("file") = "program.json", WithoutLock())
      .def(py::pickle([](const Program& value) { return program_json(value); },
                      [](const std::string& text) { return parse_program_json(text); }));
}

}  // namespace

void check_program(const Program& program) {
  for (const RankProgram& rank : program.ranks) check_numbers(rank);
  // What a file may not say, a table from Python may not either.
  (void)parse_program_json(program_json(program), "program");
}

void bind_program(py::module_& module) {
  module.attr("INSTRUCTION_KINDS") = names_up_to(InstructionKind::step_end);
  module.attr("PAYLOAD_KINDS") = names_up_to(PayloadKind::metadata);
  module.attr("DATA_TYPES") = names_up_to(DataType::fp8);
  bind_stream(module);
  bind_rank(module);
  py::class_<Program, std::shared_ptr<Program>> program(
      module, "Program", "What the compiler makes, verification proves and machines run.");
  program.def_readonly("schedule", &Program::schedule)
      .def_readonly("stages", &Program::stages)
      .def_readonly("microbatches", &Program::microbatches)
      .def_property_readonly("ranks", [](const Program& p) { return p.ranks.size(); })
      .def_property_readonly("hash",
                             [](const Program& p) { return fmt::format("{:016x}", hash(p)); })
      .def_property_readonly(
          "kernels",
          [](const py::object& self) { return view(self.cast<const Program&>().kernels, self); })
      .def(
          "rank",
          [](const Program& p, std::int64_t rank) -> const RankProgram& {
            return p.ranks[checked_index(rank, p.ranks.size(), "rank")];
          },
          py::arg("rank"), py::return_value_policy::reference_internal)
      .def(
          "with_rank",
          [](const Program& p, std::int64_t rank, OptionalArray instructions, OptionalArray waits,
             OptionalArray transfers, OptionalArray collectives, OptionalArray accesses,
             OptionalArray slots, std::optional<std::vector<Stream>> streams,
             std::optional<std::uint32_t> events) {
            return with_rank(p, rank,
                             {std::move(instructions), std::move(waits), std::move(transfers),
                              std::move(collectives), std::move(accesses), std::move(slots),
                              std::move(streams), events});
          },
          py::arg("rank"), py::kw_only(), py::arg("instructions") = py::none(),
          py::arg("waits") = py::none(), py::arg("transfers") = py::none(),
          py::arg("collectives") = py::none(), py::arg("accesses") = py::none(),
          py::arg("slots") = py::none(), py::arg("streams") = py::none(),
          py::arg("events") = py::none())
      .def("__len__", &Program::size)
      .def(
          "__eq__", [](const Program& a, const Program& b) { return a == b; }, py::is_operator())
      .def("__repr__",
           [](const Program& p) {
             return fmt::format("<Program of {}: {} ranks, {} instructions>", p.schedule,
                                p.ranks.size(), p.size());
           })
      .def("_repr_html_", html("program"));
  bind_files(program);
}

}  // namespace counterflow::python
