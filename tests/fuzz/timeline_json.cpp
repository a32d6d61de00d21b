#include <array>
#include <string>

#include "report/compare.h"
#include "report/drawing.h"
#include "scheduler/error.h"
#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {

// What `compare A.json B.json` does, with the same file as A and B.
void timeline_json(std::string_view json) {
  Drawing drawing;
  try {
    drawing = parse_timeline_json(json, "fuzz.json");
  } catch (const InputError& error) {
    require(std::string_view(error.what()).starts_with("fuzz.json"), "the message names the file");
    return;
  }
  const std::string text = counterflow::timeline_json(drawing);
  const Drawing again = parse_timeline_json(text);
  require(again.lanes == drawing.lanes, "a timeline written again reads back");
  require(counterflow::timeline_json(again) == text, "and so does its report");
  (void)timeline_svg(drawing);
  const std::array<NamedRun, 2> runs{NamedRun{"fuzz.json", drawing}, NamedRun{"again", again}};
  (void)compare_table(runs);
  (void)compare_json(runs);
  (void)compare_html(runs);
}

}  // namespace counterflow::fuzz
