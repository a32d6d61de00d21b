#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "scheduler/problem/yaml_tree.h"

namespace counterflow::yaml {
namespace {

// Text that means the same bare, wherever it stands.
bool is_plain(std::string_view text) {
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_./+-").find(c) != std::string_view::npos;
  };
  // A null, or a sign that could be read as a list's dash or a number's.
  return !text.empty() && text != "null" && text != "Null" && text != "NULL" &&
         text.front() != '-' && std::all_of(text.begin(), text.end(), safe);
}

std::string escaped(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      all += '\\';
      all += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      all += fmt::format("\\x{:02x}", byte);
    } else {
      all += c;
    }
  }
  return all + '"';
}

std::string scalar(const Node& node) {
  if (node.kind == Node::Kind::null) return "null";
  // Numbers keep their sign bare: quoted they would be text.
  const bool negative = node.text.size() > 1 && node.text.front() == '-' &&
                        is_plain(std::string_view(node.text).substr(1));
  return !node.quoted && (negative || is_plain(node.text)) ? node.text : escaped(node.text);
}

bool is_scalar(const NodePtr& node) {
  return node->kind == Node::Kind::scalar || node->kind == Node::Kind::null;
}

// On one line, in braces and brackets.
std::string flow(const Node& node) {
  std::string inner;
  const auto add = [&](const std::string& one) { inner += (inner.empty() ? "" : ", ") + one; };
  switch (node.kind) {
    case Node::Kind::list:
      for (const NodePtr& item : node.items) add(flow(*item));
      return "[" + inner + "]";
    case Node::Kind::map:
      for (const Entry& entry : node.entries) {
        add((is_plain(entry.key) ? entry.key : escaped(entry.key)) + ": " + flow(*entry.value));
      }
      return "{" + inner + "}";
    default:
      return scalar(node);
  }
}

bool all_scalars(const Node& node) {
  const auto has_scalar = [](const Entry& entry) { return is_scalar(entry.value); };
  return node.kind == Node::Kind::map
             ? std::all_of(node.entries.begin(), node.entries.end(), has_scalar)
             : std::all_of(node.items.begin(), node.items.end(), is_scalar);
}

void write(const Node& node, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  for (const Entry& entry : node.entries) {
    const std::string key = is_plain(entry.key) ? entry.key : escaped(entry.key);
    const Node& value = *entry.value;
    if (value.kind == Node::Kind::map && !value.entries.empty()) {
      out += fmt::format("{}{}:\n", margin, key);
      write(value, indent + 2, out);
    } else if (value.kind == Node::Kind::list && !all_scalars(value)) {
      out += fmt::format("{}{}:\n", margin, key);
      for (const NodePtr& item : value.items) out += fmt::format("{}  - {}\n", margin, flow(*item));
    } else {
      out += fmt::format("{}{}: {}\n", margin, key, flow(value));
    }
  }
}

}  // namespace

std::string to_text(const NodePtr& root) {
  if (root->kind != Node::Kind::map || root->entries.empty()) return flow(*root) + "\n";
  std::string out;
  write(*root, 0, out);
  return out;
}

}  // namespace counterflow::yaml
