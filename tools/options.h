#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/error.h"
#include "scheduler/ir/execution_model.h"
#include "scheduler/ir/units.h"
#include "scheduler/problem/config.h"

namespace counterflow {

// What every subcommand that reads a config takes.
struct Options {
  std::string config;
  std::string
      schedule;  // a family or a .csv file relative to the working directory; "": the config's
  std::string execution;
  std::string semantics = "all";
  std::string ranks;
  std::string microbatches;
  std::string chunks;
  std::vector<std::string> settings;  // --set, as given
  std::uint64_t seed = 0;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  bool dump_passes = false;
  // What stands before the schedule's name in messages: `compare` has it from another option.
  std::string schedule_label = "--schedule ";

  // All of them as config overrides. Throws InputError where a shortcut such as --ranks and --set
  // give one key different values.
  [[nodiscard]] Overrides overrides() const;
  // What was said of the config but for its schedule, as words of a command line: what stands
  // before a schedule file made of it.
  [[nodiscard]] std::vector<std::string> retyped() const;
  // The semantics whose deadlocks count.
  [[nodiscard]] std::vector<Semantics> asked_semantics() const;
  // A message about an override that was a shortcut, under the name the user typed.
  [[nodiscard]] std::string as_typed(std::string_view message) const;
  // What a refusal of the config says; where it names a place of the file and goes away with one of
  // the overrides, that one first (the last of several). Plans once more for each override.
  [[nodiscard]] std::string blamed(const InputError& refusal) const;

  // `work`, its InputErrors blamed on the override that they are due to, and worded as_typed.
  template <typename Work>
  auto name_as_typed(const Work& work) const {
    try {
      return work();
    } catch (const InputError& error) {
      throw InputError(as_typed(blamed(error)));
    }
  }
};

// Declares the options above, the config itself excepted.
void add_common_options(CLI::App& command, Options& options);
// Declares CONFIG.
void add_config_argument(CLI::App& command, Options& options);
// Lets an option take whole numbers from `least` to `most`, written as in a config.
void take_whole(CLI::Option& option, std::int64_t least, std::int64_t most);
// A word as a shell takes it: quoted where it would be split or expanded.
[[nodiscard]] std::string shell_word(std::string_view word);
// The value of an option that takes a duration above zero, such as `example`. Throws InputError,
// which names the option and says of a bare number with which unit it would do.
[[nodiscard]] Time positive_duration(std::string_view option, const std::string& text,
                                     std::string_view example);
// Lets every option of a subcommand that takes a value refuse an empty one.
void refuse_empty_values(CLI::App& command);

}  // namespace counterflow
