"""search and frontier: what they find, how they say no, what they write."""

import json
import re
import shlex
import xml.etree.ElementTree as ElementTree

import pytest
from harness import H34, JITTER, UNEVEN


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


def test_every_rank_that_is_short_of_memory_is_named(counterflow, config):
    needs = ("--set", "stages.activation=[1B, 2B, 5B, 3B]")
    result = counterflow("search", config(H34), *needs, "--set", "memory.limit=2B", code=1)
    for words in ("rank 2 needs 5 B", "rank 3 needs 3 B", "raise memory.limit to 5 B there"):
        assert words in result.err
    assert "rank 0" not in result.err and "rank 1" not in result.err
    counterflow("search", config(H34), *needs, "--set", "memory.limit=5B", "-q", code=0)
    many = H34.replace("ranks: 4", "ranks: 12").replace("loop", "v")
    result = counterflow("search", config(many), "--set", "memory.limit_activations=1", code=1)
    assert "rank 7 holds 2 activations" in result.err and "; 4 more; raise" in result.err


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


def test_a_familys_placement_is_named_for_reading_back(counterflow, config, tmp_path):
    for family, kind in (("zb-h1", "loop"), ("zbv", "v"), ("dualpipe", "bidirectional")):
        path = config(H34.replace("schedule: auto, placement: loop", f"schedule: {family}"))
        found = counterflow("search", path, "--iterations", "20", "-o", tmp_path, code=0)
        option = f"pipeline.placement={kind}"
        assert f"--schedule {tmp_path / 'schedule.csv'} --set {option}" in found.err
        file = ("--schedule", tmp_path / "schedule.csv")
        refused = counterflow("simulate", path, *file, code=2)
        assert f"for example --set {option}" in refused.err
        read = counterflow("simulate", path, *file, "--set", option, "--json", code=0).json
        report = json.loads((tmp_path / "report.json").read_text())
        assert read["makespan_ns"] == report["makespan_ns"]
    result = counterflow("search", config(H34), "--iterations", "5", "-o", tmp_path, code=0)
    assert "to read the order back" not in result.err


def read_back(result):
    """The options of the note that says how to read the order back, as a shell splits them."""
    (line,) = [line for line in result.err.splitlines() if "to read the order back: " in line]
    return shlex.split(line.partition("to read the order back: ")[2])


@pytest.mark.parametrize("folder", ["out", "it's $HOME of *"])
def test_what_was_said_beside_the_config_is_named_for_reading_back(
    counterflow, config, tmp_path, folder
):
    path = config(H34.replace("schedule: auto, placement: loop", "schedule: zb-h1"))
    said = ("--ranks", 3, "--execution", "nccl", "--set", "memory.limit=[6B, 7B, 6B]",
            "--set", "links={latency: 1ms}", "--set", "pipeline.schedule=zbv")
    found = counterflow("search", path, *said, "--iterations", 20, "-o", folder, code=0)
    options = read_back(found)
    assert "pipeline.schedule=zbv" not in options
    assert "memory.limit=[6B, 7B, 6B]" in options
    read = counterflow("simulate", path, *options, "--json", code=0).json
    report = json.loads((tmp_path / folder / "report.json").read_text())
    for figure in ("ranks", "makespan_ns", "execution", "per_rank"):
        assert read[figure] == report[figure]


def test_a_named_start_that_is_none_is_said_to_be_none(counterflow, config, tmp_path):
    path = config(UNEVEN)
    counterflow("search", path, "--iterations", "50", "-o", tmp_path, "--json", code=0)
    file = tmp_path / "schedule.csv"
    options = ("--schedule", file, "--iterations", "5", "--json")
    whole = counterflow("search", path, *options, code=0).json["warnings"]
    assert not any("starts from" in warning for warning in whole)
    file.write_text(file.read_text().replace("0W1,", "", 1))
    damaged = counterflow("search", path, *options, code=0).json["warnings"]
    assert any("starts from" in warning and "0W1" in warning for warning in damaged), damaged
    few = counterflow("search", path, "--schedule", "zbv", "--iterations", "5", "--json",
                      "--set", "memory.limit_activations=2", code=0).json["warnings"]
    assert any("starts from" in warning and "[memory]" in warning for warning in few), few


RECOMPUTE = H34.replace("activation: 1B", "activation: 100B, recompute: {activation: 10B}") + (
    "memory: {limit: 150B}\n"
)


def test_a_start_that_fits_with_recompute_is_not_said_to_be_none(counterflow, config):
    path = config(RECOMPUTE.replace("schedule: auto", "schedule: 1f1b"))
    found = []
    for tries in (1, 5, 20):
        report = counterflow("search", path, "--iterations", tries, "--json", code=0).json
        found += [note for note in report["notes"] if "found by seed 1f1b" in note]
        assert not any("starts from" in warning for warning in report["warnings"])
    assert found
    path = config(RECOMPUTE.replace("schedule: auto", "schedule: gpipe").replace("10B", "80B"))
    report = counterflow("search", path, "--iterations", 5, "--json", code=0).json
    assert any("gpipe is not what it starts from" in each for each in report["warnings"])
    assert not any("found by seed gpipe" in note for note in report["notes"])


def schedules_tried(report):
    (note,) = [note for note in report["notes"] if "tried" in note]
    return int(re.search(r"(\d+) schedules? tried", note)[1]), note


@pytest.mark.parametrize("tries", [1, 2, 3, 5, 13, 40, 300])
@pytest.mark.parametrize(
    "text",
    [
        UNEVEN,
        UNEVEN.replace("limit_activations: 5", "limit_activations: 2"),
        H34.replace("ranks: 4, microbatches: 8", "ranks: 8, microbatches: 40"),
        RECOMPUTE,
        RECOMPUTE.replace("150B", "130B").replace("placement: loop", "placement: v"),
    ],
    ids=["uneven", "tight", "many", "recompute", "tight recompute"],
)
def test_no_more_schedules_are_tried_than_asked_for(counterflow, config, text, tries):
    for goal in ("makespan", "span"):
        tried, note = schedules_tried(
            counterflow("search", config(text), "--iterations", tries, "--goal", goal, "--json",
                        code=0).json
        )
        assert tried <= tries, note


def test_several_searches_say_that_each_has_the_budget(counterflow, config):
    path = config(UNEVEN)
    tried, note = schedules_tried(
        counterflow("search", path, "--iterations", 50, "--starts", 3, "--json", code=0).json
    )
    assert 50 < tried <= 150
    assert "by 3 searches, each with all of the budget" in note
    options = ("--goal", "mean", "--trials", 5, "--iterations", 50, "--json")
    tried, note = schedules_tried(
        counterflow("search", config(UNEVEN + JITTER), *options, code=0).json
    )
    searches = int(re.search(r"by (\d+) searches", note)[1])
    assert 50 < tried <= 50 * searches


FORWARD = """\
pipeline: {ranks: 4, microbatches: 8, schedule: forward-only, placement: v}
stages: {forward: [1ms, 3ms, 2ms, 1ms, 2ms, 1ms, 3ms, 1ms], activation: 1B}
links: {latency: 1ms}
"""


@pytest.mark.parametrize(
    "placement", ["v", "wave", "loop", "[0, 0, 1, 1, 2, 2, 3, 3]", "[3, 2, 1, 0, 0, 1, 2, 3]"]
)
def test_forwards_alone_on_any_placement(counterflow, config, tmp_path, placement):
    chunks = "" if placement.startswith("[") else ", chunks: 2"
    path = config(FORWARD.replace("placement: v", f"placement: {placement}{chunks}"))
    report = counterflow("search", path, "--iterations", 300, "-o", "out", "--json", code=0).json
    assert report["makespan_ns"] >= report["lower_bound_ns"]
    # The busiest rank has at least 2 ms a microbatch.
    assert report["makespan_ns"] >= 16_000_000
    read = counterflow("simulate", path, "--schedule", "out/schedule.csv", "--json", code=0).json
    assert read["makespan_ns"] == report["makespan_ns"]
    ops = (tmp_path / "out" / "schedule.csv").read_text().replace("\n", ",").strip(",").split(",")
    assert sorted(ops) == sorted(f"{stage}F{mb}" for stage in range(8) for mb in range(8))


def test_what_phases_that_only_go_forward_are_told_works(counterflow, config):
    phases = FORWARD.replace("microbatches: 8", "phases: [{name: eval, microbatches: 8}]")
    refused = counterflow("search", config(phases), code=2).err
    assert "leave phases out and take schedule: forward-only" in refused
    counterflow("search", config(FORWARD), "--iterations", 20, "-q", code=0)


def test_forwards_alone_in_two_directions(counterflow, config):
    path = config(FORWARD.replace("placement: v", "placement: bidirectional")
                  .replace("[1ms, 3ms, 2ms, 1ms, 2ms, 1ms, 3ms, 1ms]", "1ms"))
    report = counterflow("search", path, "--iterations", 300, "--json", code=0).json
    assert report["makespan_ns"] >= report["lower_bound_ns"] >= 8_000_000


def test_never_worse_than_the_family_the_config_names(counterflow, config):
    path = config(H34.replace("schedule: auto", "schedule: zb-h2"))
    family = counterflow("simulate", path, "--json", code=0).json
    found = counterflow("search", path, "--iterations", "50", "--json", code=0).json
    assert found["makespan_ns"] <= family["makespan_ns"]


def test_a_budget_in_time(counterflow, config):
    report = counterflow("search", config(UNEVEN), "--budget", "50ms", "--json", code=0).json
    assert report["makespan_ns"] >= report["lower_bound_ns"]
    assert any("s, with the seeds" in note for note in report["notes"])


def test_a_budget_of_next_to_nothing_still_finds_an_order(counterflow, config):
    large = H34.replace("ranks: 4, microbatches: 8", "ranks: 16, microbatches: 64")
    result = counterflow("search", config(large), "--budget", "1us", code=0)
    assert "found by seed" in result.out
    # Next to this budget everything takes long.
    assert "beside the search, reading, checking and simulating what it found took" in result.err


def test_how_it_was_found_and_proven_are_notes(counterflow, config):
    path = config(H34)
    report = counterflow("search", path, "--iterations", "50", "--json", code=0).json
    assert any("proven optimal" in note for note in report["notes"])
    assert not any("search:" in warning for warning in report["warnings"])
    assert report["lower_bound_by"] in ("closed", "area", "jackson", "windows", "exact")
    text = counterflow("search", path, "--iterations", "50", code=0).out
    assert f"({report['lower_bound_by']})" in text
    assert "  note: search: found by" in text
    assert "warning: search" not in text


def test_the_bound_is_named_by_what_proves_it(counterflow, config):
    def argument(*more):
        options = ("--iterations", "20000", "--json", *more)
        return counterflow("search", config(UNEVEN), *options, code=0).json["lower_bound_by"]

    assert argument() == "exact"
    assert argument("--set", "memory.limit_activations=60", "--ranks", "3") != "exact"


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


@pytest.mark.parametrize("number", ["5", "0.25", "1e3", "4e12", "1e-9", "5 "])
def test_a_budget_without_a_unit_is_told_what_would_do(counterflow, config, number):
    result = counterflow("search", config(H34), "--budget", number, code=2)
    assert f"--budget {number} has no unit; write --budget {number.strip()}" in result.err
    assert "units:" not in result.err
    for advised in re.findall(r"--budget (\S+)", result.err.partition("; write ")[2]):
        counterflow("search", config(H34), "--budget", advised, "-q", code=0)


def test_a_number_that_no_unit_makes_a_budget(counterflow, config):
    result = counterflow("search", config(H34), "--budget", "9" * 20, code=2)
    assert "write for example --budget 200ms" in result.err
    assert "9 is not above zero" not in result.err


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


def test_search_over_shared_links_is_never_worse_than_a_family_run_over_them(counterflow, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "units: {time: ms}\n"
        "pipeline: {ranks: 2, microbatches: 4, schedule: gpipe}\n"
        "stages: {forward: 1, backward_input: 1, backward_weight: 1}\n"
        "links: {message: 10MB}\n"
        "topology: {ranks_per_node: 1, nic: {bandwidth: 1GB/s}}\n",
        encoding="utf-8",
    )
    found = counterflow("search", path, "--iterations", "300", "--json").json
    # One message takes 10 ms: there and back in the least time, beside what rank 1 computes.
    assert found["lower_bound_ns"] >= 2 * 10_000_000 + 3_000_000
    for family in ["gpipe", "1f1b", "zb-h1", "zb-h2"]:
        run = counterflow("simulate", path, "--schedule", family, "--json").json
        assert found["makespan_ns"] <= run["makespan_ns"], family


def test_a_bound_that_takes_longer_than_the_budget_is_left_out_and_said(counterflow, config):
    path = config("""\
pipeline: {ranks: 8, microbatches: 32, schedule: auto, placement: v}
stages: {forward: 5ms, backward_input: 6ms, backward_weight: 3ms, activation: 10MiB,
         weight_activation: 4MiB}
links: {latency: 0.3ms}
memory: {limit: 70MiB}
""")
    short = counterflow("search", path, "--budget", "20ms", "--json", code=0).json
    note = next(note for note in short["notes"] if "the bound is a quick one" in note)
    advised = re.search(r"--budget (\d+ms)", note).group(1)
    long = counterflow("search", path, "--budget", advised, "--json", code=0).json
    assert not [note for note in long["notes"] if "the bound is a quick one" in note]
    assert long["lower_bound_ns"] >= short["lower_bound_ns"]
