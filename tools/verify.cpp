#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "driver/fault_text.h"
#include "driver/faults.h"
#include "driver/pipeline.h"
#include "scheduler/error.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/repair.h"
#include "tools/command.h"
#include "tools/console.h"
#include "tools/present.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

std::string_view word(const Verdict& verdict, Semantics semantics) {
  for (const SemanticsVerdict& each : verdict.semantics) {
    if (each.semantics == semantics) return each.completes ? "ok" : "deadlock";
  }
  return "unknown";
}

struct VerifyOptions : Options {
  bool repair = false;
};

nlohmann::ordered_json verdict_json(const Plan& plan, const Verdict& verdict) {
  Diagnostics all = verdict.order;
  all.insert(all.end(), verdict.program.begin(), verdict.program.end());
  nlohmann::ordered_json object;
  object["ok"] = verdict.ok();
  object["diagnostics"] = to_json(all);
  object["semantics"] = nlohmann::ordered_json::object();
  for (const Semantics each : kAllSemantics) {
    object["semantics"][std::string(name(each))] = word(verdict, each);
  }
  if (!plan.notes.empty()) object["notes"] = plan.notes;
  if (!plan.warnings.empty()) object["warnings"] = plan.warnings;
  return object;
}

std::string verdict_text(const Plan& plan, const Verdict& verdict) {
  std::string text =
      fmt::format("schedule {}: {}\n", plan.schedule.name, verdict.ok() ? "valid" : "faulty");
  for (const Semantics each : kAllSemantics) {
    const std::string_view found = word(verdict, each);
    // A faulty schedule may well be free of deadlock: "ok" would contradict the line above.
    text += fmt::format("  {:<11} {}\n", name(each), found == "ok" ? "no deadlock" : found);
  }
  return text;
}

// The file with its transfers in other places, on stdout; what is said of it holds for that.
int repair_file(Plan plan, const VerifyOptions& options) {
  if (!plan.brings_communication()) {
    throw InputError(fmt::format(
        "--repair: schedule {} brings no communication to repair; `compile` infers it and writes "
        "program.csv",
        plan.schedule.name));
  }
  const std::string before = to_csv(*plan.file);
  plan.file = repair(plan.problem, *plan.file);
  const Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  if (!verdict.ok()) return report_faults(plan, verdict);
  const std::string csv = to_csv(*plan.file);
  if (options.json) {
    auto object = verdict_json(plan, verdict);
    object["repaired"] = csv;
    print(object.dump(1) + "\n");
    return kDone;
  }
  print(csv);
  if (!options.quiet) {
    message(Severity::note,
            csv != before
                ? "repaired: the same computes in the same order, and no deadlock under any "
                  "semantics"
                : "nothing to repair: no fault, and no deadlock under any semantics");
  }
  return kDone;
}

int verify_config(const VerifyOptions& options) {
  Plan plan = make_plan(options);
  if (options.repair) return repair_file(std::move(plan), options);
  const Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  if (options.json) {
    print(verdict_json(plan, verdict).dump(1) + "\n");
    // Every fault is in the object.
    if (!verdict.ok()) message(Severity::error, faults_summary(plan, verdict));
    return verdict.ok() ? kDone : kAnswerIsNo;
  }
  if (!options.quiet) {
    print(verdict_text(plan, verdict));
    present_notes(plan);
  }
  return verdict.ok() ? static_cast<int>(kDone) : report_faults(plan, verdict);
}

}  // namespace

void add_verify(CLI::App& app, Command& run) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand("verify", "every fault, with rank, position and op");
  add_config_argument(*command, *options);
  command->add_flag("--repair", options->repair,
                    "move the transfers of a file to where they cannot deadlock, and print it");
  add_common_options(*command, *options);
  command->callback([options, &run] { run = [options] { return verify_config(*options); }; });
}

}  // namespace counterflow
