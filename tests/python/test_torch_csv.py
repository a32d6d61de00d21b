"""Schedule files travel both ways between counterflow and PyTorch."""

import csv
import json

import pytest
from torch_orders import Case, build, grid, orders, rows, stages_of_rank_0

CASES = grid(ranks=(2, 4), microbatches=(4, 8, 12))
# PyTorch writes files for the schedules of several stages a rank.
WRITTEN_BY_TORCH = [case for case in CASES if case.chunks > 1]

# Family, stages a rank, placement: every family with one replica and a backward.
FAMILIES = [
    ("gpipe", 1),
    ("1f1b", 1),
    ("eager-1f1b", 1),
    ("zb-h1", 1),
    ("zb-h2", 1),
    ("interleaved-1f1b", 2),
    ("interleaved-1f1b", 3),
    ("looped-bfs", 2),
    ("interleaved-zb", 2),
    ("combined-1f1b", 2),
    ("group-interleaved", 2),
    ("hanayo", 2),
    ("hanayo", 4),
    ("zbv", 2),
    ("v-half", 2),
    ("v-min", 2),
    ("1f1b-v", 2),
    ("dualpipev", 2),
]


def config_for(counterflow, case, schedule):
    return counterflow.write_config(
        schedule=schedule,
        ranks=case.ranks,
        microbatches=case.microbatches,
        chunks=case.chunks,
        placement=case.placement,
    )


def makespan(counterflow, config):
    return json.loads(counterflow.run("simulate", config, "--json"))["makespan_ns"]


@pytest.mark.parametrize("case", WRITTEN_BY_TORCH, ids=str)
@pytest.mark.parametrize("form", ["compute_only", "compute_comms"])
def test_reads_what_torch_writes(case, form, schedules, counterflow):
    build(schedules, case)._dump_csv(counterflow.folder / "torch.csv", form)
    config = config_for(counterflow, case, "torch.csv")
    verdict = json.loads(counterflow.run("verify", config, "--semantics", "buffered", "--json"))
    assert verdict["ok"] and verdict["diagnostics"] == []
    report = json.loads(counterflow.run("simulate", config, "--semantics", "buffered", "--json"))
    assert (report["ranks"], report["microbatches"]) == (case.ranks, case.microbatches)


@pytest.mark.parametrize("case", WRITTEN_BY_TORCH, ids=str)
def test_order_from_torch_takes_as_long_as_our_own(case, schedules, counterflow):
    build(schedules, case)._dump_csv(counterflow.folder / "torch.csv", "compute_only")
    theirs = makespan(counterflow, config_for(counterflow, case, "torch.csv"))
    assert theirs == makespan(counterflow, config_for(counterflow, case, case.name))


@pytest.mark.parametrize("case", [case for case in CASES if case.chunks == 1], ids=str)
def test_reads_single_stage_orders_of_torch(case, schedules, counterflow):
    with open(counterflow.folder / "torch.csv", "w", newline="") as file:
        csv.writer(file).writerows(orders(build(schedules, case)))
    theirs = makespan(counterflow, config_for(counterflow, case, "torch.csv"))
    assert theirs == makespan(counterflow, config_for(counterflow, case, case.name))


def unfused(action):
    return [action] if action.sub_actions is None else list(action.sub_actions)


@pytest.mark.parametrize("ranks, microbatches", [(2, 4), (4, 8), (4, 11)])
@pytest.mark.parametrize("family, chunks", FAMILIES, ids=lambda value: str(value))
def test_torch_loads_lowers_and_simulates_what_we_write(
    family, chunks, ranks, microbatches, schedules, counterflow
):
    ours, program = counterflow.compile(
        "schedule.csv",
        "program.csv",
        schedule=family,
        ranks=ranks,
        microbatches=microbatches,
        chunks=chunks,
    )
    runtime = schedules._PipelineScheduleRuntime(stages_of_rank_0(ranks, chunks), microbatches)
    dumped = counterflow.folder / "dumped.csv"

    # The order of compute: PyTorch checks it and lowers it with its own pass.
    runtime._load_csv(counterflow.folder / "schedule.csv", "compute_only")
    runtime._dump_csv(dumped, "compute_only")
    assert rows(dumped.read_text()) == rows(ours)

    # The program: PyTorch takes our sends and receives instead.
    runtime._load_csv(counterflow.folder / "program.csv", "compute_comms")
    runtime._dump_csv(dumped, "compute_comms")
    assert rows(dumped.read_text()) == rows(program)

    # Its dry run knows neither fused pairs nor actions of a whole stage.
    order = {
        rank: [
            op
            for action in actions
            for op in unfused(action)
            if op.computation_type.value not in ("UNSHARD", "RESHARD", "REDUCE_GRAD")
        ]
        for rank, actions in runtime.pipeline_order_with_comms.items()
    }
    stages = ranks * chunks
    done = schedules._simulate_comms_compute(
        order, lambda stage: runtime.stage_index_to_group_rank[stage], stages
    )
    for rank, actions in done.items():
        assert [action for action in actions if action is not None] == order[rank]


def test_reads_back_what_it_writes(counterflow):
    case = Case("DualPipeV", 4, 10, 2)
    schedule, _ = counterflow.compile(
        "schedule.csv", "program.csv", schedule="dualpipev", ranks=4, microbatches=10
    )
    for name in ("schedule.csv", "program.csv"):
        config = config_for(counterflow, case, name)
        again = counterflow.folder / "again"
        counterflow.run("compile", config, "--emit", "schedule.csv", "-q", "-o", again)
        assert (again / "schedule.csv").read_text() == schedule
