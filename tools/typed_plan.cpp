#include "tools/typed_plan.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "scheduler/ir/schedule_file.h"

namespace counterflow {

std::filesystem::path schedule_folder(const Options& options) {
  const bool typed = !options.schedule.empty();
  return typed ? std::filesystem::path() : std::filesystem::path(options.config).parent_path();
}

Plan make_plan(const Options& options) {
  return options.name_as_typed([&] {
    return make_plan(read_config(options.config, options.overrides()), schedule_folder(options));
  });
}

PassObserver pass_observer(const Options& options) {
  if (!options.dump_passes) return {};
  const bool text = options.verbose;
  return [text](std::string_view pass, const Program& after, Time took) {
    const double milliseconds = static_cast<double>(took.count()) * 1e-6;
    fmt::print(stderr, "pass {:<22} {:>10.3f} ms {:>10} instructions\n", pass, milliseconds,
               after.size());
    if (text) fmt::print(stderr, "{}", to_csv(after));
  };
}

}  // namespace counterflow
