#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "scheduler/ir/op.h"

// Pieces of JSON text, appended to one string: files of a million rows are written in one go.
namespace counterflow::json {

// A whole number.
void append(std::string& out, std::int64_t value);
// The shortest text that reads back as the same double, always with a fraction or an exponent.
// A value that is not finite has no JSON form and becomes null.
void append(std::string& out, double value);
// A quoted string. `<` is escaped, so that the text may stand inside an HTML page; bytes that are
// not UTF-8 become U+FFFD.
void append_quoted(std::string& out, std::string_view text);
// A quoted op, "" for none.
void append_quoted(std::string& out, const Op& op);

template <typename T>
void append_value(std::string& out, const T& value) {
  if constexpr (std::is_integral_v<T>) {
    append(out, static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    append(out, static_cast<double>(value));
  } else {
    append_quoted(out, value);
  }
}

// An object under construction: add its members in order, then close it.
class Object {
 public:
  explicit Object(std::string& out, std::string_view separator = ",")
      : out_(out), separator_(separator) {
    out_ += '{';
  }
  // Begins a member; its value is to be appended to what this returns.
  std::string& member(std::string_view key);
  template <typename T>
  void add(std::string_view key, const T& value) {
    append_value(member(key), value);
  }
  void close() { out_ += '}'; }

 private:
  std::string& out_;
  std::string_view separator_;
  bool first_ = true;
};

// An array under construction.
class Array {
 public:
  explicit Array(std::string& out, std::string_view separator = ",")
      : out_(out), separator_(separator) {
    out_ += '[';
  }
  // Begins an element; it is to be appended to what this returns.
  std::string& element();
  template <typename T>
  Array& add(const T& value) {
    append_value(element(), value);
    return *this;
  }
  void close() { out_ += ']'; }

 private:
  std::string& out_;
  std::string_view separator_;
  bool first_ = true;
};

}  // namespace counterflow::json
