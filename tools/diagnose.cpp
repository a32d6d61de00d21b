#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "driver/input_file.h"
#include "report/diagnosis.h"
#include "report/flight_dump.h"
#include "report/program_json.h"
#include "scheduler/error.h"
#include "tools/command.h"
#include "tools/console.h"

namespace counterflow {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = std::uintmax_t{1} << 28U;

struct DiagnoseOptions {
  std::string directory;
  std::string program;
  bool json = false;
};

// The flight records of a folder by rank: its files whose names end in a number.
std::map<Rank, fs::path> flight_files(const std::string& directory) {
  std::error_code error;
  std::map<Rank, fs::path> files;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    const std::optional<Rank> rank = rank_of_flight_file(path.filename().string());
    std::error_code ignored;
    if (!rank || !fs::is_regular_file(path, ignored)) continue;
    const auto [known, is_new] = files.emplace(*rank, path);
    if (!is_new) {
      throw InputError(
          fmt::format("{}: '{}' and '{}' are both of rank {}; leave the records of "
                      "one run there",
                      directory, std::min(known->second, path).filename().string(),
                      std::max(known->second, path).filename().string(), *rank));
    }
  }
  if (error) throw InputError(fmt::format("cannot read '{}': {}", directory, error.message()));
  if (files.empty()) {
    throw InputError(
        fmt::format("{}: no file's name ends in a rank, as flight_record_0 and "
                    "nccl_trace_rank_0 do; give the folder that the records are in",
                    directory));
  }
  return files;
}

FlightDump read_flight_file(Rank rank, const fs::path& path) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(path, ignored);
  if (size > kLargestFile) {
    throw InputError({path.string(), 0, 0},
                     fmt::format("{} bytes are more than the 256 MiB that a record may have; let "
                                 "the recorder keep fewer entries (TORCH_FR_BUFFER_SIZE)",
                                 size));
  }
  return parse_flight_dump(read_input(path.string()), path.string(), rank);
}

int run_diagnose(const DiagnoseOptions& options) {
  std::optional<Program> program;
  if (!options.program.empty()) {
    program = parse_program_json(read_input(options.program), options.program);
  }
  std::vector<FlightDump> dumps;
  for (const auto& [rank, path] : flight_files(options.directory)) {
    dumps.push_back(read_flight_file(rank, path));
  }
  const Diagnosis diagnosis = diagnose(dumps, program ? &*program : nullptr);
  print(options.json ? to_json(diagnosis) : to_text(diagnosis));
  return diagnosis.findings.empty() ? kAnswerIsNo : kDone;
}

}  // namespace

void add_diagnose(CLI::App& app, Command& run) {
  const auto options = std::make_shared<DiagnoseOptions>();
  CLI::App* command = app.add_subcommand(
      "diagnose", "who is at fault, by the flight records of a run that stopped");
  command
      ->add_option("DIR", options->directory,
                   "the folder with a record a rank, of `run -o` or of PyTorch (pickle or JSON)")
      ->required();
  command
      ->add_option("--program", options->program,
                   "the program.json that ran: tells what held what back, and names ops")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &run] { run = [options] { return run_diagnose(*options); }; });
}

}  // namespace counterflow
