#include "tools/flight_files.h"

#include <fmt/format.h>

#include "executor/flight_record.h"
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

}  // namespace counterflow
