#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace counterflow {

// Where in the user's input a value stands. Line and column count from 1; 0: not known.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

// "model.yaml:12:5", as far as known.
[[nodiscard]] std::string to_string(const SourceLocation& location);

// Input the user can mend: what() names the place, the value, the rule and a fix. Exit status 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error(message) {}
  InputError(SourceLocation where, const std::string& message)
      : std::runtime_error(to_string(where).empty() ? message : to_string(where) + ": " + message),
        where_(std::move(where)) {}

  // The place again, empty where the message names none.
  [[nodiscard]] const SourceLocation& where() const { return where_; }

 private:
  SourceLocation where_;
};

// A well-formed question whose answer is no: a deadlock, exceeded memory, infeasible. Exit
// status 1.
class InfeasibleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The surroundings failed: a file that cannot be written, a missing tool. Exit status 4.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace counterflow
