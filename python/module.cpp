#include <fmt/format.h>

#include "driver/faults.h"
#include "python/bind.h"
#include "scheduler/error.h"

namespace counterflow::python {
namespace {

py::object error_type(const char* name) {
  return py::module_::import("counterflow.errors").attr(name);
}

template <typename... Arguments>
void raise(const char* type_name, const Arguments&... arguments) {
  const py::object type = error_type(type_name);
  PyErr_SetObject(type.ptr(), type(arguments...).ptr());
}

void translate(std::exception_ptr pending) {
  if (!pending) return;
  try {
    std::rethrow_exception(pending);
  } catch (const InputError& error) {
    const SourceLocation& where = error.where();
    raise("InputError", py::str(error.what()), py::str(where.file), where.line, where.column);
  } catch (const FaultyError& error) {
    raise("InfeasibleError", py::str(error.what()), py::cast(error.faults()));
  } catch (const InfeasibleError& error) {
    raise("InfeasibleError", py::str(error.what()));
  } catch (const EnvironmentError& error) {
    raise("EnvironmentError", py::str(error.what()));
  }
}

}  // namespace

std::size_t checked_index(std::int64_t index, std::size_t size, const char* what) {
  if (index >= 0 && static_cast<std::size_t>(index) < size) return static_cast<std::size_t>(index);
  throw py::index_error(size == 0 ? fmt::format("{} {}: there are none", what, index)
                                  : fmt::format("{} {} is outside 0..{}", what, index, size - 1));
}

void bind_errors(py::module_& module) {
  module.attr("__version__") = COUNTERFLOW_VERSION;
  py::register_local_exception_translator(translate);
}

}  // namespace counterflow::python

// The order matters only for signatures: a type is declared before functions that name it.
PYBIND11_MODULE(_core, module) {
  using namespace counterflow::python;
  module.doc() = "The compiler, verifier and simulator; see the package counterflow.";
  bind_errors(module);
  bind_ops(module);
  bind_schedule(module);
  bind_problem(module);
  bind_program(module);
  bind_families(module);
  bind_timeline(module);
  bind_trials(module);
  bind_search(module);
  bind_report(module);
  bind_driver(module);
}
