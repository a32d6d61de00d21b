#!/usr/bin/env python3
"""How near a measured timeline comes to its prediction, on threads and over gloo.

Usage: emulation.py COUNTERFLOW_BINARY [--ranks 4 --microbatches 8] [--op 10ms] [--steps 9]

Runs 1F1B, ZB-H1 and GPipe with ops that sleep for as long as they are predicted to take (at least 5 ms),
and prints for each backend the predicted makespan, the median of the measured ones and its error, and how
many transfers were under way while the same rank computed. Wants a machine that does little else: the
load is printed too.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

CONFIG = """\
pipeline: {{ranks: {ranks}, microbatches: {microbatches}, schedule: {schedule}}}
stages: {{forward: {op}, backward_input: {op}, backward_weight: {op}, activation: 64KiB}}
links: {{latency: 20us, bandwidth: 2GB/s, message: 64KiB}}
execution: nccl
"""


def overlapped(timeline: dict) -> tuple[int, int]:
    """Transfers that were under way while their rank computed, and all of them."""
    met = total = 0
    for rank in timeline["ranks"]:
        kinds: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
        for _, kind, _, begin, end, _ in rank["instructions"]:
            if kind in kinds:
                kinds[kind].append((begin, end))
        total += len(kinds[1])
        met += sum(any(b < end and begin < e for b, e in kinds[0]) for begin, end in kinds[1])
    return met, total


def measure(binary: str, backend: str, text: str, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "config.yaml")
        config.write_text(text, encoding="utf-8")
        out = pathlib.Path(folder, "out")
        result = subprocess.run(
            [binary, "run", config, "--backend", backend, "--steps", str(steps), "--compare",
             "--json", "-o", out],
            check=True, capture_output=True, text=True,
        )
        run = json.loads(result.stdout)
        met, total = overlapped(json.loads((out / "timeline.json").read_text(encoding="utf-8")))
    predicted = run["prediction_error"]["makespan"]["predicted_ns"]
    median = statistics.median(run["makespans_ns"])
    print(f"  {backend:8} predicted {predicted / 1e6:8.2f} ms, median of {steps} "
          f"{median / 1e6:8.2f} ms ({100 * (median / predicted - 1):+.2f} %), "
          f"{met} of {total} transfers beside compute")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--op", default="10ms")
    parser.add_argument("--steps", type=int, default=9)
    options = parser.parse_args()
    for schedule in ("1f1b", "zb-h1", "gpipe"):
        print(f"{schedule}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        text = CONFIG.format(schedule=schedule, ranks=options.ranks,
                             microbatches=options.microbatches, op=options.op)
        for backend in ("threads", "gloo"):
            measure(options.binary, backend, text, options.steps)


if __name__ == "__main__":
    main()
