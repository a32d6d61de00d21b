#include "scheduler/ir/op.h"

#include <array>
#include <cstddef>

namespace counterflow {
namespace {

// In the order of OpKind.
constexpr std::array<std::string_view, kOpKinds> kTokens = {
    "",        "F",       "B",           "I",      "W",      "RECOMPUTE",
    "OFFLOAD", "RELOAD",  "SEND_F",      "RECV_F", "SEND_B", "RECV_B",
    "UNSHARD", "RESHARD", "REDUCE_GRAD", "NORM",   "STEP",   "VALIDATE"};

}  // namespace

std::string_view token(OpKind kind) {
  return kTokens[static_cast<std::size_t>(kind)];
}

std::string replica_prefix(int replica) {
  if (replica == 0) return "";
  return replica == 1 ? "~" : std::to_string(replica) + "~";
}

}  // namespace counterflow
