#pragma once

#include "schedules/family.h"

// One function a family; the definition of each stands in the file of its name.
namespace counterflow {

[[nodiscard]] Family gpipe();
[[nodiscard]] Family one_forward_one_backward();
[[nodiscard]] Family eager_1f1b();
[[nodiscard]] Family interleaved_1f1b();
[[nodiscard]] Family looped_bfs();
[[nodiscard]] Family zb_h1();
[[nodiscard]] Family zb_h2();
[[nodiscard]] Family zb_heuristic();
[[nodiscard]] Family interleaved_zb();
[[nodiscard]] Family zbv();
[[nodiscard]] Family v_half();
[[nodiscard]] Family v_min();
[[nodiscard]] Family one_forward_one_backward_v();
[[nodiscard]] Family dualpipe();
[[nodiscard]] Family dualpipev();
[[nodiscard]] Family combined_1f1b();
[[nodiscard]] Family hanayo();
[[nodiscard]] Family chimera();
[[nodiscard]] Family group_interleaved();
[[nodiscard]] Family forward_only();

}  // namespace counterflow
