#pragma once

namespace counterflow {

// Lets memory that one step frees serve the next, instead of going back to the system page by page:
// a quarter of the time of large programs. For a process whose steps need about the same.
void keep_freed_memory();

}  // namespace counterflow
