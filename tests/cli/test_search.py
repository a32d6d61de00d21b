"""search and frontier: what they find, how they say no, what they write."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

H34 = """\
pipeline: {ranks: 4, microbatches: 8, schedule: auto, placement: loop}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms, activation: 1B}
"""
UNEVEN = """\
pipeline: {ranks: 3, microbatches: 6, schedule: auto, placement: v}
stages:
  forward: [3ms, 5ms, 4ms, 6ms, 2ms, 7ms]
  backward_input: [4ms, 5ms, 6ms, 3ms, 4ms, 6ms]
  backward_weight: [3ms, 2ms, 4ms, 5ms, 3ms, 6ms]
  activation: 1B
links: {latency: 1ms}
memory: {limit_activations: 5}
"""


def test_per_rank_limits_hold_and_more_memory_is_never_slower(counterflow, config):
    path = config(H34)
    small, large = (
        counterflow("search", path, "--set", f"memory.limit=[{cap}B, {cap}B, {cap}B, {cap}B]",
                    "--json", code=0).json
        for cap in (4, 8)
    )
    assert max(rank["peak_activations"] for rank in small["per_rank"]) <= 4
    assert max(rank["peak_activations"] for rank in large["per_rank"]) <= 8
    assert large["makespan_ns"] <= small["makespan_ns"]
    assert small["makespan_ns"] == small["lower_bound_ns"] == 27_000_000
    assert small["gap"] == 0


def test_memory_that_nothing_fits_names_rank_and_need(counterflow, config):
    result = counterflow("search", config(H34), "--set", "memory.limit=[4B, 4B, 0B, 4B]", code=1)
    assert "rank 2 needs 1 B" in result.err
    assert "raise memory.limit to 1 B" in result.err
    assert result.out == ""


def test_the_same_budget_gives_the_same_files(counterflow, config, tmp_path):
    path = config(UNEVEN)
    for name in ("one", "two"):
        counterflow("search", path, "--iterations", "500", "-q", "-o", tmp_path / name, code=0)
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert {"schedule.csv", "program.csv", "report.json", "timeline.svg"} <= set(files)
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    report = json.loads((tmp_path / "one" / "report.json").read_text())
    assert report["schedule"] == "search"
    assert report["makespan_ns"] >= report["lower_bound_ns"]


def test_a_found_schedule_is_read_back_and_warms_the_next_search(counterflow, config, tmp_path):
    path = config(UNEVEN)
    found = counterflow("search", path, "--iterations", "500", "-o", tmp_path, "--json", code=0).json
    file = tmp_path / "schedule.csv"
    read = counterflow("simulate", path, "--schedule", file, "--json", code=0).json
    assert read["makespan_ns"] == found["makespan_ns"]
    again = counterflow(
        "search", path, "--schedule", file, "--iterations", "1", "--json", code=0
    ).json
    assert again["makespan_ns"] <= found["makespan_ns"]


def test_never_worse_than_the_family_the_config_names(counterflow, config):
    path = config(H34.replace("schedule: auto", "schedule: zb-h2"))
    family = counterflow("simulate", path, "--json", code=0).json
    found = counterflow("search", path, "--iterations", "50", "--json", code=0).json
    assert found["makespan_ns"] <= family["makespan_ns"]


def test_a_budget_in_time(counterflow, config):
    report = counterflow("search", config(UNEVEN), "--budget", "50ms", "--json", code=0).json
    assert report["makespan_ns"] >= report["lower_bound_ns"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budget", "soon"], ["--budget", "soon"]),
        (["--budget", "0ms"], ["--budget"]),
        (["--iterations", "0"], ["--iterations", "0"]),
        (["--iterations", "5", "--budget", "5ms"], ["--iterations", "--budget"]),
    ],
)
def test_wrong_budgets(counterflow, config, arguments, words):
    result = counterflow("search", config(H34), *arguments, code=2)
    for word in words:
        assert word in result.err


def test_auto_without_a_placement(counterflow, config):
    text = H34.replace(", placement: loop", "")
    assert "pipeline.placement" in counterflow("search", config(text), code=2).err


def test_frontier_never_grows(counterflow, config, tmp_path):
    path = config(UNEVEN)
    arguments = ("frontier", path, "--points", "5", "--iterations", "300", "-o", tmp_path, "--json")
    result = counterflow(*arguments, code=0).json
    assert result["resource"] == "bytes"
    limits = [point["limit"] for point in result["points"]]
    makespans = [point["makespan_ns"] for point in result["points"]]
    assert limits == sorted(set(limits))
    assert limits[0] == 2  # both chunks of one microbatch
    assert makespans == sorted(makespans, reverse=True)
    assert makespans[0] > makespans[-1]
    for point in result["points"]:
        assert point["peak"] <= point["limit"]
        assert point["lower_bound_ns"] <= point["makespan_ns"]
    assert json.loads((tmp_path / "frontier.json").read_text()) == result
    ElementTree.parse(tmp_path / "frontier.svg")
    table = counterflow("frontier", path, "--points", "2", "--iterations", "50", code=0).out
    assert len(table.splitlines()) == 3


def test_frontier_refuses_no_points(counterflow, config):
    assert "--points" in counterflow("frontier", config(H34), "--points", "0", code=2).err
