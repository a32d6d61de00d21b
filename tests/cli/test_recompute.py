"""Recompute and offload: always, chosen by a search, along the frontier; stages kept together."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from harness import EXAMPLES

TIGHT = """\
pipeline: {ranks: 4, microbatches: 8, schedule: auto, placement: loop}
stages:
  forward: 2ms
  backward_input: 2ms
  backward_weight: 2ms
  activation: 100B
  recompute: {activation: 10B}
  offload: {activation: 20B, time: 1ms}
memory: {limit: 150B}
"""


def test_the_example_fits_only_with_recompute(counterflow):
    path = EXAMPLES / "recompute_tight_memory.yaml"
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["recompute"] == [0]
    assert "offload" not in report
    assert report["per_rank"][0]["peak_memory_bytes"] <= 3.5 * 2**30
    refused = counterflow("simulate", path, "--set",
                          "stages.recompute={activation: 64MiB, always: [3]}", code=1)
    assert "rank 0" in refused.err


def test_a_search_chooses_and_its_files_are_read_back(counterflow, config, tmp_path):
    path = config(TIGHT)
    found = counterflow("search", path, "--iterations", "400", "-o", tmp_path, "--json", code=0).json
    chosen = found.get("recompute", []) + found.get("offload", [])
    assert chosen
    assert found["makespan_ns"] >= found["lower_bound_ns"]
    assert all(rank["peak_memory_bytes"] <= 150 for rank in found["per_rank"])
    rows = (tmp_path / "schedule.csv").read_text()
    assert "RECOMPUTE" in rows or "RELOAD" in rows
    read = counterflow("simulate", path, "--schedule", tmp_path / "schedule.csv", "--json", code=0)
    assert read.json["makespan_ns"] == found["makespan_ns"]
    assert read.json.get("recompute", []) == found.get("recompute", [])
    verdict = counterflow("verify", path, "--schedule", tmp_path / "program.csv", "--json", code=0)
    assert verdict.json["ok"]
    again = counterflow("search", path, "--iterations", "20", "--schedule",
                        tmp_path / "schedule.csv", "--json", code=0).json
    assert again["makespan_ns"] <= found["makespan_ns"]


def test_a_search_chooses_nothing_where_memory_is_wide(counterflow, config):
    report = counterflow("search", config(TIGHT), "--set", "memory.limit=10000B", "--json", code=0)
    assert "recompute" not in report.json and "offload" not in report.json
    assert report.json["gap"] == 0


def test_the_same_budget_gives_the_same_choice(counterflow, config):
    path = config(TIGHT)
    one, other = (
        counterflow("search", path, "--iterations", "300", "--json", code=0).out for _ in range(2)
    )
    assert one == other


def test_where_nothing_fits_the_way_out_is_named(counterflow, config):
    lines = TIGHT.splitlines(keepends=True)
    kept = "".join(line for line in lines if "recompute" not in line and "offload" not in line)
    result = counterflow("search", config(kept), "--set", "memory.limit=90B", code=1)
    assert "let its stages keep less (stages.recompute or stages.offload)" in result.err
    result = counterflow("search", config(TIGHT), "--set", "memory.limit=90B", code=1)
    assert "with every stage keeping the least it can" in result.err


def test_frontier_with_and_without(counterflow, config, tmp_path):
    path = config(TIGHT.replace("loop", "v"))  # two stages a rank: less than both may be held
    result = counterflow("frontier", path, "--points", "4", "--iterations", "300", "-o", tmp_path,
                         "--json", code=0).json
    points = result["points"]
    assert points[0]["recompute"] or points[0]["offload"]
    assert points[0]["all_kept_ns"] is None
    assert points[-1]["recompute"] == points[-1]["offload"] == []
    makespans = [point["makespan_ns"] for point in points]
    assert makespans == sorted(makespans, reverse=True)
    for point in points:
        assert point["peak"] <= point["limit"]
        assert point["lower_bound_ns"] <= point["makespan_ns"]
        assert point["all_kept_ns"] is None or point["makespan_ns"] <= point["all_kept_ns"]
    assert points[-1]["all_kept_ns"] == points[-1]["makespan_ns"]
    assert json.loads((tmp_path / "frontier.json").read_text()) == result
    svg = ElementTree.parse(tmp_path / "frontier.svg")
    assert sum(node.tag.endswith("path") for node in svg.iter()) == 4
    table = counterflow("frontier", path, "--points", "2", "--iterations", "50", code=0).out
    assert "recompute" in table.splitlines()[0]


@pytest.mark.parametrize("goal", ["mean", "p95"])
def test_goals_under_jitter_choose_too(counterflow, config, goal):
    path = config(TIGHT + "jitter: {compute: 0.1}\n")
    arguments = ("--goal", goal, "--trials", "20", "--iterations", "200", "--json")
    found = counterflow("search", path, *arguments, code=0).json
    assert found.get("recompute", []) + found.get("offload", [])
    assert found["robustness"]["gain_ns"] >= 0
    assert all(rank["peak_memory_bytes"] <= 150 for rank in found["per_rank"])
    kept = "".join(line for line in TIGHT.splitlines(keepends=True)
                   if "recompute" not in line and "offload" not in line)
    without = counterflow("search", config(kept + "jitter: {compute: 0.1}\n"), *arguments,
                          code=0).json
    figure = f"{goal}_ns"
    assert found["robustness"]["chosen"][figure] < without["robustness"]["chosen"][figure]


def test_a_family_that_could_hold_less_says_so(counterflow, config):
    path = config(TIGHT)
    wide = ("--set", "pipeline.schedule=1f1b", "--set", "memory.limit=1000B")
    result = counterflow("simulate", path, *wide, code=0)
    assert "stages.recompute and stages.offload are not used" in result.err + result.out
    always = ("--set", "stages.offload={activation: 20B, time: 1ms, always: all}")
    result = counterflow("simulate", path, *wide, *always, code=0)
    assert "not used" not in result.err + result.out


@pytest.mark.parametrize("command", ["simulate", "search"])
def test_stages_that_belong_together_but_are_not(counterflow, config, command):
    result = counterflow(command, config(TIGHT), "--set", "pipeline.keep_together=[[0, 3]]", code=2)
    assert "stages 0 and 3 do not share a rank: they are on ranks 0 and 3" in result.err


LAYERS = """\
pipeline: {ranks: 3, microbatches: 6, schedule: 1f1b, keep_together: [[8, 9]]}
layers:
  - {kind: embedding, forward: 1ms, backward_input: 0, backward_weight: 1ms}
  - {kind: decoder, repeat: 7, forward: 2ms, backward_input: 2ms, backward_weight: 2ms}
  - {kind: mtp, forward: 3ms, backward_input: 3ms, backward_weight: 3ms}
  - {kind: head, forward: 8ms, backward_input: 8ms, backward_weight: 8ms}
"""


def test_partition_keeps_layers_together(counterflow, config):
    path = config(LAYERS)
    apart = counterflow("partition", path, "--set", "pipeline.keep_together=[[0, 1]]", "--json",
                        code=0).json
    found = counterflow("partition", path, "--json", code=0).json
    assert apart["layout"].endswith("|L")  # what is fastest puts the head alone
    assert found["layout"].endswith("mL")
    counterflow("simulate", path, code=0)
    refused = counterflow("simulate", path, "--set", "layout=\"Et*3|t*4m|L\"", code=2)
    assert "layers 8 and 9 do not share a rank: they are on ranks 1 and 2" in refused.err
    assert "or leave layout out and have one looked for" in refused.err


def test_partition_says_where_layers_cannot_be_together(counterflow, config):
    text = LAYERS.replace("[[8, 9]]", "[[0, 9]]")
    result = counterflow("partition", config(text), code=2)
    assert "layers 0 and 9 do not share a rank" in result.err
    assert "no cut was found that puts them together on this placement; give another" in result.err
    assert "`counterflow partition`" not in result.err
    # On a v the first and the last stage are on one rank.
    found = counterflow("partition", config(text.replace("1f1b", "auto")), "--json", code=0).json
    assert found["placement"] == "v"


FEW_CHOICES = [
    # ranks on a list, two microbatches: offloading stage 0 alone is best
    ("""\
links: {latency: 3}
memory: {limit: [49B, 35B]}
pipeline: {microbatches: 2, placement: [1, 0, 1, 1], ranks: 2, schedule: auto}
stages:
  activation: [8B, 10B, 14B, 14B]
  backward_input: [12, 14, 12, 7]
  backward_weight: [8, 6, 14, 18]
  forward: [1, 15, 14, 19]
  offload: {activation: [1B, 2B, 3B, 6B], time: [0, 10, 6, 6]}
units: {time: ns}
""", 230),
    ("""\
links: {latency: 7}
memory: {limit: [19B, 29B]}
pipeline: {chunks: 2, microbatches: 2, placement: v, ranks: 2, schedule: auto}
stages:
  activation: [14B, 6B, 12B, 6B]
  backward_input: [2, 19, 14, 5]
  backward_weight: [1, 9, 2, 3]
  forward: [12, 12, 13, 14]
  offload: {activation: [2B, 3B, 3B, 0B], time: [8, 1, 10, 10]}
units: {time: ns}
""", 183),
]


@pytest.mark.parametrize("text, best", FEW_CHOICES)
@pytest.mark.parametrize("iterations", [200_000, 400_000])
def test_few_choices_are_all_tried(counterflow, config, text, best, iterations):
    result = counterflow("search", config(text), "--iterations", iterations, "--json", code=0)
    assert result.json["makespan_ns"] == best
    assert result.json["lower_bound_ns"] == best
    assert "seed seed" not in result.out
