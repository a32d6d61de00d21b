"""Timelines as columns, for NumPy, pandas and polars."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from counterflow._core import INSTRUCTION_KINDS, OP_KINDS, Timeline

Columns: TypeAlias = "dict[str, npt.NDArray[Any]]"


def columns(timeline: Timeline) -> Columns:
    """One row an instruction, all ranks one after the other, as named columns (copies).

    ``rank``, ``index`` (in issue order), ``stream``, ``kind`` (run, transfer, ...), ``op`` (F, B,
    I, W, SEND_F, ...), ``stage``, ``microbatch``, ``replica``, ``paired_op``, ``paired_stage``,
    ``paired_microbatch`` (of a fused pair), ``begin_ns`` and ``end_ns``. ``pandas.DataFrame`` takes
    it as it is.
    """
    parts = [_columns_of_rank(timeline, rank) for rank in range(timeline.ranks)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _columns_of_rank(timeline: Timeline, rank: int) -> Columns:
    instructions = timeline.program.rank(rank).instructions
    intervals = timeline.intervals(rank)
    op, paired = instructions["op"], instructions["paired"]
    op_names = np.array(OP_KINDS)
    return {
        "rank": np.full(len(instructions), rank),
        "index": np.arange(len(instructions)),
        "stream": instructions["stream"].copy(),
        "kind": np.array(INSTRUCTION_KINDS)[instructions["kind"]],
        "op": op_names[op["kind"]],
        "stage": op["stage"].copy(),
        "microbatch": op["microbatch"].copy(),
        "replica": op["replica"].copy(),
        "paired_op": op_names[paired["kind"]],
        "paired_stage": paired["stage"].copy(),
        "paired_microbatch": paired["microbatch"].copy(),
        "begin_ns": intervals["begin_ns"].copy(),
        "end_ns": intervals["end_ns"].copy(),
    }
