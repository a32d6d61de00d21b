"""Train, eval and log-prob passes on the same stages."""

import json

import pytest

COSTS = "stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms, activation: 1MiB}\n"


def phased(phases, ranks=2, schedule="1f1b", more=""):
    listed = ", ".join(f"{{name: {name}, microbatches: {count}}}" for name, count in phases)
    return (
        f"pipeline: {{ranks: {ranks}, schedule: {schedule}, phases: [{listed}]{more}}}\n" + COSTS
    )


def test_every_output_knows_phases(counterflow, config, tmp_path):
    path = config(phased([("log-prob", 4), ("train", 8), ("eval", 2)], ranks=4))
    counterflow("compile", path, "-o", "out", code=0)
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    # 4 forwards, then 1F1B, then 2 forwards into an empty pipe.
    assert report["makespan_ns"] == (4 + 3 * (8 + 3) + (2 + 3)) * 1_000_000
    assert report["lower_bound_ns"] <= report["makespan_ns"]
    assert report["microbatches"] == 14
    assert {rank["busy_ns"] for rank in report["per_rank"]} == {(4 + 3 * 8 + 2) * 1_000_000}
    assert [rank["peak_activations"] for rank in report["per_rank"]] == [4, 3, 2, 1]
    assert "formula" not in report
    assert counterflow("verify", path, "--semantics", "all", "--json", code=0).json["ok"]
    # What it wrote is read back under the same phases.
    again = phased([("log-prob", 4), ("train", 8), ("eval", 2)], 4, "out/schedule.csv",
                   ", placement: loop")
    assert (
        counterflow("simulate", config(again, "again.yaml"), "--json", code=0).json["makespan_ns"]
        == report["makespan_ns"]
    )


def test_a_rank_that_does_not_enter_the_eval_is_named(counterflow, config, tmp_path):
    train = [
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1",
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1",
    ]
    rows = [train[0], train[1] + ",1RECV_F2,1F2,1RECV_F3,1F3"]
    (tmp_path / "order.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = config(
        phased([("train", 2), ("eval", 2)], schedule="order.csv", more=", placement: loop")
    )
    result = counterflow("verify", path, "--json", code=1)
    found = {(d["rule"], d["rank"], d["op"]): d["message"] for d in result.json["diagnostics"]}
    assert found["complete", 0, "0F2"] == "is missing"
    assert "rank 1 1RECV_F2 has no sender" in found["matching", 0, "0SEND_F2"]
    assert "rank 1 1RECV_F3 has no sender" in found["matching", 0, "0SEND_F3"]


def test_a_rank_without_the_ops_of_the_eval_is_named(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0B0\n1F0,1B0,1F1\n", encoding="utf-8")
    path = config(
        phased([("train", 1), ("eval", 1)], schedule="order.csv", more=", placement: loop")
    )
    result = counterflow("verify", path, code=1)
    assert "rank 0, 0F1: [complete] is missing" in result.err


@pytest.mark.parametrize(
    ("phases", "schedule", "words"),
    [
        ([("evl", 2)], "1f1b", "did you mean eval?"),
        ([("eval", 0)], "1f1b", "pipeline.phases[0].microbatches"),
        ([("eval", 2), ("train", 2)], "forward-only", "such as 1f1b"),
    ],
)
def test_wrong_phases_are_refused(counterflow, config, phases, schedule, words):
    result = counterflow("simulate", config(phased(phases, schedule=schedule)), code=2)
    assert words in result.err
    assert "config.yaml:1" in result.err


def test_another_number_of_microbatches_is_refused(counterflow, config):
    path = config(phased([("train", 4), ("eval", 2)]))
    result = counterflow("simulate", path, "--microbatches", "7", code=2)
    assert "--microbatches 7" in result.err
    assert "which have 6 together" in result.err
    counterflow("simulate", path, "--microbatches", "6", code=0)


def test_a_search_says_that_it_takes_one_phase(counterflow, config):
    path = config(phased([("train", 4), ("eval", 2)], more=", placement: loop"))
    assert "pipeline.phases: a search" in counterflow("search", path, code=2).err
    one = config(phased([("train", 4)], more=", placement: loop"), "one.yaml")
    counterflow("search", one, "--iterations", "50", code=0)


def test_auto_takes_the_fastest_family_over_all_phases(counterflow, config):
    path = config(phased([("log-prob", 4), ("train", 8)], 4, "auto", ", placement: loop"))
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["makespan_ns"] < (4 + 3 * (8 + 3)) * 1_000_000
    assert any("fastest" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("phases", "first"),
    [([("train", 8)], 7), ([("train", 4), ("eval", 4)], 6), ([("eval", 8)], 4)],
)
def test_layers_are_cut_by_what_they_cost_in_all_phases(counterflow, config, phases, first):
    # A decoder layer takes 3, or 1 + 2/2 where every other microbatch is trained; the head 18 or 9.
    layers = (
        "layers:\n"
        "  - {kind: decoder, repeat: 8, forward: 1ms, backward_input: 1ms, backward_weight: 1ms}\n"
        "  - {kind: head, forward: 0ms, backward_input: 9ms, backward_weight: 9ms}\n"
    )
    path = config(phased(phases).replace(COSTS, layers))
    (note,) = [
        text
        for text in counterflow("simulate", path, "--json", code=0).json["notes"]
        if "no layout" in text
    ]
    assert f'"t*{first}|' in note
    counterflow("partition", path, "--iterations", 20, code=0)
