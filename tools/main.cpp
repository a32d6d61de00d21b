#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "driver/suggestion.h"
#include "scheduler/error.h"
#include "scheduler/problem/config.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/heap.h"
#include "tools/options.h"

namespace counterflow {
namespace {

// A wrong word that CLI11 would only call unexpected, with the nearest right one.
std::string unexpected(const CLI::App& app) {
  const CLI::App* command = &app;
  std::vector<std::string> known;
  if (!app.get_subcommands().empty()) command = app.get_subcommands().front();
  const std::vector<std::string> left = app.remaining(true);
  const std::string word = left.empty() ? "" : left.front();
  const bool is_option = word.starts_with("-");
  if (is_option) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
  } else if (command == &app) {
    for (const CLI::App* each : app.get_subcommands({})) known.push_back(each->get_name());
  }
  const std::string_view what = is_option         ? "unknown option"
                                : command == &app ? "unknown subcommand"
                                                  : "unexpected argument";
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view bare = std::string_view(word).substr(0, word.find('='));
  std::string hint = did_you_mean(bare, views);
  if (hint.empty() && !is_option && !known.empty()) {
    hint = fmt::format("; there are {}", fmt::join(known, ", "));
  }
  return fmt::format("{} '{}'{}", what, word, hint);
}

int usage_error(const CLI::App& app, const std::string& text) {
  const auto given = app.get_subcommands();
  const std::string name = given.empty() ? "" : " " + given.front()->get_name();
  message(Severity::error, text + "\n  counterflow" + name + " --help lists what there is");
  return kBadInput;
}

// "--ranks=": CLI11 would take the next argument for the value.
std::string_view without_value(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) return argument;
  }
  return {};
}

// Parses and runs. Exceptions that are the user's to know come out as they are.
int run(int argc, const char* const* argv) {
  CLI::App app("Pipeline-parallel schedules: compiled, proven, simulated.", "counterflow");
  app.set_version_flag("--version", "counterflow " COUNTERFLOW_VERSION);
  app.require_subcommand(0, 1);
  Command command;
  add_compile(app, command);
  add_simulate(app, command);
  add_verify(app, command);
  add_compare(app, command);
  add_partition(app, command);
  add_schedules(app, command);
  add_search(app, command);
  add_frontier(app, command);
  add_run(app, command);
  add_calibrate(app, command);
  add_diagnose(app, command);
  if (const std::string_view option = without_value(argc, argv); !option.empty()) {
    return usage_error(app, fmt::format("{}: the value after = is empty", option));
  }
  for (CLI::App* each : app.get_subcommands({})) refuse_empty_values(*each);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto given = app.get_subcommands();
    print(given.empty() ? app.help() : given.front()->help());
    finish_output();
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    finish_output();
    return kDone;
  } catch (const CLI::ExtrasError&) {
    return usage_error(app, unexpected(app));
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error.what());
  }
  if (!command) {
    message(Severity::error, "a subcommand is missing\n\n" + app.help());
    return kBadInput;
  }
  const int status = command();
  finish_output();
  return status;
}

}  // namespace
}  // namespace counterflow

int main(int argc, char** argv) {
  using namespace counterflow;
  prepare_streams();
  keep_freed_memory();
  try {
    return run(argc, argv);
  } catch (const InputError& error) {
    message(Severity::error, error.what());
    return kBadInput;
  } catch (const InfeasibleError& error) {
    message(Severity::error, error.what());
    return kAnswerIsNo;
  } catch (const EnvironmentError& error) {
    message(Severity::error, error.what());
    return kEnvironmentFailed;
  } catch (const std::bad_alloc&) {
    message(Severity::error, "out of memory; a smaller problem or a larger machine is needed");
    return kEnvironmentFailed;
  } catch (const std::exception& error) {
    message(Severity::error,
            std::string("internal error: ") + error.what() +
                "\n  This is a bug in counterflow; please report it with the config.");
    return kInternalError;
  }
}
