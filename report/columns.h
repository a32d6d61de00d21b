#pragma once

#include <string>

#include "report/drawing.h"

namespace counterflow {

// The lanes of a drawing as columns of small numbers, which compress well and unpack fast: what the
// viewer's columns.js reads. Every number is a LEB128 varint; where it may be negative, in zigzag
// form (2n, or -2n-1). For each lane, n being its boxes:
//
//   n, then the op templates: how many, and of each its kind, replica and stage
//   n streams
//   n times 4 * number of ops + kind of instruction
//   the template of every op, box by box
//   its microbatch, as the change since the last op of its template
//   n begins, as the change since the last end on the stream; n durations; n sizes; both as the
//     change since the box before that has the same first template, or also has no op
//   memory samples: how many; instants, as changes; bytes held, as changes
//   waits: how many; instructions, as changes; ranks; what is waited for, as the change since the
//     last wait for that rank
//
// O(boxes).
[[nodiscard]] std::string encode_columns(const Drawing& drawing);

}  // namespace counterflow
