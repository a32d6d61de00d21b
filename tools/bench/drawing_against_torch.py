#!/usr/bin/env python3
"""Drawing about 6 000 ops, ours and PyTorch's schedule visualizer, in one run, as a ratio.

Usage: drawing_against_torch.py COUNTERFLOW_BINARY [--ranks 16 --microbatches 188] [--repeats 3]

Both sides go from the name of a schedule to a picture on disk. PyTorch: get_schedule_ops and
visualize_schedule of torch.distributed.pipelining._schedule_visualizer, to PNG with matplotlib, its
imports not counted. Ours: the whole process `counterflow compile --emit html` (config, order,
verification, lowering, simulation, page), and beside it the time Chromium takes to open that page and
paint it. Each figure is the least of the repeats: the machine's noise only ever adds. Needs torch,
matplotlib and Chromium.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from viewer_page import measure

CONFIG = """\
pipeline: {{ranks: {ranks}, microbatches: {microbatches}, schedule: 1f1b}}
stages: {{forward: 1ms, backward_input: 1ms, backward_weight: 1ms}}
"""


def torch_seconds(ranks: int, microbatches: int, picture: pathlib.Path) -> tuple[int, float]:
    """Ops drawn, and seconds from the schedule's name to the PNG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot  # noqa: F401  counted for neither side
    from torch.distributed.pipelining._schedule_visualizer import (
        action_type_to_color_mapping,
        get_schedule_ops,
        visualize_schedule,
    )

    begin = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        ops = get_schedule_ops("1F1B", ranks, microbatches)
        # Its legend knows no REDUCE_GRAD, which its 1F1B ends with.
        known = action_type_to_color_mapping
        ops = [[op for op in rank if op is None or op.computation_type in known] for rank in ops]
        visualize_schedule(ops, str(picture))
    taken = time.perf_counter() - begin
    return sum(op is not None for rank in ops for op in rank), taken


def torch_apart(args: argparse.Namespace, folder: pathlib.Path) -> tuple[int, float]:
    """The same in a process of its own, so that nothing is left from one repeat to the next."""
    command = [sys.executable, __file__, args.binary, "--torch-into", folder / "torch.png"]
    command += ["--ranks", str(args.ranks), "--microbatches", str(args.microbatches)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    ops, seconds = json.loads(done.stdout)
    return ops, seconds


def our_seconds(args: argparse.Namespace, folder: pathlib.Path) -> tuple[float, float]:
    """Seconds to the page on disk, and of Chromium from there to its first frame."""
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(ranks=args.ranks, microbatches=args.microbatches))
    begin = time.perf_counter()
    command = [args.binary, "compile", config, "-o", folder, "--emit", "html", "-q"]
    subprocess.run(command, check=True)
    made = time.perf_counter() - begin
    _, steps = measure(folder / "timeline.html", folder)
    return made, steps["open"]["wall"] / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--microbatches", type=int, default=188)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--torch-into", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch_into:
        print(json.dumps(torch_seconds(args.ranks, args.microbatches, args.torch_into)))
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        ours, theirs = [], []
        for _ in range(args.repeats):
            theirs.append(torch_apart(args, folder))
            ours.append(our_seconds(args, folder))
    ops = theirs[0][0]
    torch = min(seconds for _, seconds in theirs)
    page = min(made for made, _ in ours)
    shown = min(made + opened for made, opened in ours)
    print(f"1F1B, {args.ranks} ranks, {args.microbatches} microbatches: {ops} ops")
    print(f"PyTorch, name to PNG             {torch:8.3f} s")
    print(f"ours, config to page             {page:8.3f} s   ratio {torch / page:7.0f}")
    print(f"ours, config to page on screen   {shown:8.3f} s   ratio {torch / shown:7.0f}")


if __name__ == "__main__":
    main()
