#include "report/kind_names.h"

#include <array>
#include <cstddef>

namespace counterflow {
namespace {

// [OpKind]
constexpr std::array<std::string_view, kOpKinds> kSpoken = {"other",
                                                            "forward",
                                                            "backward",
                                                            "input gradient",
                                                            "weight gradient",
                                                            "recompute",
                                                            "offload",
                                                            "reload",
                                                            "send activation",
                                                            "receive activation",
                                                            "send gradient",
                                                            "receive gradient",
                                                            "unshard",
                                                            "reshard",
                                                            "reduce gradients",
                                                            "norm of gradients",
                                                            "optimizer step",
                                                            "validation of step"};

}  // namespace

std::string_view spoken(OpKind kind) {
  return kSpoken[static_cast<std::size_t>(kind)];
}

std::string kind_token(OpKind kind, OpKind paired) {
  std::string name(token(kind));
  if (paired != OpKind::none) {
    name += '+';
    name += token(paired);
  }
  return name;
}

}  // namespace counterflow
