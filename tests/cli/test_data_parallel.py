"""optimizer.data_parallel: pipelines side by side, one program, gradients added up over all."""

import csv
import json

import pytest

CONFIG = """\
pipeline: {ranks: 4, microbatches: 8, schedule: %s}
stages: {forward: 10ms, backward_input: 10ms, backward_weight: 10ms, activation: 1GiB}
links: {latency: 1ms}
memory: {limit: 12GiB}
optimizer: {data_parallel: %s, gradients: 4MiB, bucket: 1MiB, step: 2ms, global_norm: true}
"""


def rows(path):
    return list(csv.reader(path.read_text().splitlines()))


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "dualpipe"])
def test_copies_keep_the_timeline_of_one(counterflow, config, tmp_path, schedule):
    one = counterflow("simulate", config(CONFIG % (schedule, 1)), "--json", code=0).json
    path = config(CONFIG % (schedule, 3))
    counterflow("compile", path, "-o", "out", code=0)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["ranks"] == 12
    assert report["microbatches"] == 24
    for figure in ("makespan_ns", "bubble_fraction", "lower_bound_ns", "gap", "span_ns"):
        assert report[figure] == pytest.approx(one[figure]), figure
    assert report["per_rank"] == one["per_rank"] * 3
    # Rings of three have hops that one pipeline has not.
    assert report["step_ns"] > one["step_ns"] > report["makespan_ns"]
    # An order is of one pipeline, a program of all.
    assert len(rows(tmp_path / "out" / "schedule.csv")) == 4
    assert len(rows(tmp_path / "out" / "program.csv")) == 12


def test_the_written_order_reads_back(counterflow, config, tmp_path):
    path = config(CONFIG % ("1f1b", 2))
    counterflow("compile", path, "-o", "out", "--emit", "schedule.csv,report.json", code=0)
    again = counterflow(
        "simulate", path, "--schedule", "out/schedule.csv", "--set", "pipeline.placement=loop",
        "--json", code=0,
    ).json
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert again["ranks"] == report["ranks"] == 8
    assert again["step_ns"] == report["step_ns"]


def test_ops_of_later_pipelines_name_theirs(counterflow, config, tmp_path):
    counterflow("compile", config(CONFIG % ("1f1b", 3)), "-o", "out", "--emit", "csv", code=0)
    program = rows(tmp_path / "out" / "program.csv")
    assert program[0][0] == "0F0"
    assert program[4][0] == "~0F8"
    assert program[8][0] == "2~0F16"


@pytest.mark.parametrize("backend", ["virtual", "threads"])
def test_runs(counterflow, config, backend):
    text = (CONFIG % ("zb-h1", 2)).replace("0ms", "0us")
    done = counterflow(
        "run", config(text), "--backend", backend, "--steps", 2, "--json", code=0
    ).json
    assert len(done["report"]["per_rank"]) == 8


def test_a_search_orders_one_pipeline(counterflow, config, tmp_path):
    done = counterflow(
        "search", config(CONFIG % ("zb-h1", 2)), "--set", "pipeline.placement=loop",
        "--iterations", 50, "-o", "out", "--json", code=0,
    ).json
    one = counterflow(
        "search", config(CONFIG % ("zb-h1", 1)), "--set", "pipeline.placement=loop",
        "--iterations", 50, "--json", code=0,
    ).json
    assert done["ranks"] == 8
    assert done["makespan_ns"] == one["makespan_ns"]
    assert len(rows(tmp_path / "out" / "schedule.csv")) == 4


def test_what_names_ranks_means_all(counterflow, config):
    text = CONFIG % ("1f1b", 2)
    shared = text.replace("links: {latency: 1ms}", "links: {latency: 1ms, message: 1MiB}") + (
        "topology: {ranks_per_node: 4, node: {bandwidth: 100GB/s}, nic: {bandwidth: 1GB/s}}\n"
    )
    report = counterflow("simulate", config(shared), "--json", code=0).json
    # The copies of a rank are in two nodes, so that reductions pass NICs and transfers do not.
    fast = shared.replace("nic: {bandwidth: 1GB/s}", "nic: {bandwidth: 100GB/s}")
    other = counterflow("simulate", config(fast), "--json", code=0).json
    assert other["makespan_ns"] == report["makespan_ns"]
    assert other["step_ns"] < report["step_ns"]
    jitter = text + "jitter: {ranks: [{rank: %d, slow: 2}]}\n"
    trials = counterflow(
        "simulate", config(jitter % 7), "--trials", 1, "--json", code=0
    )
    assert trials.json["ranks"] == 8
    assert "from 0 to 7" in counterflow("simulate", config(jitter % 8), code=2).err


def test_refuses_more_than_there_can_be(counterflow, config):
    text = (CONFIG % ("1f1b", 128)).replace("microbatches: 8", "microbatches: 8000")
    err = counterflow("simulate", config(text), code=2).err
    assert "optimizer.data_parallel" in err
    assert "128 pipelines of 8000 microbatches have 1024000; at most 1000000" in err


def test_a_program_with_buckets_reads_back(counterflow, config, tmp_path):
    path = config(CONFIG % ("1f1b", 2))
    counterflow("compile", path, "-o", "out", "--emit", "program.json,program.csv", code=0)
    done = counterflow(
        "run", "--program", "out/program.json", "--backend", "virtual", "--json", code=0
    ).json
    config_done = counterflow("run", path, "--backend", "virtual", "--json", code=0).json
    assert done["program_hash"] == config_done["program_hash"]
    err = counterflow(
        "run", "--program", "out/program.json", "--ranks", 2, "--backend", "virtual", code=2
    ).err
    assert "--ranks changes a config" in err
    err = counterflow(
        "simulate", path, "--schedule", "out/program.csv", "--set", "pipeline.placement=loop",
        code=2,
    ).err
    assert "8 rows of 2 pipelines side by side" in err


@pytest.mark.parametrize("optimizer", ["global_norm: true", "tied: [{stages: [0, 3], size: 1MiB}]"])
def test_a_file_may_say_what_follows_the_last_gradient(counterflow, config, tmp_path, optimizer):
    text = (CONFIG % ("1f1b", 1)).replace("global_norm: true", optimizer)
    path = config(text)
    first = counterflow("compile", path, "-o", "out", "--emit", "csv,report.json", code=0)
    assert first.code == 0
    again = counterflow(
        "simulate", path, "--schedule", "out/program.csv", "--set", "pipeline.placement=loop",
        "--json", code=0,
    ).json
    assert any("optimizer section is not used" in each for each in again["warnings"])
    # What follows the last gradient costs nothing there: nobody is told of a step with it.
    assert "step_ns" not in again
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["step_ns"] > report["makespan_ns"]
    file = ("--schedule", "out/program.csv", "--set", "pipeline.placement=loop")
    assert "whole step" not in counterflow("simulate", path, *file, code=0).out


def test_an_optimizer_with_nothing_to_do_is_said(counterflow, config):
    text = (CONFIG % ("forward-only", 1))
    report = counterflow("simulate", config(text), "--json", code=0).json
    assert any("no stage is trained" in each for each in report["warnings"])
    assert "step_ns" not in report


def test_steps_that_a_file_without_transfers_names_are_said_not_to_be_used(counterflow, config):
    """An order of computes has no place for them."""
    text = "pipeline: {ranks: 2, microbatches: 1, placement: loop}\n" + "stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}\n"
    path = config(text)
    (path.parent / "order.csv").write_text("0F0,0B0,0STEP\n1F0,1B0,1REDUCE_GRAD,1STEP\n")
    report = counterflow("simulate", path, "--schedule", "order.csv", "--json", code=0).json
    said = [each for each in report["warnings"] if "not used" in each]
    assert len(said) == 1
    assert said[0].startswith("REDUCE_GRAD, STEP in the file not used")
    assert "optimizer section adds" in said[0]
