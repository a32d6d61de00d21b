#!/usr/bin/env python3
"""Counterflow and PyTorch on the same schedule, in one run, as ratios.

Usage: against_torch.py BENCH_BINARY [--ranks 64 --microbatches 256 --chunks 2] [--repeats 3]

Interleaved zero bubble. PyTorch generates its order, lowers it (sends, receives, unshard, reduce) and
walks through it in its dry run; we generate, verify, lower, verify again and simulate. Each figure is
the least of the repeats: the machine's noise only ever adds.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def torch_times(args: argparse.Namespace) -> dict[str, float]:
    """Seconds of each of PyTorch's steps."""
    command = [sys.executable, str(HERE / "torch_lowering.py")]
    for name in ("ranks", "microbatches", "chunks"):
        command += [f"--{name}", str(getattr(args, name))]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(args.repeats)
    ]
    return {key: min(run[key] for run in runs) for key in runs[0]}


def our_seconds(args: argparse.Namespace) -> float:
    """Seconds of generate + verify + lower + verify + simulate."""
    command = [
        args.bench,
        f"--benchmark_filter=^BM_Compile/{args.ranks}/{args.microbatches}$",
        f"--benchmark_repetitions={args.repeats}",
        "--benchmark_format=json",
    ]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    runs = [b for b in json.loads(output)["benchmarks"] if b["run_type"] == "iteration"]
    if not runs:
        sys.exit(f"no benchmark for {args.ranks} ranks and {args.microbatches} microbatches")
    return min(run["real_time"] for run in runs) * 1e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bench", help="path of counterflow_bench")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--microbatches", type=int, default=256)
    parser.add_argument("--chunks", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    torch = torch_times(args)
    ours = our_seconds(args)
    lowering = torch["generate_s"] + torch["lower_s"]
    everything = lowering + torch["simulate_s"]
    print(f"interleaved zero bubble, {args.ranks} ranks, {args.microbatches} microbatches, "
          f"{args.chunks} chunks, {torch['actions']:.0f} actions")
    print(f"  PyTorch generate + lower             {lowering:8.3f} s")
    print(f"  PyTorch generate + lower + dry run   {everything:8.3f} s")
    print(f"  ours, generate to simulate           {ours:8.3f} s")
    print(f"  ratio to generate + lower            {lowering / ours:8.1f}")
    print(f"  ratio to all                         {everything / ours:8.1f}")


if __name__ == "__main__":
    main()
