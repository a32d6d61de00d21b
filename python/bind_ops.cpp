#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "driver/faults.h"
#include "python/bind.h"
#include "python/convert.h"
#include "scheduler/ir/diagnostic_text.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/schedule_file.h"

// scheduler/ir: ops, slots, diagnostics, the rules of a machine.
namespace counterflow::python {
namespace {

Op make_op(const std::string& kind, std::int64_t stage, std::int64_t microbatch,
           std::int64_t replica) {
  Op op;
  op.kind = op_kind(kind);
  const auto in = [](const char* what, std::int64_t value, std::int64_t most) {
    if (value >= 0 && value <= most) return;
    throw InputError(fmt::format("{} {} is outside 0..{}", what, value, most));
  };
  in("stage", stage, kMaxStages - 1);
  in("microbatch", microbatch, kMaxMicrobatches - 1);
  in("replica", replica, kMaxReplicas - 1);
  op.stage = static_cast<std::uint16_t>(stage);
  op.microbatch = has_microbatch(op.kind) ? static_cast<Microbatch>(microbatch) : 0;
  op.replica = static_cast<std::uint8_t>(replica);
  return op;
}

void bind_op(py::module_& module) {
  py::class_<Op>(module, "Op", "One unit of work: kind, stage, microbatch, replica.")
      .def(py::init(&make_op), py::arg("kind"), py::arg("stage"), py::arg("microbatch") = 0,
           py::arg("replica") = 0)
      .def_property_readonly("kind", [](const Op& op) { return std::string(token(op.kind)); })
      .def_property_readonly("stage", [](const Op& op) { return int{op.stage}; })
      .def_property_readonly("microbatch", [](const Op& op) { return op.microbatch; })
      .def_property_readonly("replica", [](const Op& op) { return int{op.replica}; })
      .def("__str__", [](const Op& op) { return to_string(op); })
      .def("__repr__", [](const Op& op) { return fmt::format("Op('{}')", to_string(op)); })
      .def("__hash__",
           [](const Op& op) {
             return py::hash(py::make_tuple(static_cast<int>(op.kind), int{op.replica},
                                            int{op.stage}, op.microbatch));
           })
      .def(
          "__eq__", [](const Op& a, const Op& b) { return a == b; }, py::is_operator())
      .def(py::pickle(
          [](const Op& op) {
            return py::make_tuple(std::string(token(op.kind)), int{op.stage}, op.microbatch,
                                  int{op.replica});
          },
          [](const py::tuple& state) {
            return make_op(state[0].cast<std::string>(), state[1].cast<std::int64_t>(),
                           state[2].cast<std::int64_t>(), state[3].cast<std::int64_t>());
          }));
}

void bind_slot(py::module_& module) {
  py::class_<Slot>(module, "Slot", "One position of a rank's order: an op, or a fused pair.")
      .def(py::init([](const Op& first, const std::optional<Op>& second) {
             return Slot{first, second.value_or(Op{})};
           }),
           py::arg("first"), py::arg("second") = py::none())
      .def_property_readonly("first", [](const Slot& slot) { return slot.first; })
      .def_property_readonly("second",
                             [](const Slot& slot) {
                               return slot.is_pair() ? std::optional<Op>(slot.second)
                                                     : std::nullopt;
                             })
      .def("__str__", [](const Slot& slot) { return to_string(slot); })
      .def("__repr__", [](const Slot& slot) { return fmt::format("Slot('{}')", to_string(slot)); })
      .def("__hash__",
           [](const Slot& slot) { return py::hash(py::make_tuple(slot.first, slot.second)); })
      .def(
          "__eq__", [](const Slot& a, const Slot& b) { return a == b; }, py::is_operator())
      .def("__reduce__", [](const Slot& slot) {
        const py::object second = slot.is_pair() ? py::cast(slot.second) : py::none();
        return py::make_tuple(py::type::of<Slot>(), py::make_tuple(slot.first, second));
      });
}

std::optional<Op> op_of(const Diagnostic& fault) {
  return fault.op.kind == OpKind::none ? std::nullopt : std::optional<Op>(fault.op);
}

void bind_diagnostic(py::module_& module) {
  py::class_<Diagnostic>(module, "Diagnostic", "One fault of a schedule or program.")
      .def_readonly("rule", &Diagnostic::rule)
      .def_readonly("rank", &Diagnostic::rank)
      .def_readonly("index", &Diagnostic::index)
      .def_property_readonly("op", &op_of)
      .def_readonly("message", &Diagnostic::message)
      .def("__str__", [](const Diagnostic& fault) { return to_line(fault); })
      .def("__repr__",
           [](const Diagnostic& fault) { return fmt::format("<Diagnostic {}>", to_line(fault)); })
      .def(py::pickle(
          [](const Diagnostic& fault) {
            return py::make_tuple(fault.rule, fault.rank, fault.index, op_of(fault), fault.message);
          },
          [](const py::tuple& state) {
            return Diagnostic{state[0].cast<std::string>(), state[1].cast<std::optional<Rank>>(),
                              state[2].cast<std::optional<std::int64_t>>(),
                              state[3].cast<std::optional<Op>>().value_or(Op{}),
                              state[4].cast<std::string>()};
          }));
}

constexpr std::int64_t kMostQueues = 1024;  // as in a config

ExecutionModel make_execution(const std::string& name, const std::string& semantics_name,
                              bool independent_transfers, bool serial_communicators,
                              const std::string& launch_order, std::int64_t hardware_queues) {
  ExecutionModel model;
  model.name = name;
  model.semantics = semantics(semantics_name);
  model.independent_transfers = independent_transfers;
  model.serial_communicators = serial_communicators;
  const auto order = launch_order_named(launch_order);
  if (!order) {
    throw InputError(fmt::format(
        "unknown launch_order '{}'; there are independent, chained and serial", launch_order));
  }
  model.launch_order = *order;
  if (hardware_queues < 0 || hardware_queues > kMostQueues) {
    throw InputError(
        fmt::format("hardware_queues {} is outside 0..{}", hardware_queues, kMostQueues));
  }
  model.hardware_queues = static_cast<int>(hardware_queues);
  return model;
}

py::tuple fields(const ExecutionModel& model) {
  return py::make_tuple(model.name, std::string(name(model.semantics)), model.independent_transfers,
                        model.serial_communicators, std::string(name(model.launch_order)),
                        model.hardware_queues);
}

void bind_execution(py::module_& module) {
  py::class_<ExecutionModel>(module, "ExecutionModel", "The rules of a machine, as one value.")
      .def(py::init(&make_execution), py::arg("name") = "custom", py::arg("semantics") = "buffered",
           py::arg("independent_transfers") = true, py::arg("serial_communicators") = false,
           py::arg("launch_order") = "independent", py::arg("hardware_queues") = 0)
      .def_static("preset", &execution_preset, py::arg("name"))
      .def_readonly("name", &ExecutionModel::name)
      .def_property_readonly("semantics",
                             [](const ExecutionModel& m) { return std::string(name(m.semantics)); })
      .def_readonly("independent_transfers", &ExecutionModel::independent_transfers)
      .def_readonly("serial_communicators", &ExecutionModel::serial_communicators)
      .def_property_readonly(
          "launch_order", [](const ExecutionModel& m) { return std::string(name(m.launch_order)); })
      .def_readonly("hardware_queues", &ExecutionModel::hardware_queues)
      .def("__repr__",
           [](const ExecutionModel& m) {
             return fmt::format(
                 "ExecutionModel(name='{}', semantics='{}', independent_transfers={}, "
                 "serial_communicators={}, launch_order='{}', hardware_queues={})",
                 m.name, name(m.semantics), m.independent_transfers ? "True" : "False",
                 m.serial_communicators ? "True" : "False", name(m.launch_order),
                 m.hardware_queues);
           })
      .def("__hash__", [](const ExecutionModel& m) { return py::hash(fields(m)); })
      .def(
          "__eq__", [](const ExecutionModel& a, const ExecutionModel& b) { return a == b; },
          py::is_operator())
      .def("__reduce__", [](const ExecutionModel& m) {
        return py::make_tuple(py::type::of<ExecutionModel>(), fields(m));
      });
}

}  // namespace

OpKind op_kind(std::string_view text) {
  for (int i = 1; i <= static_cast<int>(kLastOpKind); ++i) {
    if (token(static_cast<OpKind>(i)) == text) return static_cast<OpKind>(i);
  }
  throw InputError(fmt::format(
      "'{}' is no kind of op; one is F, B (full backward), I (input gradient) or W (weight "
      "gradient)",
      text));
}

Semantics semantics(std::string_view text) {
  if (const auto found = semantics_named(text)) return *found;
  throw InputError(
      fmt::format("unknown semantics '{}'; there are buffered, posted and rendezvous", text));
}

ExecutionModel execution_preset(const std::string& name) {
  if (auto found = ExecutionModel::preset(name)) return *found;
  throw InputError(fmt::format("unknown execution '{}'; there are ideal, nccl and gloo", name));
}

void bind_ops(py::module_& module) {
  py::tuple kinds(kOpKinds);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    kinds[i] = std::string(token(static_cast<OpKind>(i)));
  }
  module.attr("OP_KINDS") = kinds;
  bind_op(module);
  bind_slot(module);
  bind_diagnostic(module);
  bind_execution(module);
}

}  // namespace counterflow::python
