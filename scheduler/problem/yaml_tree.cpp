#include "scheduler/problem/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "scheduler/problem/text.h"

namespace counterflow::yaml {
namespace {

// Where a text comes from. An override is named whole, a file by line.
struct Source {
  std::string name;
  bool has_lines = true;

  [[nodiscard]] SourceLocation at(int line, int column) const {
    return has_lines ? SourceLocation{name, line, column} : SourceLocation{name, 0, 0};
  }
};

// Builds the tree of the first document from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(Source source)
      : source_(std::move(source)), name_(std::make_shared<const std::string>(source_.name)) {}

  [[nodiscard]] NodePtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) {
      fail(mark, "a second YAML document starts here; keep one document and remove the rest");
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(Node::Kind::null, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      fail(mark, "this alias stands inside the value it names; write the value out");
    }
    check_depth(at(mark), known->second->height);
    add(known->second, 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(mark, tag);
    auto node = make(Node::Kind::scalar, mark);
    node->text = value;
    node->quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Node::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Node::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor;
    std::optional<Entry> entry;  // of a map: the key whose value comes next
  };

  [[nodiscard]] SourceLocation at(const YAML::Mark& mark) const {
    return source_.at(mark.line + 1, mark.column + 1);
  }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw InputError(at(mark), message);
  }
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    fail(mark, fmt::format("the tag {} has no meaning here; remove it", shown(tag)));
  }
  [[nodiscard]] std::shared_ptr<Node> make(Node::Kind kind, const YAML::Mark& mark) const {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    const SourceLocation where = at(mark);
    node->line = where.line;
    node->column = where.column;
    node->source = name_;
    return node;
  }
  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    check_tag(mark, tag);
    check_depth(at(mark), 0);
    open_.push_back({make(kind, mark), anchor, std::nullopt});
  }
  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    add(std::move(closed.node), closed.anchor);
  }
  // Aliases nest what they name, so the height of it counts. Trees are destroyed recursively.
  void check_depth(const SourceLocation& where, std::size_t height) const {
    if (open_.size() + height < kMostDepth) return;
    throw InputError(where, fmt::format("nested {} deep; no key needs that", kMostDepth));
  }
  void add(NodePtr node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.node->height = std::max(parent.node->height, node->height + 1);
    if (parent.node->kind == Node::Kind::list) {
      parent.node->items.push_back(std::move(node));
    } else if (parent.entry) {
      parent.entry->value = std::move(node);
      parent.node->entries.push_back(std::move(*parent.entry));
      parent.entry.reset();
    } else if (node->kind == Node::Kind::scalar) {
      parent.entry = Entry{node->text, node->where(), nullptr};
    } else {
      throw InputError(node->where(), "a key is not a word; write `key: value`");
    }
  }

  Source source_;
  std::shared_ptr<const std::string> name_;
  NodePtr root_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, NodePtr> anchors_;
};

// yaml-cpp takes some control characters for the end of the text, so nothing after it would count.
void check_characters(std::string_view text, const Source& source) {
  int line = 1;
  int column = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = utf8_sequence_length(text.substr(i));
    if (length == 0) {
      throw InputError(source.at(line, column),
                       fmt::format("byte 0x{:02x} is not UTF-8; save as UTF-8 text", byte));
    }
    const bool control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    if (control || byte == 0x7f) {
      throw InputError(source.at(line, column),
                       fmt::format("control character 0x{:02x}; remove it", byte));
    }
    i += length;
    column = byte == '\n' ? 1 : column + 1;
    line += byte == '\n' ? 1 : 0;
  }
}

// Newer versions of yaml-cpp name the anchor, older ones do not; the place says enough.
std::string_view reason(const YAML::Exception& error) {
  constexpr std::string_view kUnknownAnchor = "the referenced anchor is not defined";
  return error.msg.starts_with(kUnknownAnchor) ? kUnknownAnchor : std::string_view(error.msg);
}

// The column of the first tab in the indentation of a line, both counted from 0.
std::optional<int> indenting_tab(std::string_view text, int line) {
  for (; line > 0; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t tab = text.substr(0, indent).find('\t');
  if (tab == std::string_view::npos) return std::nullopt;
  return static_cast<int>(tab);
}

[[noreturn]] void refuse_form(const YAML::Exception& error, std::string_view text,
                              const Source& source) {
  const std::string why = fmt::format("not well-formed YAML: {}", reason(error));
  const int line = error.mark.line;
  if (const auto tab = indenting_tab(text, line)) {
    throw InputError(source.at(line + 1, *tab + 1),
                     why + "; the line is indented with a tab, write spaces");
  }
  throw InputError(source.at(line + 1, error.mark.column + 1), why);
}

NodePtr parse_document(std::string_view text, const Source& source) {
  if (text.size() > kMostBytes) {
    throw InputError(source.at(0, 0),
                     "larger than 16 MiB; a config holds a few numbers for each stage");
  }
  check_characters(text, source);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(source);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    refuse_form(error, text, source);
  }
  if (builder.root()) return builder.root();
  auto empty = std::make_shared<Node>();
  empty->source = std::make_shared<const std::string>(source.name);
  return empty;
}

struct Assignment {
  std::shared_ptr<const std::string> source;  // "--set key.path=value"
  std::vector<std::string> path;
  NodePtr value;
};

Assignment parse_assignment(const std::string& text) {
  const std::string source = "--set " + shown(text);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw InputError(source + ": no `=`; write key.path=value, for example pipeline.ranks=8");
  }
  Assignment assignment;
  std::istringstream keys(text.substr(0, equals) + ".");
  for (std::string key; std::getline(keys, key, '.');) {
    if (key.empty()) {
      throw InputError(source + ": an empty key; write key.path=value, for example " +
                       "pipeline.ranks=8");
    }
    assignment.path.push_back(key);
  }
  if (assignment.path.size() >= kMostDepth) {
    throw InputError(fmt::format("{}: nested {} deep; no key needs that", source, kMostDepth));
  }
  assignment.source = std::make_shared<const std::string>(source);
  assignment.value = parse_document(std::string_view(text).substr(equals + 1), {source, false});
  return assignment;
}

// A copy of `node` with the value put at `path` below it; what is not on the path is shared.
NodePtr assign(const NodePtr& node, std::span<const std::string> path, const std::string& above,
               const Assignment& assignment) {
  if (path.empty()) return assignment.value;
  auto changed = std::make_shared<Node>();
  if (node && node->kind != Node::Kind::null) {
    if (node->kind != Node::Kind::map) {
      throw InputError(fmt::format("{}: {} is not a map and has no key {}; set {} itself",
                                   *assignment.source, shown(above), shown(path[0]), shown(above)));
    }
    *changed = *node;
  } else {
    changed->source = assignment.source;
  }
  changed->kind = Node::Kind::map;
  const std::string here = above.empty() ? path[0] : above + "." + path[0];
  const NodePtr old = changed->find(path[0]);
  NodePtr value = assign(old, path.subspan(1), here, assignment);
  const auto same_key = [&](const Entry& other) { return other.key == path[0]; };
  const auto place = std::find_if(changed->entries.begin(), changed->entries.end(), same_key);
  if (place == changed->entries.end()) {
    changed->entries.push_back({path[0], {*assignment.source, 0, 0}, std::move(value)});
  } else {
    place->value = std::move(value);
  }
  return changed;
}

}  // namespace

NodePtr Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

std::string read_text(const std::string& path, std::string_view what) {
  const SourceLocation where{path, 0, 0};
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    throw InputError(where, fmt::format("no such file; give the path of a YAML {}", what));
  }
  if (std::filesystem::is_directory(status)) {
    throw InputError(where, fmt::format("this is a directory; give the path of a YAML {}", what));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw InputError(where, fmt::format("cannot be read: {}; check its permissions",
                                        std::generic_category().message(errno)));
  }
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) throw InputError(where, "cannot be read; check the file");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

NodePtr parse(std::string_view text, const std::string& source) {
  return parse_document(text, {source, true});
}

NodePtr with_override(const NodePtr& root, const std::string& assignment) {
  const Assignment parsed = parse_assignment(assignment);
  // A root that is no map is refused when it is read, with its line.
  if (root->kind == Node::Kind::scalar || root->kind == Node::Kind::list) return root;
  return assign(root, parsed.path, "", parsed);
}

}  // namespace counterflow::yaml
