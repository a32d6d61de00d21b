#include "report/dot.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/graph/dependencies.h"
#include "scheduler/ir/schedule_file.h"

namespace counterflow {
namespace {

// Above these a path is collapsed, and then cut in the middle.
constexpr std::size_t kCollapseAbove = 64;
constexpr std::size_t kMostNodes = 64;

using Out = std::back_insert_iterator<std::string>;

// Evenly spaced hues, so that neighbouring ranks differ.
std::string colour(Rank rank, int ranks) {
  return fmt::format("{:.3f} 0.35 0.95", static_cast<double>(rank) / std::max(1, ranks));
}

std::string_view label(Reason reason) {
  switch (reason) {
    case Reason::activation:
      return "activation";
    case Reason::gradient:
      return "gradient";
    case Reason::stash:
      return "stash";
    case Reason::weight:
      return "weight";
    default:
      return "";
  }
}

// As the inside of a quoted DOT string.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

// Without the grammar's suffix a pair fits its box.
std::string short_text(const Slot& slot) {
  std::string text = to_string(slot.first);
  if (slot.is_pair()) text += " & " + to_string(slot.second);
  return text;
}

class Drawer {
 public:
  Drawer(const Problem& problem, const Schedule& schedule)
      : problem_(problem),
        schedule_(schedule),
        dependencies_(problem, schedule),
        critical_(critical_path(problem, schedule, dependencies_)) {}

  [[nodiscard]] std::string draw() {
    fmt::format_to(Out(text_),
                   "digraph counterflow {{\n"
                   "  label=\"{}: one microbatch's way, and the critical path\";\n"
                   "  labelloc=t; rankdir=LR; fontname=\"Helvetica\";\n"
                   "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=11];\n"
                   "  edge [fontname=\"Helvetica\", fontsize=9];\n",
                   escaped(schedule_.name));
    draw_microbatch(0);
    draw_critical_path();
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  [[nodiscard]] const Slot& slot(Vertex vertex) const {
    const auto [rank, position] = dependencies_.place(vertex);
    return schedule_.ranks[static_cast<std::size_t>(rank)][position];
  }
  [[nodiscard]] bool concerns(Vertex vertex, Microbatch microbatch) const {
    const Slot& s = slot(vertex);
    return s.first.microbatch == microbatch || (s.is_pair() && s.second.microbatch == microbatch);
  }

  void node(const std::string& id, Vertex vertex, const std::string& more = "") {
    const Rank rank = dependencies_.place(vertex).rank;
    fmt::format_to(Out(text_), "    {} [label=\"{}\\nrank {}{}\", fillcolor=\"{}\"];\n", id,
                   short_text(slot(vertex)), rank, more, colour(rank, problem_.ranks()));
  }
  void edge(const std::string& from, const std::string& to, Reason reason) {
    fmt::format_to(Out(text_), "    {} -> {}", from, to);
    if (!label(reason).empty()) fmt::format_to(Out(text_), " [label=\"{}\"]", label(reason));
    text_ += ";\n";
  }

  // The slots of one microbatch and the data that flows between them.
  void draw_microbatch(Microbatch microbatch) {
    fmt::format_to(Out(text_), "  subgraph cluster_microbatch {{\n    label=\"microbatch {}\";\n",
                   microbatch);
    std::vector<Vertex> on_way;
    for (Vertex v = 0; v < num_vertices(dependencies_.graph()); ++v) {
      if (concerns(v, microbatch)) on_way.push_back(v);
    }
    const std::size_t all = on_way.size();
    if (all > kMostNodes) on_way.resize(kMostNodes);
    for (const Vertex v : on_way) node(fmt::format("m{}", v), v);
    for (const Vertex u : on_way) {
      for (auto [e, end] = out_edges(u, dependencies_.graph()); e != end; ++e) {
        const Vertex v = target(*e, dependencies_.graph());
        const Reason reason = dependencies_.graph()[*e].reason;
        if (reason == Reason::order || !std::ranges::binary_search(on_way, v)) continue;
        edge(fmt::format("m{}", u), fmt::format("m{}", v), reason);
      }
    }
    if (all > on_way.size()) {
      fmt::format_to(Out(text_), "    more [label=\"{} more slots\", fillcolor=white];\n",
                     all - on_way.size());
    }
    text_ += "  }\n";
  }

  // A run of the critical path drawn as one node.
  struct Run {
    Vertex first = 0;
    Vertex last = 0;
    std::size_t slots = 1;
  };

  [[nodiscard]] std::vector<Run> runs() const {
    std::vector<Run> result;
    const bool collapse = critical_.path.size() > kCollapseAbove;
    for (const Vertex v : critical_.path) {
      const bool joins =
          collapse && !result.empty() &&
          dependencies_.place(result.back().last).rank == dependencies_.place(v).rank;
      if (joins) {
        result.back().last = v;
        ++result.back().slots;
      } else {
        result.push_back({v, v, 1});
      }
    }
    return result;
  }

  [[nodiscard]] Reason reason_between(Vertex from, Vertex to) const {
    for (auto [e, end] = out_edges(from, dependencies_.graph()); e != end; ++e) {
      if (target(*e, dependencies_.graph()) == to) return dependencies_.graph()[*e].reason;
    }
    return Reason::order;
  }

  void draw_critical_path() {
    const std::vector<Run> path = runs();
    fmt::format_to(
        Out(text_), "  subgraph cluster_critical {{\n    label=\"critical path, {} slots{}\";\n",
        critical_.path.size(), !problem_.links.only_latency() ? ", bandwidth not counted" : "");
    const std::size_t half = kMostNodes / 2;
    std::string before;
    for (std::size_t k = 0; k < path.size(); ++k) {
      if (path.size() > kMostNodes && k == half) {
        const std::size_t skipped = path.size() - 2 * half;
        fmt::format_to(Out(text_), "    skipped [label=\"{} more steps\", fillcolor=white];\n",
                       skipped);
        edge(before, "skipped", Reason::order);
        before = "skipped";
        k += skipped;
      }
      const Run& run = path[k];
      const std::string id = fmt::format("c{}", run.first);
      const std::string more =
          run.slots > 1 ? fmt::format("\\nto {} ({} slots)", short_text(slot(run.last)), run.slots)
                        : "";
      node(id, run.first, more);
      if (!before.empty()) {
        const bool adjacent = k > 0 && before == fmt::format("c{}", path[k - 1].first);
        edge(before, id, adjacent ? reason_between(path[k - 1].last, run.first) : Reason::order);
      }
      before = id;
    }
    text_ += "  }\n";
  }

  const Problem& problem_;
  const Schedule& schedule_;
  const Dependencies dependencies_;
  const CriticalPath critical_;
  std::string text_;
};

}  // namespace

std::string graph_dot(const Problem& problem, const Schedule& schedule) {
  return Drawer(problem, schedule).draw();
}

}  // namespace counterflow
