#include "scheduler/ir/execution_model.h"

#include <array>
#include <utility>

namespace counterflow {
namespace {

constexpr std::array<std::pair<Semantics, std::string_view>, 3> kSemanticsNames{{
    {Semantics::buffered, "buffered"},
    {Semantics::posted, "posted"},
    {Semantics::rendezvous, "rendezvous"},
}};

constexpr std::array<std::pair<LaunchOrder, std::string_view>, 3> kLaunchOrderNames{{
    {LaunchOrder::independent, "independent"},
    {LaunchOrder::chained, "chained"},
    {LaunchOrder::serial, "serial"},
}};

template <typename Table, typename T>
std::string_view name_in(const Table& table, T value) {
  for (const auto& [known, text] : table) {
    if (known == value) return text;
  }
  return "";
}

template <typename T, std::size_t N>
std::optional<T> named_in(const std::array<std::pair<T, std::string_view>, N>& table,
                          std::string_view text) {
  for (const auto& [value, known] : table) {
    if (known == text) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(Semantics semantics) {
  return name_in(kSemanticsNames, semantics);
}
std::optional<Semantics> semantics_named(std::string_view name) {
  return named_in(kSemanticsNames, name);
}
std::string_view name(LaunchOrder order) {
  return name_in(kLaunchOrderNames, order);
}
std::optional<LaunchOrder> launch_order_named(std::string_view name) {
  return named_in(kLaunchOrderNames, name);
}

ExecutionModel ExecutionModel::ideal() {
  return {};
}

ExecutionModel ExecutionModel::nccl() {
  return {.name = "nccl",
          .semantics = Semantics::rendezvous,
          .independent_transfers = false,
          .serial_communicators = true,
          .launch_order = LaunchOrder::chained,
          .hardware_queues = 0};
}

ExecutionModel ExecutionModel::gloo() {
  return {.name = "gloo",
          .semantics = Semantics::posted,
          .independent_transfers = false,
          .serial_communicators = false,
          .launch_order = LaunchOrder::independent,
          .hardware_queues = 0};
}

std::optional<ExecutionModel> ExecutionModel::preset(std::string_view name) {
  if (name == "ideal") return ideal();
  if (name == "nccl") return nccl();
  if (name == "gloo") return gloo();
  return std::nullopt;
}

}  // namespace counterflow
