#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "schedules/registry.h"
#include "tools/command.h"
#include "tools/console.h"

namespace counterflow {
namespace {

struct SchedulesOptions {
  bool json = false;
};

nlohmann::ordered_json family_json(const Family& family) {
  nlohmann::ordered_json entry;
  entry["name"] = family.name;
  entry["title"] = family.title;
  entry["aliases"] = family.aliases;
  entry["summary"] = family.summary;
  entry["constraints"] = family.constraints;
  entry["formula"] = nullptr;
  if (!family.formula_text.empty()) entry["formula"] = family.formula_text;
  entry["source"] = family.source;
  entry["placement"] = name(family.placement);
  entry["default_chunks"] = family.default_chunks;
  entry["takes_chunks"] = family.takes_chunks;
  entry["splits_backward"] = family.splits_backward;
  entry["fuses_pairs"] = family.fuses_pairs;
  entry["forward_only"] = family.forward_only;
  return entry;
}

std::string family_text(const Family& family) {
  std::string text = fmt::format("{}\n  {}\n", family.name, family.summary);
  const auto line = [&text](std::string_view label, std::string_view value) {
    if (!value.empty()) text += fmt::format("  {:<12} {}\n", label, value);
  };
  line("also", fmt::format("{}", fmt::join(family.aliases, ", ")));
  line("placement",
       fmt::format("{}, {}{} stage{} a rank", name(family.placement), family.default_chunks,
                   family.takes_chunks ? " (or more)" : "", family.default_chunks == 1 ? "" : "s"));
  line("constraints", family.constraints);
  line("idle a rank", family.formula_text);
  line("source", family.source);
  return text;
}

int list_families(const SchedulesOptions& options) {
  if (options.json) {
    nlohmann::ordered_json object;
    object["schedules"] = nlohmann::ordered_json::array();
    for (const Family& family : families()) object["schedules"].push_back(family_json(family));
    print(object.dump(1) + "\n");
    return kDone;
  }
  std::string text;
  for (const Family& family : families()) text += (text.empty() ? "" : "\n") + family_text(family);
  print(text);
  return kDone;
}

}  // namespace

void add_schedules(CLI::App& app, Command& run) {
  const auto options = std::make_shared<SchedulesOptions>();
  CLI::App* command =
      app.add_subcommand("schedules", "the schedule families: names, constraints, formulas");
  command->add_flag("--json", options->json, "print one JSON object on stdout and nothing else");
  command->callback([options, &run] { run = [options] { return list_families(*options); }; });
}

}  // namespace counterflow
