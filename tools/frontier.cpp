#include "report/frontier.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "driver/memory_frontier.h"
#include "scheduler/error.h"
#include "scheduler/problem/quantity.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/search_options.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

constexpr const char* kFrontierJson = "frontier.json";
constexpr const char* kFrontierSvg = "frontier.svg";

struct FrontierOptions : SearchOptions {
  std::string points = "8";
};

int points_of(const FrontierOptions& options) {
  constexpr int kMost = 1000;
  try {
    return static_cast<int>(parse_integer(options.points, 1, kMost));
  } catch (const InputError& error) {
    throw InputError(fmt::format("--points {}", error.what()));
  }
}

int draw_frontier(const FrontierOptions& options) {
  const int points = points_of(options);
  SearchBudget budget = search_budget(options);
  if (!options.directory.empty()) {
    check_outputs(options.directory, {kFrontierJson, kFrontierSvg});
  }
  const Frontier frontier = options.name_as_typed([&] {
    return memory_frontier(read_config(options.config, options.overrides()),
                           schedule_folder(options), budget, points);
  });
  end_progress(budget);
  if (!options.directory.empty()) {
    write_files(options.directory, {{kFrontierJson, [&] { return frontier_json(frontier); }},
                                    {kFrontierSvg, [&] { return frontier_svg(frontier); }}});
  }
  if (options.json) {
    print(frontier_json(frontier));
  } else if (!options.quiet) {
    print(frontier_table(frontier));
  }
  return kDone;
}

}  // namespace

void add_frontier(CLI::App& app, Command& run) {
  const auto options = std::make_shared<FrontierOptions>();
  CLI::App* command =
      app.add_subcommand("frontier", "makespan against memory limit, each limit searched");
  add_config_argument(*command, *options);
  command->add_option("--points", options->points, "how many limits; default 8")->type_name("N");
  add_search_options(*command, *options);
  command
      ->add_option("-o,--output", options->directory,
                   "the folder for frontier.json and frontier.svg; made if missing")
      ->type_name("DIR");
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return draw_frontier(*options); }; });
}

}  // namespace counterflow
