#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/command.h"
#include "tools/console.h"
#include "tools/faults.h"
#include "tools/pipeline.h"
#include "tools/present.h"

namespace counterflow {
namespace {

std::string_view word(const SemanticsVerdict& verdict) {
  return verdict.completes ? "ok" : "deadlock";
}

std::string verdict_json(const Verdict& verdict) {
  Diagnostics all = verdict.order;
  all.insert(all.end(), verdict.program.begin(), verdict.program.end());
  nlohmann::ordered_json object;
  object["ok"] = verdict.ok();
  object["diagnostics"] = to_json(all);
  object["semantics"] = nlohmann::ordered_json::object();
  for (const SemanticsVerdict& each : verdict.semantics) {
    object["semantics"][std::string(name(each.semantics))] = word(each);
  }
  return object.dump(1) + "\n";
}

std::string verdict_text(const Plan& plan, const Verdict& verdict) {
  std::string text =
      fmt::format("schedule {}: {}\n", plan.schedule.name, verdict.ok() ? "valid" : "faulty");
  for (const SemanticsVerdict& each : verdict.semantics) {
    text += fmt::format("  {:<11} {}\n", name(each.semantics), word(each));
  }
  return text;
}

int verify_config(const Options& options) {
  const Plan plan = make_plan(options);
  const Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  if (options.json) {
    print(verdict_json(verdict));
  } else if (!options.quiet) {
    print(verdict_text(plan, verdict));
  }
  if (verdict.ok()) return kDone;
  return report_faults(plan, verdict);
}

}  // namespace

void add_verify(CLI::App& app, Command& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("verify", "every fault, with rank, position and op");
  add_config_argument(*command, *options);
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return verify_config(*options); }; });
}

}  // namespace counterflow
