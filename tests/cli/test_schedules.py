"""schedules: every family with what a user needs to choose one."""

import pytest

FAMILIES = [
    "gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "looped-bfs", "zb-h1", "zb-h2",
    "zb-heuristic", "interleaved-zb", "zbv", "v-half", "v-min", "1f1b-v", "dualpipe", "dualpipev",
    "combined-1f1b", "hanayo", "chimera", "group-interleaved", "forward-only",
]
TORCH_CLASSES = {
    "ScheduleGPipe": "gpipe", "Schedule1F1B": "1f1b",
    "ScheduleInterleaved1F1B": "interleaved-1f1b", "ScheduleLoopedBFS": "looped-bfs",
    "ScheduleInterleavedZeroBubble": "interleaved-zb", "ScheduleZBVZeroBubble": "zbv",
    "ScheduleDualPipeV": "dualpipev",
}


def test_json_lists_every_family(counterflow):
    families = counterflow("schedules", "--json", code=0).json["schedules"]
    assert {family["name"] for family in families} == set(FAMILIES)
    for family in families:
        for key in ("name", "aliases", "summary", "constraints", "formula", "source"):
            assert key in family
        assert family["summary"]
        assert family["constraints"]
        assert family["source"]


def test_text_lists_every_family(counterflow):
    text = counterflow("schedules", code=0).out
    for name in FAMILIES:
        assert f"\n{name}\n" in "\n" + text


@pytest.mark.parametrize(("alias", "family"), TORCH_CLASSES.items())
def test_pytorch_class_names_are_known(counterflow, config, alias, family):
    text = (
        f"pipeline: {{ranks: 4, microbatches: 8, schedule: {alias}}}\n"
        "stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}\n"
    )
    report = counterflow("simulate", config(text), "--json", code=0).json
    assert report["schedule"] == family


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_simulates_and_verifies(counterflow, config, family):
    text = (
        f"pipeline: {{ranks: 4, microbatches: 8, schedule: {family}}}\n"
        "stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms, activation: 1MiB}\n"
        "links: {latency: 100us}\n"
    )
    path = config(text)
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["schedule"] == family
    assert report["makespan_ns"] >= report["lower_bound_ns"] > 0
    assert counterflow("verify", path, "--json", code=0).json["ok"]
