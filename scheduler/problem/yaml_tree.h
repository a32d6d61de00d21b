#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/error.h"

// A YAML document as a plain tree that keeps what yaml-cpp's own nodes lose: where each key stands,
// keys given twice, and whether a scalar was quoted.
namespace counterflow::yaml {

struct Node;
using NodePtr = std::shared_ptr<const Node>;  // shared, so that an alias costs nothing

struct Entry {
  std::string key;
  SourceLocation where;
  NodePtr value;
};

struct Node {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;
  int line = 0;  // 0 in an override
  int column = 0;
  std::size_t height = 0;                     // levels below this node
  std::shared_ptr<const std::string> source;  // the file, or the override, it came from
  std::string text;                           // scalar
  std::vector<NodePtr> items;                 // list
  std::vector<Entry> entries;                 // map, in the order of the text

  [[nodiscard]] SourceLocation where() const { return {*source, line, column}; }
  // The value of a key, nullptr if there is none.
  [[nodiscard]] NodePtr find(std::string_view key) const;
};

// The most a config may hold, in bytes, and how deep it may nest.
inline constexpr std::size_t kMostBytes = std::size_t{16} << 20U;
inline constexpr std::size_t kMostDepth = 32;

// The text of a file; `what` it is, for messages. Throws InputError if it cannot be read or is
// larger than kMostBytes.
[[nodiscard]] std::string read_text(const std::string& path, std::string_view what = "config");

// The one document of a text; a null node if it is empty. Throws InputError with `source` and line
// for anything but well-formed UTF-8 and YAML: control characters, several documents, tags, deep
// nesting, an alias within its own anchor. O(length).
[[nodiscard]] NodePtr parse(std::string_view text, const std::string& source);

// The tree with one `key.path=value` applied: the value is parsed as YAML, missing maps are made.
// Throws InputError for bad syntax and for a path through something that is not a map.
[[nodiscard]] NodePtr with_override(const NodePtr& root, const std::string& assignment);

// The tree as YAML that parses back to it: maps in block style, lists of scalars on one line.
// Comments and anchors are gone. O(size).
[[nodiscard]] std::string to_text(const NodePtr& root);

}  // namespace counterflow::yaml
