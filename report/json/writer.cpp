#include "report/json/writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "scheduler/ir/schedule_file.h"

namespace counterflow::json {

void append(std::string& out, std::int64_t value) {
  const fmt::format_int digits(value);
  out.append(digits.data(), digits.size());
}

void append(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

void append_quoted(std::string& out, std::string_view text) {
  using Json = nlohmann::json;
  for (const char c : Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
}

void append_quoted(std::string& out, const Op& op) {
  out += '"';
  if (op.kind != OpKind::none) append_text(out, op);
  // Which of several reductions of a stage.
  if (!has_microbatch(op.kind) && op.microbatch > 0) out += std::to_string(op.microbatch);
  out += '"';
}

std::string& Object::member(std::string_view key) {
  if (!first_) out_ += separator_;
  first_ = false;
  append_quoted(out_, key);
  out_ += ':';
  return out_;
}

std::string& Array::element() {
  if (!first_) out_ += separator_;
  first_ = false;
  return out_;
}

}  // namespace counterflow::json
