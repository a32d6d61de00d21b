#include <memory>
#include <string>

#include "driver/input_file.h"
#include "report/calibration.h"
#include "tools/command.h"
#include "tools/console.h"

namespace counterflow {

void add_calibrate(CLI::App& app, Command& run) {
  const auto file = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("calibrate", "costs for a config from a measured timeline");
  command
      ->add_option("TIMELINE", *file,
                   "a timeline.json, for example what run -o wrote; each stage's costs are the "
                   "medians over its microbatches, printed as the `stages` of a config")
      ->required();
  command->callback([file, &run] {
    run = [file] {
      print(stages_yaml(calibrate(parse_timeline_json(read_input(*file), *file))));
      return static_cast<int>(kDone);
    };
  });
}

}  // namespace counterflow
