#include "tools/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>

#include "driver/plan.h"
#include "scheduler/problem/quantity.h"
#include "scheduler/problem/text.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

// An option that is short for --set of a key.
struct Shortcut {
  std::string_view label;
  std::string_view key;
  std::string Options::*value;
};

constexpr Shortcut kShortcuts[] = {
    {"--schedule ", "pipeline.schedule", &Options::schedule},
    {"--ranks ", "pipeline.ranks", &Options::ranks},
    {"--microbatches ", "pipeline.microbatches", &Options::microbatches},
    {"--chunks ", "pipeline.chunks", &Options::chunks},
    {"--execution ", "execution", &Options::execution},
};

std::string assignment(const Shortcut& shortcut, const std::string& value) {
  return fmt::format("{}={}", shortcut.key, value);
}

// The option with this bare number in the longest units with which it would do, two at most.
std::string with_units(std::string_view option, std::string_view number) {
  number = number.substr(0, number.find_last_not_of(' ') + 1);
  std::vector<std::string> likely;
  for (const std::string_view unit : {"s", "ms", "us", "ns"}) {
    if (likely.size() == 2) break;
    try {
      if (parse_duration(number, unit) > Time{0}) {
        likely.push_back(fmt::format("{} {}{}", option, number, unit));
      }
    } catch (const InputError&) {
      continue;  // too large
    }
  }
  return fmt::format("{}", fmt::join(likely, " or "));
}

std::string_view label_of(const Shortcut& shortcut, const Options& options) {
  return shortcut.value == &Options::schedule ? options.schedule_label : shortcut.label;
}

// Whichever of the two came last, the other would be ignored without a word.
void check_conflicts(const Options& options, const Shortcut& shortcut) {
  const std::string& value = options.*shortcut.value;
  for (const std::string& setting : options.settings) {
    const std::string_view key = std::string_view(setting).substr(0, setting.find('='));
    const bool same = key == shortcut.key && setting != assignment(shortcut, value);
    const bool below = key.starts_with(std::string(shortcut.key) + ".");
    if (!same && !below) continue;
    throw InputError(fmt::format("{}{} and --set {} both give {}; keep one of them",
                                 label_of(shortcut, options), shown(value), shown(setting),
                                 shortcut.key));
  }
}

bool makes_a_plan(const Options& options) {
  try {
    (void)make_plan(read_config(options.config, options.overrides()), schedule_folder(options));
    return true;
  } catch (const InputError&) {
    return false;
  } catch (const InfeasibleError&) {
    return true;  // a question that is well formed
  }
}

// The override, as --set has it, without which a plan can be made, the last of them; of several
// that are all in the way the first.
std::optional<std::string> culprit_of(const Options& options) {
  for (std::size_t i = std::size(kShortcuts); i-- > 0;) {
    const Shortcut& shortcut = kShortcuts[i];
    if ((options.*shortcut.value).empty()) continue;
    Options without = options;
    (without.*shortcut.value).clear();
    if (makes_a_plan(without)) return assignment(shortcut, options.*shortcut.value);
  }
  for (std::size_t i = options.settings.size(); i-- > 0;) {
    Options without = options;
    without.settings.erase(without.settings.begin() + static_cast<std::ptrdiff_t>(i));
    if (makes_a_plan(without)) return options.settings[i];
  }
  Options some = options;
  some.settings.clear();
  if (!makes_a_plan(some)) return std::nullopt;
  for (const std::string& setting : options.settings) {
    some.settings.push_back(setting);
    if (!makes_a_plan(some)) return setting;
  }
  return std::nullopt;
}

}  // namespace

Overrides Options::overrides() const {
  Overrides all = settings;
  for (const Shortcut& shortcut : kShortcuts) {
    const std::string& value = this->*shortcut.value;
    if (value.empty()) continue;
    check_conflicts(*this, shortcut);
    all.push_back(assignment(shortcut, value));
  }
  return all;
}

std::vector<std::string> Options::retyped() const {
  std::vector<std::string> words;
  const auto add = [&](std::string_view option, const std::string& value) {
    words.emplace_back(option.substr(0, option.find(' ')));
    words.push_back(value);
  };
  for (const Shortcut& shortcut : kShortcuts) {
    const std::string& value = this->*shortcut.value;
    if (shortcut.value != &Options::schedule && !value.empty()) add(shortcut.label, value);
  }
  for (const std::string& setting : settings) {
    if (!setting.starts_with("pipeline.schedule=")) add("--set", setting);
  }
  return words;
}

std::string Options::as_typed(std::string_view message) const {
  for (const Shortcut& shortcut : kShortcuts) {
    const std::string& value = this->*shortcut.value;
    const std::string inner = "--set " + shown(assignment(shortcut, value));
    if (value.empty() || !message.starts_with(inner)) continue;
    return fmt::format("{}{}{}", label_of(shortcut, *this), shown(value),
                       message.substr(inner.size()));
  }
  return std::string(message);
}

std::string Options::blamed(const InputError& refusal) const {
  const std::string text = refusal.what();
  const std::string place = to_string(refusal.where());
  const bool in_file = refusal.where().file == config && text.starts_with(place + ": ");
  if (!in_file || overrides().empty() || makes_a_plan(*this)) return text;
  const std::optional<std::string> culprit = culprit_of(*this);
  if (!culprit) return text;
  return fmt::format("--set {}: {} ({})", shown(*culprit), text.substr(place.size() + 2), place);
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
  take_whole(*command.add_option("--seed", options.seed, "for whatever draws random numbers"), 0,
             std::numeric_limits<std::int64_t>::max());
  command.add_flag("--json", options.json, "print one JSON object on stdout and nothing else");
  command.add_flag("-q,--quiet", options.quiet, "print no summary and no warnings");
  command.add_flag("-v,--verbose", options.verbose, "say more");
  command.add_flag("--dump-passes", options.dump_passes,
                   "each pass with its time and instruction count on stderr; with -v its result");
}

void take_whole(CLI::Option& option, std::int64_t least, std::int64_t most) {
  option.type_name("N")->check(
      [=](const std::string& text) {
        try {
          (void)parse_integer(text, least, most);
        } catch (const InputError& refusal) {
          return std::string(refusal.what());
        }
        return std::string();
      },
      "", "whole number");
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += R"('\'')";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

Time positive_duration(std::string_view option, const std::string& text, std::string_view example) {
  try {
    if (const Time value = parse_duration(text); value > Time{0}) return value;
  } catch (const MissingUnit&) {
    const std::string likely = with_units(option, text);
    if (!likely.empty()) {
      throw InputError(fmt::format("{} {} has no unit; write {}", option, text, likely));
    }
    throw InputError(
        fmt::format("{} {} has no unit, and with none of them it would do; write for "
                    "example {} {}",
                    option, text, option, example));
  } catch (const InputError& refusal) {
    throw InputError(fmt::format("{} {}", option, refusal.what()));
  }
  throw InputError(fmt::format("{} {} is not above zero; write for example {} {}", option, text,
                               option, example));
}

void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const std::string what =
        fmt::format("the value is empty; give {}, {}",
                    option->get_type_name().empty() ? "one" : option->get_type_name(),
                    option->get_description());
    option->check([what](const std::string& value) { return value.empty() ? what : std::string(); },
                  "", "not empty");
  }
}

}  // namespace counterflow
