#include "driver/partition.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "driver/partition_report.h"
#include "scheduler/problem/yaml_tree.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/output_files.h"
#include "tools/present.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

struct PartitionOptions : Options {
  std::string output;
  std::int64_t iterations = 0;
};

// A schedule file of the config, whose path counts from the schedule's folder, as seen from the
// output.
std::string moved_path(const PartitionOptions& options, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::absolute(options.output).parent_path();
  return fs::absolute(schedule_folder(options) / path).lexically_proximate(folder).string();
}

// The config as it was asked for, with the layout, and the map and the schedule where those were
// chosen too.
std::string filled_config(const PartitionOptions& options, const Partition& partition) {
  yaml::NodePtr tree = yaml::parse(yaml::read_text(options.config), options.config);
  const auto set = [&](const std::string& assignment) {
    tree = yaml::with_override(tree, assignment);
  };
  for (const std::string& override : options.overrides()) set(override);
  set(fmt::format("layout=\"{}\"", layout_of(partition, partition.found.cut)));
  const Config& chosen = partition.plan.config;
  if (is_schedule_file(chosen.schedule.value)) {
    set(fmt::format("pipeline.schedule=\"{}\"", moved_path(options, chosen.schedule.value)));
  }
  if (partition.asked.schedule.value == "auto") {
    set("pipeline.schedule=" + chosen.schedule.value);
    if (!partition.asked.placement) {
      set(fmt::format("pipeline.placement={}", name(chosen.placement->value.kind)));
    }
  }
  return yaml::to_text(tree);
}

void write_config(const PartitionOptions& options, const Partition& partition) {
  const OutputPath output(options.output);
  write_files(output.folder, {{output.name, [&] { return filled_config(options, partition); }}});
}

int partition_config(const PartitionOptions& options) {
  const std::vector<Semantics> semantics = options.asked_semantics();
  if (!options.output.empty()) {
    const OutputPath output(options.output);
    check_outputs(output.folder, {output.name});
  }
  const Partition partition = options.name_as_typed([&] {
    const Config config = read_config(options.config, options.overrides());
    return find_partition(config, schedule_folder(options), semantics, options.iterations,
                          options.seed);
  });
  if (!options.output.empty()) write_config(options, partition);
  if (options.json) {
    print(partition_json(partition));
  } else if (!options.quiet) {
    print(partition_table(partition));
    present_notes(partition.plan);
  }
  return kDone;
}

}  // namespace

void add_partition(CLI::App& app, Command& run) {
  const auto options = std::make_shared<PartitionOptions>();
  CLI::App* command = app.add_subcommand(
      "partition", "layers cut into stages and placed on ranks, for this schedule");
  add_config_argument(*command, *options);
  command
      ->add_option("-o,--output", options->output,
                   "the config with the layout found, ready for the other subcommands")
      ->type_name("FILE");
  take_whole(*command->add_option("--iterations", options->iterations,
                                  "how many cuts to simulate; default: about two seconds' worth"),
             1, 1'000'000'000);
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return partition_config(*options); }; });
}

}  // namespace counterflow
