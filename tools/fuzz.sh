#!/usr/bin/env bash
# Looks for inputs the readers do not survive: libFuzzer with the address and undefined-behaviour
# sanitizers. What it finds is kept in tests/fuzz/regressions, which every test run replays.
# Usage: tools/fuzz.sh [SECONDS-PER-TARGET [TARGET...]]     (10 seconds; all targets)
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-10}
shift $(($# > 0 ? 1 : 0))
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(config schedule_file program_json timeline_json flight_dump)

cmake --preset asan >/dev/null
cmake --build --preset asan --target fuzzers

# Real files are seeds too.
declare -A more_seeds=([config]=examples [schedule_file]=tests/data/public)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=0
for target in "${targets[@]}"; do
  mkdir -p "$work/$target/corpus" "$work/$target/found"
  seeds=("tests/fuzz/corpus/$target" "tests/fuzz/regressions/$target")
  [[ -z ${more_seeds[$target]:-} ]] || seeds+=("${more_seeds[$target]}")
  log=$work/$target/log
  # A second and 2 GiB an input would be plenty; on a busy machine a second is not what it was.
  if "build/asan/tests/fuzz/fuzz_$target" "$work/$target/corpus" "${seeds[@]}" \
    -dict="tests/fuzz/$target.dict" -artifact_prefix="$work/$target/found/" -max_len=16384 \
    -timeout=10 -rss_limit_mb=2048 -max_total_time="$seconds" -print_final_stats=1 \
    >"$log" 2>&1; then
    printf 'fuzz: %-14s %s inputs, %s a second, nothing found\n' "$target" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
      "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")"
  else
    found=1
    tail -n 60 "$log" >&2
    for input in "$work/$target/found/"*; do
      [[ -e $input ]] || continue
      cp "$input" "tests/fuzz/regressions/$target/"
      printf 'fuzz: %s fails on tests/fuzz/regressions/%s/%s\n' "$target" "$target" \
        "${input##*/}" >&2
    done
  fi
done
exit "$found"
