#include "scheduler/ir/data_type.h"

namespace counterflow {

std::string_view name(DataType type) {
  switch (type) {
    case DataType::bytes:
      return "bytes";
    case DataType::bf16:
      return "bf16";
    case DataType::fp16:
      return "fp16";
    case DataType::fp32:
      return "fp32";
    case DataType::fp8:
      return "fp8";
  }
  return "";
}

}  // namespace counterflow
