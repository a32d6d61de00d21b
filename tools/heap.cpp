#include "tools/heap.h"

#include <malloc.h>

#include <limits>

namespace counterflow {

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kTopPad = 64 << 20;
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, kTopPad);
#endif
}

}  // namespace counterflow
