"""Steps one behind the other, without a barrier: simulate --steps, run --consecutive."""

import pytest

MS = 1_000_000
CONFIG = """\
pipeline: {ranks: 4, microbatches: 8, schedule: %s}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms, activation: 1MiB}
"""
VALIDATED = """\
optimizer: {gradients: 4KiB, step: 2ms, global_norm: true, validation: %s, snapshot: 64MiB}
"""


# By hand: tests/golden/consecutive_steps_test.cpp.
@pytest.mark.parametrize(
    ("schedule", "optimizer", "step"),
    [
        ("1f1b", "", 33),
        ("zb-h2", "", 24),
        ("zb-h2", VALIDATED % "before", 24 + 3 + 2),
        ("zb-h2", VALIDATED.replace(", snapshot: 64MiB", "") % "after", 24 + 3),
    ],
)
def test_the_steady_step(counterflow, config, schedule, optimizer, step):
    optimizer = optimizer.replace(", snapshot: 64MiB", "")
    path = config(CONFIG % schedule + optimizer)
    alone = counterflow("simulate", path, "--json", code=0).json
    report = counterflow("simulate", path, "--steps", 6, "--json", code=0).json
    steps = report.pop("consecutive_steps")
    assert report == alone
    assert steps["steps"] == 6
    assert steps["steady_step_ns"] == step * MS
    assert steps["makespan_ns"] >= 5 * step * MS
    text = counterflow("simulate", path, "--steps", 6, code=0).out
    assert f"steady step          {step} ms" in text
    assert "of 6 consecutive ones" in text


def test_what_steps_keep_is_held_and_must_fit(counterflow, config):
    path = config(CONFIG % "1f1b" + VALIDATED % "after")
    report = counterflow("simulate", path, "--steps", 3, "--json", code=0).json
    assert [rank["peak_memory_bytes"] for rank in report["per_rank"]] == [64 << 20] * 4
    assert report["consecutive_steps"]["peak_memory_bytes"] == [64 << 20] * 4
    err = counterflow("simulate", path, "--set", "memory.limit=60MiB", code=1).err
    assert "0STEP: [memory] rank 0 needs 67108864 B here" in err


@pytest.mark.parametrize("backend", ["virtual", "threads"])
def test_runs_without_a_barrier(counterflow, config, backend):
    path = config(CONFIG % "zb-h2" + VALIDATED % "after")
    run = counterflow(
        "run", path, "--backend", backend, "--steps", 3, "--consecutive", "--compare", "--json",
        code=0,
    ).json
    assert run["completed"] is True
    assert run["steps"] == 3
    assert len(run["makespans_ns"]) == 1
    assert run["report"]["microbatches"] == 24
    assert run["report"]["consecutive_steps"]["steps"] == 3
    kinds = {kind["kind"]: kind["count"] for kind in run["prediction_error"]["kinds"]}
    assert kinds["NORM"] == kinds["STEP"] == kinds["VALIDATE"] == 12


def test_a_file_with_communication_may_be_repeated(counterflow, config, tmp_path):
    path = config(CONFIG % "1f1b")
    counterflow("compile", path, "-o", "out", "--emit", "program.csv", code=0)
    report = counterflow(
        "simulate", path, "--schedule", "out/program.csv", "--set", "pipeline.placement=loop",
        "--semantics", "buffered", "--steps", 3, "--json", code=0,
    ).json
    assert report["consecutive_steps"]["steady_step_ns"] == 33 * MS


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", "--steps", 0), "--steps"),
        (("simulate", "--steps", 1001), "--steps"),
        (("simulate", "--steps", 2, "--scenario", "x.yaml"), "--steps excludes --scenario"),
        (("run", "--consecutive"), "--consecutive requires --steps"),
    ],
)
def test_wrong_options(counterflow, config, arguments, words):
    command, *rest = arguments
    assert words in counterflow(command, config(CONFIG % "1f1b"), *rest, code=2).err


def test_too_many_microbatches(counterflow, config):
    path = config((CONFIG % "gpipe").replace("microbatches: 8", "microbatches: 1001"))
    err = counterflow("simulate", path, "--steps", 1000, code=1).err
    assert "1000 steps of 1001 microbatches have 1001000; at most 1000000 are possible" in err


def test_too_long(counterflow, config):
    path = config((CONFIG % "gpipe").replace("forward: 1ms", "forward: 10000000s"))
    counterflow("simulate", path, "--steps", 2, code=0)
    err = counterflow("simulate", path, "--steps", 100, code=1).err
    assert "the durations of 100 steps may sum to 2^62 ns" in err
