#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/op.h"

// Names from Python as the enumerators they are. All throw InputError for a name there is not.
namespace counterflow::python {

[[nodiscard]] OpKind op_kind(std::string_view text);
[[nodiscard]] Semantics semantics(std::string_view text);
[[nodiscard]] ExecutionModel execution_preset(const std::string& name);

}  // namespace counterflow::python
