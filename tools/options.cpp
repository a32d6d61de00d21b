#include "tools/options.h"

#include <iterator>

namespace counterflow {

Overrides Options::overrides() const {
  Overrides all = settings;
  const auto add = [&all](const char* key, const std::string& value) {
    if (!value.empty()) all.push_back(std::string(key) + "=" + value);
  };
  add("pipeline.schedule", schedule);
  add("pipeline.ranks", ranks);
  add("pipeline.microbatches", microbatches);
  add("pipeline.chunks", chunks);
  add("execution", execution);
  return all;
}

std::vector<Semantics> Options::asked_semantics() const {
  if (const auto one = semantics_named(semantics)) return {*one};
  return {std::begin(kAllSemantics), std::end(kAllSemantics)};
}

void add_config_argument(CLI::App& command, Options& options) {
  command.add_option("CONFIG", options.config, "the YAML config")->required();
}

void add_common_options(CLI::App& command, Options& options) {
  command.add_option("--schedule", options.schedule, "a schedule family, or a .csv file")
      ->type_name("NAME");
  command.add_option("--execution", options.execution, "the machine's rules: ideal, nccl or gloo")
      ->type_name("NAME");
  command
      .add_option("--semantics", options.semantics,
                  "the transfer rules whose deadlocks count: buffered, posted, rendezvous or all")
      ->check(CLI::IsMember({"buffered", "posted", "rendezvous", "all"}))
      ->type_name("NAME");
  command.add_option("--ranks", options.ranks, "same as --set pipeline.ranks=N")->type_name("N");
  command
      .add_option("--microbatches", options.microbatches, "same as --set pipeline.microbatches=N")
      ->type_name("N");
  command.add_option("--chunks", options.chunks, "same as --set pipeline.chunks=N")->type_name("N");
  command.add_option("--set", options.settings, "any config key: key.path=value; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command.add_option("--seed", options.seed, "for whatever draws random numbers")->type_name("N");
  command.add_flag("--json", options.json, "print one JSON object on stdout and nothing else");
  command.add_flag("-q,--quiet", options.quiet, "print no summary and no warnings");
  command.add_flag("-v,--verbose", options.verbose, "say more");
  command.add_flag("--dump-passes", options.dump_passes,
                   "each pass with its time and instruction count on stderr; with -v its result");
}

}  // namespace counterflow
