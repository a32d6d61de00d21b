"""Passes of one's own: one over a schedule, one over its program; both verified and simulated.

Usage: my_pass.py [CONFIG]
"""

import sys
from pathlib import Path

import counterflow as cf


def weights_last(schedule: cf.Schedule) -> cf.Schedule:
    """Schedule -> Schedule: every weight gradient at the end of its rank, as late as can be."""
    rows = []
    for rank in range(schedule.ranks):
        slots = schedule.slots(rank)
        weights = [slot for slot in slots if slot.first.kind == "W"]
        rows.append([slot for slot in slots if slot.first.kind != "W"] + weights)
    return cf.Schedule(f"{schedule.name}, weights last", rows)


def without_streams(program: cf.Program) -> cf.Program:
    """Program -> Program: transfers on the compute stream, as a runtime without streams does it."""
    for rank in range(program.ranks):
        part = program.rank(rank)
        instructions = part.instructions.copy()
        instructions["stream"] = 0
        program = program.with_rank(rank, instructions=instructions, streams=part.streams[:1])
    return program


def main() -> None:
    default = Path(__file__).parents[1] / "a100_zero_bubble_1.5b.yaml"
    config = sys.argv[1] if len(sys.argv) > 1 else default
    plan = cf.plan(config, schedule="zb-h1", execution="nccl")
    late = cf.plan(config, schedule=weights_last(plan.schedule), execution="nccl")
    blocking = plan.run_program(without_streams(plan.compile()))
    runs = {"zb-h1": plan.run(), "weights last": late.run(), "without streams": blocking}
    print(cf.compare(runs).table())


if __name__ == "__main__":
    main()
