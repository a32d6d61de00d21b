#pragma once

#include "scheduler/bounds/lines.h"
#include "scheduler/problem/problem.h"

namespace counterflow {

// Adds what memory limits imply for ops in order: an F waits for the release without which it could
// not begin, or without which nothing more could. Lines must be uniform. Why it holds is said in
// the implementation. O(ranks * (stages on a rank)^2 * stages).
void add_memory_waits(const Problem& problem, Lines& lines);

}  // namespace counterflow
