#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace counterflow::reference {

// How the members of an expert-parallel group exchange rows of tokens. Everyone calls in the same
// order, each from a thread or process of its own, and waits there for the others.
template <typename T>
class EpBackend {
 public:
  using Parts = std::vector<std::vector<T>>;  // one a member, of any length

  virtual ~EpBackend() = default;
  [[nodiscard]] virtual std::size_t members() const = 0;
  [[nodiscard]] virtual std::size_t member() const = 0;  // the caller
  // All-to-all-v: part k goes to member k; returned is what each sent to the caller.
  [[nodiscard]] virtual Parts exchange(Parts parts) = 0;
};

// A group of one: everything stays where it is.
template <typename T>
class NoExpertParallelism final : public EpBackend<T> {
 public:
  using typename EpBackend<T>::Parts;
  [[nodiscard]] std::size_t members() const override { return 1; }
  [[nodiscard]] std::size_t member() const override { return 0; }
  [[nodiscard]] Parts exchange(Parts parts) override { return parts; }
};

}  // namespace counterflow::reference
