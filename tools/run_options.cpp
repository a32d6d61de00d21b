#include "tools/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "driver/consecutive.h"
#include "driver/fault_text.h"
#include "driver/faults.h"
#include "driver/input_file.h"
#include "driver/pipeline.h"
#include "report/program_json.h"
#include "scheduler/ir/schedule_file.h"
#include "scheduler/verify/verify.h"
#include "simulator/simulate.h"
#include "tools/present.h"
#include "tools/typed_plan.h"

namespace counterflow {
namespace {

constexpr int kMostSteps = 1'000'000;
constexpr Time kPatience = std::chrono::seconds(10);

// What the messages of a rank may take one behind the other, at the 100 MB/s of a machine on which
// everything is busy; ten minutes at most.
Time slowest_messages(const Program& program) {
  constexpr double kBytesASecond = 1e8;
  constexpr double kMostSeconds = 600;
  double most = 0;
  for (const RankProgram& rank : program.ranks) {
    double bytes = 0;
    for (const Transfer& transfer : rank.transfers) {
      bytes += static_cast<double>(transfer.size.value);
    }
    // Twice: the shares of an all-reduce, then the parts of the sum.
    for (const Collective& collective : rank.collectives) {
      bytes += 2 * static_cast<double>(collective.size.value);
    }
    most = std::max(most, bytes);
  }
  return std::chrono::duration_cast<Time>(
      std::chrono::duration<double>(std::min(kMostSeconds, most / kBytesASecond)));
}

// What of a program's memory no other check looks at.
void check_slots(const Program& program, const std::string& file) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  for (std::size_t r = 0; r < program.ranks.size(); ++r) {
    for (const BufferSlot& slot : program.ranks[r].slots) {
      if (slot.offset.value > kMost - slot.size.value) {
        throw InputError(
            fmt::format("{}: a buffer slot of rank {} ends beyond 2^62 bytes; compile "
                        "the program again",
                        file, r));
      }
    }
    for (const Access& access : program.ranks[r].accesses) {
      if (access.slot != kNone) continue;
      throw InputError(fmt::format(
          "{}: rank {} uses a buffer that is in no slot; compile the program again", file, r));
    }
  }
}

ExecutionModel execution_of(const RunOptions& options) {
  if (options.execution.empty()) return ExecutionModel::nccl();
  if (const auto model = ExecutionModel::preset(options.execution)) return *model;
  throw InputError(
      fmt::format("--execution {}: there are ideal, nccl and gloo", options.execution));
}

// Nothing runs that is known to be faulty.
void check_program(const Program& program, const ExecutionModel& execution,
                   const std::string& file) {
  const Semantics asked[] = {execution.semantics};
  ProgramVerdict verdict = verify_alone(program, asked);
  const std::size_t count = verdict.diagnostics.size();
  if (count == 0) return;
  std::string text = fmt::format("{} has {} fault{}\n", file, count, count == 1 ? "" : "s");
  // Only of a program that is well formed can the cells around a fault be shown.
  text += to_text(verdict.diagnostics,
                  GridOf{verdict.semantics.empty() ? std::string() : to_csv(program)});
  throw FaultyError(text, std::move(verdict.diagnostics));
}

// A program on its own: its costs are its kernels', messages cost nothing.
RunInput input_of_program(const RunOptions& options) {
  RunInput input;
  input.program = parse_program_json(read_input(options.program), options.program);
  check_slots(input.program, options.program);
  input.schedule = input.program.schedule;
  input.execution = execution_of(options);
  check_program(input.program, input.execution, options.program);
  Simulation simulation = simulate(input.program, input.links, input.execution);
  if (!simulation.diagnostics.empty()) {
    throw InfeasibleError(fmt::format("{} gets stuck under execution '{}': {}", options.program,
                                      input.execution.name,
                                      simulation.diagnostics.front().message));
  }
  input.predicted = std::move(simulation.timeline);
  return input;
}

std::optional<RunInput> input_of_config(const RunOptions& options) {
  const Plan plan = make_plan(options);
  Verdict verdict = check(plan, options.asked_semantics(), pass_observer(options));
  const int consecutive = options.consecutive ? options.steps : 1;
  if (verdict.ok() && consecutive > 1) {
    const Program one = std::move(*verdict.lowered);
    verdict = check_in_steps(plan, one, consecutive, options.asked_semantics());
  }
  if (!verdict.ok()) {
    report_faults(plan, verdict);
    return std::nullopt;
  }
  Run predicted = run(plan, std::move(*verdict.lowered));
  return RunInput{.program = std::move(predicted.program),
                  .schedule = predicted.report.schedule,
                  .execution = plan.config.execution,
                  .links = plan.whole().links,
                  .memory_limits = plan.whole().limits.bytes,
                  .predicted = std::move(predicted.timeline),
                  .consecutive = consecutive};
}

// What is said of a config has no place where a program is run as it stands.
void refuse_overrides(const RunOptions& options) {
  const std::string given = !options.schedule.empty()       ? "--schedule"
                            : !options.ranks.empty()        ? "--ranks"
                            : !options.microbatches.empty() ? "--microbatches"
                            : !options.chunks.empty()       ? "--chunks"
                            : !options.settings.empty()     ? "--set"
                                                            : "";
  if (given.empty()) return;
  throw InputError(
      fmt::format("{} changes a config, and --program runs {} as it stands; leave one of them out",
                  given, options.program));
}

}  // namespace

void add_run_options(CLI::App& command, RunOptions& options) {
  CLI::Option* config = command.add_option("CONFIG", options.config, "the YAML config");
  command
      .add_option("--program", options.program,
                  "run this program.json instead of what a config compiles to")
      ->type_name("FILE")
      ->excludes(config);
  command
      .add_option("--backend", options.backend,
                  "virtual: one thread that draws its interleaving with --seed; threads: a thread "
                  "for each stream; gloo: a process for each rank, started here or by torchrun or "
                  "mpirun")
      ->check(CLI::IsMember({"virtual", "threads", "gloo"}))
      ->type_name("NAME");
  CLI::Option* steps = command.add_option("--steps", options.steps, "how many steps");
  take_whole(*steps, 1, kMostSteps);
  command
      .add_flag("--consecutive", options.consecutive,
                "no barrier between the steps: all of them are one program, which --steps says how "
                "often to repeat; for a config")
      ->needs(steps)
      ->needs(config);
  command.add_flag("--compare", options.compare,
                   "lay the measured timeline beside the predicted one: errors by kind of op, and "
                   "with -o both timelines on one page");
  command
      .add_option(
          "--patience", options.patience,
          "stop when nothing has happened for so long; default 10s, twice the longest op, or "
          "what a rank's messages take at 100 MB/s")
      ->type_name("TIME");
  command
      .add_option("-o,--output", options.directory,
                  "the folder to write the measured timeline, trace and report to, or, of a run "
                  "that fails, each rank's flight record; made if missing")
      ->type_name("DIR");
  command
      .add_option(
          "--fault", options.faults,
          "with gloo, make something go wrong: kill, stall or slow at the n-th op of a rank, "
          "drop, duplicate, reorder, corrupt or size at the n-th message it sends; may be "
          "repeated")
      ->type_name("KIND@RANK:N")
      ->allow_extra_args(false);
  add_common_options(command, options);
}

std::optional<RunInput> run_input(const RunOptions& options) {
  if (!options.program.empty()) refuse_overrides(options);
  if (!options.faults.empty() && options.backend != "gloo") {
    throw InputError("--fault needs --backend gloo: only there can a rank fail alone");
  }
  if (!options.program.empty()) return input_of_program(options);
  if (options.config.empty()) {
    throw InputError("run needs a config, or --program with a program.json that compile wrote");
  }
  return input_of_config(options);
}

Time patience_of(const RunOptions& options, const Program& program) {
  if (!options.patience.empty()) return positive_duration("--patience", options.patience, "10s");
  Time longest{0};
  for (const Kernel& kernel : program.kernels) longest = std::max(longest, kernel.duration);
  return std::max({kPatience, 2 * longest, slowest_messages(program)});
}

}  // namespace counterflow
