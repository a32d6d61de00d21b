"""The families that PyTorch has too are its orders, op for op."""

import pytest
from torch_orders import build, compute_rows, grid, rows


@pytest.mark.parametrize(
    "case", grid(ranks=(1, 2, 3, 4, 8), microbatches=(1, 2, 3, 4, 5, 8, 12, 16, 24)), ids=str
)
def test_order_is_that_of_torch(case, schedules, counterflow):
    (text,) = counterflow.compile(
        "schedule.csv",
        schedule=case.name,
        ranks=case.ranks,
        microbatches=case.microbatches,
        chunks=case.chunks,
    )
    assert rows(text) == compute_rows(build(schedules, case))
