#!/usr/bin/env bash
# From a bare Debian 12 or 13 to a compiled DualPipe schedule: installs what a build needs, builds
# the command line, compiles an example and shows its figures.
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh build
cmake --preset dev -DBUILD_TESTING=OFF -DCOUNTERFLOW_BENCHMARKS=OFF >/dev/null
cmake --build --preset dev --target counterflow

run() {
  printf '\n$ counterflow %s\n' "$*"
  build/dev/counterflow "$@"
}

run compile examples/dualpipe_p8_m20.yaml -o out/dualpipe
ls out/dualpipe
# The first row of Table 5 of the zero-bubble paper (arXiv 2401.10241). Its figures of the span
# bubble: 0.2431, 0.1585, 0.1083.
run compare examples/a100_zero_bubble_1.5b.yaml --schedules 1f1b,zb-h1,zb-h2
