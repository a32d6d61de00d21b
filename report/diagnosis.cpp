#include "report/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "report/expected_messages.h"
#include "report/flight_differences.h"
#include "report/flight_matches.h"
#include "report/flight_waits.h"
#include "report/json/writer.h"
#include "report/report_json.h"
#include "scheduler/error.h"

namespace counterflow {
namespace {

// Ranks of different processes may each have seen something else: what most of them say.
std::optional<Finding> what_the_run_said(const std::vector<FlightDump>& dumps) {
  std::map<std::optional<Rank>, std::size_t> votes;
  for (const FlightDump& each : dumps) {
    if (each.notes) ++votes[each.notes->culprit];
  }
  if (votes.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(
      votes, {}, [](const auto& vote) { return std::pair(vote.first.has_value(), vote.second); });
  for (const FlightDump& each : dumps) {
    if (!each.notes || each.notes->culprit != most->first) continue;
    const FlightNotes& notes = *each.notes;
    return Finding{
        Finding::Kind::recorded, notes.culprit,
        notes.culprit == notes.failed_rank ? notes.failed_op : std::string(),
        fmt::format("at {} of rank {}: {}", notes.failed_op, notes.failed_rank, notes.reason)};
  }
  return std::nullopt;
}

void check_program(const std::vector<FlightDump>& dumps, const Program& program) {
  const std::string hashed = fmt::format("{:016x}", hash(program));
  for (const FlightDump& dump : dumps) {
    const auto size = static_cast<Rank>(program.ranks.size());
    const Rank most =
        dump.known_ranks.empty() ? dump.rank : std::max(dump.rank, dump.known_ranks.back());
    if (most >= size) {
      throw InputError({dump.file, 0, 0},
                       fmt::format("it names rank {}, and the program has ranks 0 to {}; give the "
                                   "program that ran",
                                   most, size - 1));
    }
    if (dump.notes && dump.notes->program_hash != hashed) {
      throw InputError({dump.file, 0, 0},
                       fmt::format("it is a record of program {}, and the one given is {}; give "
                                   "the program that ran",
                                   dump.notes->program_hash, hashed));
    }
  }
}

}  // namespace

std::string_view name(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::recorded:
      return "recorded";
    case Finding::Kind::order_differs:
      return "order_differs";
    case Finding::Kind::differs:
      return "differs";
    case Finding::Kind::does_not_arrive:
      return "does_not_arrive";
    case Finding::Kind::never_posted:
      return "never_posted";
    case Finding::Kind::cycle:
      return "cycle";
    case Finding::Kind::no_record:
      return "no_record";
  }
  return "";
}

const Finding* Diagnosis::verdict() const {
  const auto certain =
      std::ranges::find_if(findings, [](const Finding& each) { return each.culprit.has_value(); });
  if (certain != findings.end()) return &*certain;
  return findings.empty() ? nullptr : &findings.front();
}

std::string Diagnosis::op() const {
  const Finding* found = verdict();
  if (found == nullptr) return {};
  const auto named = std::ranges::find_if(findings, [&](const Finding& each) {
    return each.culprit == found->culprit && !each.op.empty();
  });
  return named == findings.end() ? std::string() : named->op;
}

Diagnosis diagnose(const std::vector<FlightDump>& dumps, const Program* program) {
  std::optional<ExpectedMessages> expected;
  if (program != nullptr) {
    check_program(dumps, *program);
    expected.emplace(*program);
  }
  const ExpectedMessages* messages = expected ? &*expected : nullptr;
  const FlightMatches matches(dumps);
  Diagnosis result;
  result.ranks = matches.ranks();
  std::ranges::set_difference(matches.known(), result.ranks, std::back_inserter(result.missing));
  if (auto said = what_the_run_said(dumps)) result.findings.push_back(std::move(*said));
  std::ranges::move(differences(matches, messages), std::back_inserter(result.findings));
  if (auto wait = first_wait(matches, messages)) result.findings.push_back(std::move(*wait));
  for (const Rank rank : result.missing) {
    result.findings.push_back(
        {Finding::Kind::no_record, rank, {}, fmt::format("rank {} left no record", rank)});
  }
  std::ranges::stable_sort(result.findings, {}, &Finding::kind);
  return result;
}

std::string to_text(const Diagnosis& diagnosis) {
  const std::string records = fmt::format(
      "records of rank{} {}{}\n", diagnosis.ranks.size() == 1 ? "" : "s",
      fmt::join(diagnosis.ranks, ", "),
      diagnosis.missing.empty() ? std::string()
                                : fmt::format("; none of {}", fmt::join(diagnosis.missing, ", ")));
  const Finding* verdict = diagnosis.verdict();
  if (verdict == nullptr) return "nothing is wrong that these records show\n" + records;
  std::string text = verdict->culprit ? fmt::format("rank {} is at fault", *verdict->culprit)
                                      : std::string("no single rank is at fault");
  if (const std::string op = diagnosis.op(); !op.empty()) text += fmt::format(", at {}", op);
  text += '\n';
  for (const Finding& each : diagnosis.findings) {
    text += fmt::format("  {}: {}\n", name(each.kind), each.reason);
  }
  return text + records;
}

std::string to_json(const Diagnosis& diagnosis) {
  std::string out;
  json::Object object(out, ",\n ");
  object.add("schema_version", std::int64_t{kSchemaVersion});
  const Finding* verdict = diagnosis.verdict();
  if (verdict != nullptr) {
    if (verdict->culprit) object.add("culprit", std::int64_t{*verdict->culprit});
    object.add("op", diagnosis.op());
    object.add("reason", verdict->reason);
  }
  for (const auto& [key, ranks] :
       {std::pair("ranks", &diagnosis.ranks), std::pair("missing_ranks", &diagnosis.missing)}) {
    json::Array list(object.member(key));
    for (const Rank rank : *ranks) list.add(std::int64_t{rank});
    list.close();
  }
  json::Array findings(object.member("findings"), ",\n  ");
  for (const Finding& each : diagnosis.findings) {
    json::Object one(findings.element());
    one.add("kind", name(each.kind));
    if (each.culprit) one.add("culprit", std::int64_t{*each.culprit});
    one.add("op", each.op);
    one.add("reason", each.reason);
    one.close();
  }
  findings.close();
  object.close();
  return out + "\n";
}

}  // namespace counterflow
