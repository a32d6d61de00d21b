#include "report/flight_dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/json/reader.h"
#include "report/pickle.h"
#include "scheduler/error.h"

namespace counterflow {
namespace {

using json::Node;

constexpr std::int64_t kMostRanks = 65'536;

// "[0, 1, 5]", as Python writes it.
std::vector<Rank> ranks_in(const Node& node) {
  const std::string text = node.text();
  std::vector<Rank> ranks;
  const bool is_list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (!is_list) node.fail(fmt::format("'{}' is no list of ranks like [0, 1]", text));
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at < end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    Rank rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank < 0 || rank >= kMostRanks) {
      node.fail(fmt::format("'{}' is no list of ranks from 0 to {}", text, kMostRanks - 1));
    }
    ranks.push_back(rank);
    at = next;
  }
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

class Reader {
 public:
  Reader(const nlohmann::json& document, const std::string& file)
      : document_(document), file_(file) {}

  void read(FlightDump& dump) {
    const Node root(document_, file_);
    check_version(root.at("version"));
    read_groups(dump);
    const Node entries = root.at("entries");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const Node entry = entries.at(i);
      if (i == 0) dump.from_the_beginning = entry.at("record_id").integer(0) == 0;
      if (is_end_of_group(entry)) {
        close_group(entry, dump.entries);
        continue;
      }
      dump.entries.push_back(read_entry(entry));
      posted_in_.push_back(place_of(entry));
    }
    dump.groups = groups_;
    if (!root.has("counterflow")) return;
    check_rank(root.at("rank"), dump.rank);
    dump.notes = read_notes(root.at("counterflow"));
  }

 private:
  // Of other recorders the name alone tells.
  static void check_rank(const Node& recorded, Rank named) {
    if (recorded.integer() == named) return;
    recorded.fail(
        fmt::format("it is the record of rank {}, and its name says {}; give the file "
                    "its name back",
                    recorded.integer(), named));
  }
  // Group and sequence: what is posted together shares them.
  using Place = std::pair<std::uint32_t, std::int64_t>;

  static void check_version(const Node& version) {
    const std::string text = version.text();
    if (!text.starts_with("2.")) {
      version.fail(fmt::format("'{}' is no version of flight records that is known: 2.x", text));
    }
  }

  void read_groups(FlightDump& dump) {
    const auto found = document_.find("pg_config");
    const Node groups = Node(document_, file_).at("pg_config");
    if (!found->is_object()) groups.fail("expected an object of process groups");
    for (const auto& [name, unused] : found->items()) {
      std::vector<Rank> members = ranks_in(groups.at(name).at("ranks"));
      dump.known_ranks.insert(dump.known_ranks.end(), members.begin(), members.end());
      numbers_.emplace(name, static_cast<std::uint32_t>(groups_.size()));
      groups_.push_back({name, std::move(members)});
    }
  }

  std::uint32_t group_of(const Node& entry) const {
    const Node name = entry.at("process_group").at(std::size_t{0});
    auto found = numbers_.find(name.text());
    // PyTorch's gloo does not name its group there.
    if (found == numbers_.end()) found = numbers_.find("");
    if (found == numbers_.end()) {
      name.fail(fmt::format("process group '{}' is not among pg_config", name.text()));
    }
    return found->second;
  }

  // "nccl:send 0->1" without what stands before the colon.
  static std::string operation(const Node& entry) {
    const std::string text = entry.at("profiling_name").text();
    const std::size_t colon = text.find(':');
    return colon == std::string::npos ? text : text.substr(colon + 1);
  }

  static bool is_end_of_group(const Node& entry) { return operation(entry) == "coalesced"; }

  Place place_of(const Node& entry) const {
    const bool p2p = entry.has("is_p2p") && entry.at("is_p2p").boolean();
    return {group_of(entry), entry.at(p2p ? "p2p_seq_id" : "collective_seq_id").integer()};
  }

  // The state of a group stands at its end. What the end of another precedes is not of this one,
  // so every entry is looked at once.
  void close_group(const Node& entry, std::vector<FlightEntry>& entries) {
    const Place place = place_of(entry);
    const bool completed = is_completed(entry);
    for (std::size_t i = entries.size(); i-- > closed_ && posted_in_[i] == place;) {
      entries[i].completed = completed;
    }
    closed_ = entries.size();
  }

  // PyTorch's gloo follows no states, and only says which work it is done with.
  static bool is_completed(const Node& entry) {
    const std::string state = entry.at("state").text();
    const bool is_done = entry.has("retired") && entry.at("retired").boolean();
    return state.starts_with("completed") || (state == "scheduled" && is_done);
  }

  FlightEntry read_entry(const Node& node) const {
    FlightEntry entry;
    entry.group = group_of(node);
    const std::string text = operation(node);
    entry.name = text.substr(0, text.find(' '));
    if (entry.name == "send") entry.kind = FlightEntry::Kind::send;
    if (entry.name == "recv") entry.kind = FlightEntry::Kind::receive;
    if (entry.kind != FlightEntry::Kind::collective)
      read_ends(node, text, groups_[entry.group].members, entry);
    entry.sequence = node.at("collective_seq_id").integer();
    read_tensors(node, entry);
    entry.completed = is_completed(node);
    const Node created = node.at("time_created_ns");
    if (!created.is_null()) entry.created_ns = created.integer();
    entry.frame = frame_of(node);
    if (node.has("communicator")) entry.communicator = node.at("communicator").integer(0, 65'535);
    return entry;
  }

  // "send 0->1", "recv 1<-0": places in the group.
  static void read_ends(const Node& node, const std::string& text, const std::vector<Rank>& members,
                        FlightEntry& entry) {
    const bool sends = entry.kind == FlightEntry::Kind::send;
    const std::size_t space = text.find(' ');
    const std::size_t arrow = text.find(sends ? "->" : "<-");
    std::size_t mine = 0;
    std::size_t other = 0;
    const auto read = [&](std::size_t from, std::size_t to, std::size_t& value) {
      const auto [end, error] = std::from_chars(text.data() + from, text.data() + to, value);
      return error == std::errc() && end == text.data() + to && value < members.size();
    };
    const bool formed = space != std::string::npos && arrow != std::string::npos && space < arrow &&
                        read(space + 1, arrow, mine) && read(arrow + 2, text.size(), other);
    if (!formed) {
      node.at("profiling_name")
          .fail(fmt::format("'{}' does not name two of the {} members of its group, as "
                            "\"send 0->1\" and \"recv 1<-0\" do",
                            text, members.size()));
    }
    entry.source = members[sends ? mine : other];
    entry.destination = members[sends ? other : mine];
  }

  static std::string sizes(const Node& node) {
    std::string text = "[";
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Node shape = node.at(i);
      text += i == 0 ? "[" : ", [";
      for (std::size_t k = 0; k < shape.size(); ++k) {
        if (k > 0) text += ", ";
        text += std::to_string(shape.at(k).integer());
      }
      text += ']';
    }
    return text + "]";
  }

  static std::string types(const Node& node) {
    std::string text;
    for (std::size_t i = 0; i < node.size(); ++i) {
      text += (i == 0 ? "" : ", ") + node.at(i).text();
    }
    return text;
  }

  static std::int64_t bytes_of(std::string_view type) {
    constexpr std::pair<std::string_view, std::int64_t> kTypes[] = {
        {"Byte", 1},     {"Char", 1},  {"Bool", 1},          {"Half", 2},
        {"BFloat16", 2}, {"Short", 2}, {"Float", 4},         {"Int", 4},
        {"Double", 8},   {"Long", 8},  {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
    for (const auto& [name, bytes] : kTypes) {
      if (name == type) return bytes;
    }
    return -1;
  }

  // Of all tensors together; below zero where a type is not known or the product is too large.
  static std::int64_t bytes(const Node& sizes, const Node& types) {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::int64_t size = i < types.size() ? bytes_of(types.at(i).text()) : -1;
      const Node shape = sizes.at(i);
      for (std::size_t k = 0; k < shape.size() && size >= 0; ++k) {
        const std::int64_t extent = shape.at(k).integer();
        if (extent < 0 || __builtin_mul_overflow(size, extent, &size)) size = -1;
      }
      if (size < 0 || __builtin_add_overflow(total, size, &total)) return -1;
    }
    return total;
  }

  static void read_tensors(const Node& node, FlightEntry& entry) {
    const bool receives = entry.kind == FlightEntry::Kind::receive;
    entry.sizes = sizes(node.at(receives ? "output_sizes" : "input_sizes"));
    entry.types = types(node.at(receives ? "output_dtypes" : "input_dtypes"));
    entry.bytes = bytes(node.at(receives ? "output_sizes" : "input_sizes"),
                        node.at(receives ? "output_dtypes" : "input_dtypes"));
    if (entry.kind == FlightEntry::Kind::collective) {
      entry.sizes += " to " + sizes(node.at("output_sizes"));
      entry.types += " to " + types(node.at("output_dtypes"));
    }
  }

  static std::string frame_of(const Node& node) {
    if (!node.has("frames") || node.at("frames").size() == 0) return {};
    return node.at("frames").at(std::size_t{0}).at("name").text();
  }

  FlightNotes read_notes(const Node& node) const {
    FlightNotes notes;
    notes.program_hash = node.at("program_hash").text();
    const Node failure = node.at("failure");
    notes.failed_rank = static_cast<Rank>(failure.at("rank").integer(0, kMostRanks - 1));
    notes.failed_op = failure.at("op").text();
    notes.reason = failure.at("reason").text();
    if (const Node culprit = failure.at("culprit"); !culprit.is_null()) {
      notes.culprit = static_cast<Rank>(culprit.integer(0, kMostRanks - 1));
    }
    const Node running = node.at("running");
    for (std::size_t i = 0; i < running.size(); ++i) {
      notes.running.push_back(running.at(i).at("op").text());
    }
    const Node not_begun = node.at("not_begun");
    for (std::size_t i = 0; i < not_begun.size(); ++i) {
      notes.not_begun.push_back(read_entry(not_begun.at(i)));
    }
    return notes;
  }

  const nlohmann::json& document_;
  const std::string& file_;
  std::vector<FlightGroup> groups_;
  std::map<std::string, std::uint32_t> numbers_;  // of the groups, by name
  std::vector<Place> posted_in_;                  // [entry]
  std::size_t closed_ = 0;                        // entries before the end of the last group
};

nlohmann::json parse(std::string_view bytes, const std::string& file) {
  if (bytes.starts_with('\x80')) return parse_pickle(bytes, file);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') return json::parse(bytes, file);
  throw InputError({file, 0, 0},
                   "it is no flight record: that begins with '{' (JSON) or byte 0x80 (a pickle); "
                   "move other files whose names end in a number elsewhere");
}

}  // namespace

std::optional<Rank> rank_of_flight_file(std::string_view name) {
  for (const std::string_view ending : {".json", ".pickle", ".pkl"}) {
    if (name.ends_with(ending)) {
      name.remove_suffix(ending.size());
      break;
    }
  }
  const std::size_t last = name.find_last_not_of("0123456789");
  const std::string_view digits = name.substr(last == std::string_view::npos ? 0 : last + 1);
  Rank rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (digits.empty() || error != std::errc() || rank >= kMostRanks || name.starts_with('.')) {
    return std::nullopt;
  }
  return rank;
}

FlightDump parse_flight_dump(std::string_view bytes, const std::string& file, Rank rank) {
  FlightDump dump;
  dump.rank = rank;
  dump.file = file;
  const nlohmann::json document = parse(bytes, file);
  Reader(document, file).read(dump);
  std::ranges::sort(dump.known_ranks);
  dump.known_ranks.erase(std::unique(dump.known_ranks.begin(), dump.known_ranks.end()),
                         dump.known_ranks.end());
  return dump;
}

}  // namespace counterflow
