#include "report/program_json.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/draw.h"
#include "scheduler/error.h"
#include "tests/fuzz/run_program.h"
#include "tests/fuzz/targets.h"

namespace counterflow::fuzz {
namespace {

constexpr int kMostStages = 64;
constexpr std::size_t kMostInstructions = 2000;

std::optional<Program> read(std::string_view json, std::string& refusal) {
  try {
    return parse_program_json(json, "fuzz.json");
  } catch (const InputError& error) {
    refusal = error.what();
    require(refusal.starts_with("fuzz.json"), "the message names the file");
    return std::nullopt;
  }
}

// The same document with the hash its contents have, which the refusal tells: no mutation would
// ever guess it.
std::optional<std::string> with_right_hash(std::string_view json, const std::string& refusal) {
  constexpr std::string_view kBefore = "its contents give ";
  constexpr std::size_t kDigits = 16;
  const std::size_t at = refusal.find(kBefore);
  if (at == std::string::npos) return std::nullopt;
  nlohmann::json document = nlohmann::json::parse(json);
  if (!document.is_object()) return std::nullopt;  // the refusal only quotes these words
  document["hash"] = refusal.substr(at + kBefore.size(), kDigits);
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Each stage where it is computed first.
Problem problem_of(const Program& program) {
  std::vector<Rank> rank_of_stage(static_cast<std::size_t>(std::max(program.stages, 1)), 0);
  for (std::size_t r = program.ranks.size(); r-- > 0;) {
    for (const Instruction& each : program.ranks[r].instructions) {
      if (is_compute(each.op.kind)) rank_of_stage[each.op.stage] = static_cast<Rank>(r);
    }
  }
  return plain_problem(Placement(static_cast<int>(program.ranks.size()), std::move(rank_of_stage)),
                       program.microbatches);
}

}  // namespace

void program_json(std::string_view json) {
  std::string refusal;
  std::optional<Program> program = read(json, refusal);
  if (!program) {
    const auto mended = with_right_hash(json, refusal);
    if (mended) program = read(*mended, refusal);
    if (!program) return;
  }
  require(parse_program_json(counterflow::program_json(*program)) == *program,
          "a program written again reads back");
  if (program->ranks.empty() || program->stages > kMostStages) return;
  if (program->ranks.size() > kMostStages || program->size() > kMostInstructions) return;
  run_program(problem_of(*program), *program);
}

}  // namespace counterflow::fuzz
