#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/program.h"
#include "scheduler/ir/schedule.h"
#include "scheduler/ir/timeline.h"
#include "scheduler/problem/costs.h"

// NumPy's view of the tables: a structured array over the very memory of the C++ value.
namespace counterflow::python {

namespace py = pybind11;

// The structured type of T; fields are named as in C++, times end in _ns.
template <typename T>
[[nodiscard]] py::dtype dtype_of();

template <>
py::dtype dtype_of<Time>();
template <>
py::dtype dtype_of<Op>();
template <>
py::dtype dtype_of<Slot>();
template <>
py::dtype dtype_of<StageCost>();
template <>
py::dtype dtype_of<Interval>();
template <>
py::dtype dtype_of<MemorySample>();
template <>
py::dtype dtype_of<Kernel>();
template <>
py::dtype dtype_of<Instruction>();
template <>
py::dtype dtype_of<EventWait>();
template <>
py::dtype dtype_of<Transfer>();
template <>
py::dtype dtype_of<Collective>();
template <>
py::dtype dtype_of<Access>();
template <>
py::dtype dtype_of<BufferSlot>();

// A read-only array over `table`, which `owner` keeps alive. No copy.
template <typename T>
[[nodiscard]] py::array view(const std::vector<T>& table, const py::object& owner) {
  static_assert(std::is_trivially_copyable_v<T>);
  py::array array(dtype_of<T>(), {static_cast<py::ssize_t>(table.size())},
                  {static_cast<py::ssize_t>(sizeof(T))}, table.data(), owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

// A table of an array of exactly that type. Throws TypeError for another type or shape.
template <typename T>
[[nodiscard]] std::vector<T> table_of(const py::array& array, const std::string& what) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (array.ndim() != 1 || !array.dtype().equal(dtype_of<T>())) {
    throw py::type_error(what + " takes a one-dimensional array of the type of its own view");
  }
  const py::array packed = py::module_::import("numpy").attr("ascontiguousarray")(array);
  std::vector<T> table(static_cast<std::size_t>(packed.size()));
  if (!table.empty()) std::memcpy(table.data(), packed.data(), table.size() * sizeof(T));
  return table;
}

}  // namespace counterflow::python
