#pragma once

#include <cstddef>
#include <cstdint>

namespace counterflow::exec {

// Fetches what stands so many places behind an element, for soon it will be used. Ranks take turns,
// so no hardware sees that each of them goes on in order. There need not be anything there.
template <typename T>
inline void prefetch(const T* from, std::size_t ahead) {
  __builtin_prefetch(
      reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(from) + ahead * sizeof(T)));
}

}  // namespace counterflow::exec
