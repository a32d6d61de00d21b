"""PyTorch's schedules without a process group: what both test files compare with."""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

# The benchmark builds PyTorch's schedules from the same stand-ins for stages.
sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "bench"))
from torch_lowering import stages_of_rank_0  # noqa: E402


class Case(NamedTuple):
    name: str  # of PyTorch's class, as get_schedule_class() takes it
    ranks: int
    microbatches: int
    chunks: int

    def __str__(self):
        return f"{self.name}_p{self.ranks}_m{self.microbatches}_v{self.chunks}"

    @property
    def placement(self):
        return "v" if self.name in ("ZBVZeroBubble", "DualPipeV") else "loop"


def accepted(case):
    """Does PyTorch take this shape? Its rules, as its constructors state them."""
    if case.name == "1F1B":
        return case.microbatches >= case.ranks
    if case.name in ("Interleaved1F1B", "InterleavedZeroBubble"):
        return case.microbatches % max(1, case.microbatches // case.ranks) == 0
    if case.name == "DualPipeV":
        return case.microbatches >= 2 * case.ranks
    return True


def grid(ranks, microbatches):
    chunks = {
        "GPipe": (1,),
        "1F1B": (1,),
        "LoopedBFS": (2, 3),
        "Interleaved1F1B": (2, 3, 4),
        "InterleavedZeroBubble": (2, 3, 4),
        "ZBVZeroBubble": (2,),
        "DualPipeV": (2,),
    }
    cases = [
        Case(name, p, m, v)
        for name in chunks
        for p in ranks
        for m in microbatches
        for v in chunks[name]
    ]
    return [case for case in cases if accepted(case)]


def build(schedules, case):
    """PyTorch's schedule, with the order of every rank."""
    schedule_class = schedules.get_schedule_class(case.name)
    stages = stages_of_rank_0(case.ranks, case.chunks)
    if issubclass(schedule_class, schedules.PipelineScheduleSingle):
        return schedule_class(stages[0], case.microbatches)
    return schedule_class(stages, case.microbatches)


def orders(schedule):
    """The order of every rank, as actions.

    The 1F1B of torch 2.13 numbers the forwards of its last rank from 1 here, not from 0 as it runs
    them and as every other rank has them; that is put right.
    """
    orders = [schedule.pipeline_order[rank] for rank in sorted(schedule.pipeline_order)]
    if type(schedule).__name__ == "Schedule1F1B":
        orders[-1] = forwards_from_0(orders[-1])
    return orders


def forwards_from_0(order):
    def is_forward(action):
        return action is not None and action.computation_type.value == "F"

    first = min(action.microbatch_index for action in order if is_forward(action))
    return [
        action._replace(microbatch_index=action.microbatch_index - first)
        if is_forward(action)
        else action
        for action in order
    ]


def compute_rows(schedule):
    """The compute of every rank, as text: some of PyTorch's schedules hold REDUCE_GRAD too."""
    return [
        [str(action) for action in order if action is not None and action.is_compute_op]
        for order in orders(schedule)
    ]


def rows(text):
    return list(csv.reader(text.splitlines()))
