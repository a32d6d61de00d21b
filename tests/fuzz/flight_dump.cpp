#include "report/flight_dump.h"

#include <string>

#include "report/diagnosis.h"
#include "scheduler/error.h"
#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {

// What `diagnose DIR` does with a folder in which every rank left this record.
void flight_dump(std::string_view bytes) {
  std::vector<FlightDump> dumps;
  for (const Rank rank : {0, 1}) {  // one of our own is of one of them at most
    try {
      dumps.push_back(parse_flight_dump(bytes, "fuzz_0", rank));
    } catch (const InputError& error) {
      require(std::string_view(error.what()).starts_with("fuzz_0"), "the message names the file");
    }
  }
  if (dumps.empty()) return;
  const Diagnosis diagnosis = diagnose(dumps, nullptr);
  require((diagnosis.verdict() == nullptr) == diagnosis.findings.empty(), "a finding is told");
  (void)to_text(diagnosis);
  (void)to_json(diagnosis);
}

}  // namespace counterflow::fuzz
