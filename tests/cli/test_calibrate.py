"""Costs out of a timeline: what went in comes out, and what cannot be known is said."""

import pytest

UNEVEN = """\
pipeline: {{ranks: 3, microbatches: 5, schedule: {schedule}}}
stages:
  forward: [2ms, 3ms, 5ms]
  backward_input: [7ms, 11ms, 13ms]
  backward_weight: [17ms, 19ms, 23ms]
links: {{latency: 10us}}
"""


def costs_of(counterflow, config, text, *more):
    counterflow("compile", config(text), "-o", "out", "--emit", "timeline.json", *more, code=0)
    return counterflow("calibrate", "out/timeline.json", code=0).out


def test_gives_back_what_was_simulated(counterflow, config):
    assert costs_of(counterflow, config, UNEVEN.format(schedule="zb-h1")) == (
        "stages:\n"
        "  forward: [2000000ns, 3000000ns, 5000000ns]\n"
        "  backward_input: [7000000ns, 11000000ns, 13000000ns]\n"
        "  backward_weight: [17000000ns, 19000000ns, 23000000ns]\n"
    )


def test_halves_a_backward_that_ran_whole(counterflow, config):
    assert costs_of(counterflow, config, UNEVEN.format(schedule="1f1b")) == (
        "stages:\n"
        "  forward: [2000000ns, 3000000ns, 5000000ns]\n"
        "  backward_input: [12000000ns, 15000000ns, 18000000ns]\n"
        "  backward_weight: [12000000ns, 15000000ns, 18000000ns]\n"
    )


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "gpipe", "dualpipev"])
def test_its_costs_predict_the_same_timeline(counterflow, config, schedule):
    text = "pipeline: {ranks: 3, microbatches: 8, schedule: " + schedule + "}\n" + (
        "stages: {forward: 3ms, backward_input: 4ms, backward_weight: 2ms, overlapped: 8ms}\n"
    )
    costs = costs_of(counterflow, config, text)
    before = counterflow("simulate", config(text), "--json", code=0).json
    after = config(text.split("\n")[0] + "\n" + costs, name="calibrated.yaml")
    assert counterflow("simulate", after, "--json", code=0).json["makespan_ns"] == before[
        "makespan_ns"
    ]


def test_takes_what_was_measured(counterflow, config):
    text = UNEVEN.format(schedule="zb-h1")
    counterflow("run", config(text), "-o", "out", "--steps", 2, code=0)
    costs = counterflow("calibrate", "out/timeline.json", code=0).out
    firsts = [line.split("[")[1].split("ns")[0] for line in costs.splitlines()[1:]]
    # Sleeping is never shorter than asked for.
    assert [int(ns) >= least for ns, least in zip(firsts, (2e6, 7e6, 17e6))] == [True] * 3


def test_says_what_is_wrong(counterflow, tmp_path):
    assert "x.json" in counterflow("calibrate", "x.json", code=2).err
    (tmp_path / "half.json").write_text("{")
    assert "half.json" in counterflow("calibrate", "half.json", code=2).err
    assert "TIMELINE" in counterflow("calibrate", code=2).err
