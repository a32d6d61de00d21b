#include "tools/flight_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "executor/flight_record.h"
#include "report/flight_dump.h"
#include "scheduler/error.h"
#include "tools/output_files.h"

namespace counterflow {

void write_flight_records(const std::string& directory, const Program& program,
                          const exec::Failure& failure,
                          const std::vector<std::optional<exec::RankProgress>>& stopped) {
  const Matching matching(program);
  std::vector<OutputFile> files;
  for (std::size_t r = 0; r < stopped.size(); ++r) {
    if (!stopped[r]) continue;
    files.push_back({fmt::format("{}{}", exec::kFlightRecordPrefix, r), [&, r] {
                       return exec::flight_record(program, matching, static_cast<Rank>(r),
                                                  *stopped[r], failure);
                     }});
  }
  if (!files.empty()) write_files(directory, files);
}

void forget_flight_records(const std::string& directory, std::optional<Rank> only) {
  std::error_code none;
  for (std::filesystem::directory_iterator entry(directory, none), end; !none && entry != end;
       entry.increment(none)) {
    const std::string name = entry->path().filename().string();
    const auto rank = rank_of_flight_file(name);
    if (!rank || name != fmt::format("{}{}", exec::kFlightRecordPrefix, *rank)) continue;
    if (only && *only != *rank) continue;
    std::error_code error;
    std::filesystem::remove(entry->path(), error);
    if (error) {
      throw EnvironmentError(fmt::format("cannot remove '{}' of an earlier run: {}",
                                         entry->path().string(), error.message()));
    }
  }
}

}  // namespace counterflow
