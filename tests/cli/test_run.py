"""Programs run on this machine: what is told, what is written, what is refused."""

import json
import re

import pytest

SHORT = """\
pipeline: {ranks: 3, microbatches: 4, schedule: zb-h1}
stages: {forward: 2ms, backward_input: 1ms, backward_weight: 1ms, activation: 1KiB}
links: {latency: 10us, bandwidth: 1GB/s, message: 4KiB}
execution: nccl
"""


@pytest.mark.parametrize("backend", ["virtual", "threads"])
def test_measures_what_was_predicted(counterflow, config, backend):
    result = counterflow(
        "run", config(SHORT), "--backend", backend, "--steps", 2, "--compare", "--json", code=0
    )
    run = result.json
    assert run["completed"] is True
    assert run["backend"] == backend
    assert run["steps"] == len(run["makespans_ns"]) == 2
    assert run["report"]["ranks"] == 3
    assert run["report"]["schedule"] == "zb-h1"
    assert run["report"]["makespan_ns"] == run["makespans_ns"][run["shown_step"]]
    kinds = {kind["kind"]: kind for kind in run["prediction_error"]["kinds"]}
    assert {kind: kinds[kind]["count"] for kind in "FIW"} == {"F": 12, "I": 12, "W": 12}
    assert kinds["SEND_F"]["count"] == kinds["RECV_F"]["count"] == 8
    assert kinds["F"]["predicted_ns"] == 2_000_000
    # An op never takes less than it is told to; how much more is the machine's affair.
    assert kinds["F"]["measured_ns"] >= 2_000_000
    assert result.err == ""


def test_summary_names_the_figures(counterflow, config):
    result = counterflow("run", config(SHORT), "--compare", code=0)
    for word in ("makespan", "measured", "predicted", "largest difference", "threads, program "):
        assert word in result.out
    assert counterflow("run", config(SHORT), "-q", code=0).out == ""


def test_several_steps_are_compared(counterflow, config):
    run = counterflow("run", config(SHORT), "--steps", 10, "--json", code=0).json
    statistics = run["statistics"]
    kinds = {(entry["rank"], entry["kind"]): entry for entry in statistics["ranks"]}
    assert {rank for rank, kind in kinds if kind == "F"} == {0, 1, 2}
    entry = kinds[1, "F"]
    assert entry["count"] == 4
    assert entry["predicted_ns"] == 2_000_000
    assert entry["mean_ns"] >= 2_000_000
    assert entry["median_ns"] >= 2_000_000
    assert min(entry["spread_ns"], entry["step_spread_ns"]) >= 0
    # A message that waits for its other end is not charged with that.
    assert kinds[0, "SEND_F"]["mean_ns"] >= 0
    drift = statistics["drift"]
    makespans = run["makespans_ns"]
    assert drift["first_ns"] == sorted(makespans[:5])[2]
    assert drift["last_ns"] == sorted(makespans[5:])[2]
    out = counterflow("run", config(SHORT), "--steps", 3, code=0).out
    assert "slower than its like" in out or "from step" in out


def test_one_step_and_ops_without_time_have_no_statistics(counterflow, config):
    path = config(SHORT)
    assert "statistics" not in counterflow("run", path, "--json", code=0).json
    virtual = ("run", path, "--backend", "virtual", "--steps", 3, "--json")
    assert "statistics" not in counterflow(*virtual, code=0).json
    assert "statistics" in counterflow(*virtual, "--compare", code=0).json


def test_shows_the_median_step_of_many(counterflow, config):
    run = counterflow(
        "run", config(SHORT), "--backend", "virtual", "--steps", 100, "--json", code=0
    ).json
    makespans = run["makespans_ns"]
    assert len(makespans) == 100
    # Of 100 steps every fourth is kept.
    assert run["shown_step"] % 4 == 0
    assert run["report"]["makespan_ns"] == makespans[run["shown_step"]]
    middle = sorted(makespans)[49]
    kept = makespans[::4]
    assert abs(makespans[run["shown_step"]] - middle) == min(abs(m - middle) for m in kept)


def test_writes_the_measured_timeline(counterflow, config, tmp_path):
    counterflow("run", config(SHORT), "-o", "out", "--compare", code=0)
    out = tmp_path / "out"
    names = {path.name for path in out.iterdir()}
    assert names == {
        "program.json", "report.json", "run.json", "timeline.json", "timeline.html",
        "timeline.svg", "trace.json", "predicted.json", "compare.html",
    }
    run = json.loads((out / "run.json").read_text())
    report = json.loads((out / "report.json").read_text())
    assert run["report"] == report
    # Both are timelines that compare reads.
    both = counterflow("compare", "out/predicted.json", "out/timeline.json", "--json", code=0).json
    assert both["runs"][1]["report"]["makespan_ns"] == report["makespan_ns"]
    program = json.loads((out / "program.json").read_text())
    assert program["hash"] == run["program_hash"]


def test_runs_a_program_of_its_own(counterflow, config):
    path = config(SHORT)
    counterflow("compile", path, "-o", "out", "--emit", "program.json", code=0)
    of_config = counterflow("run", path, "--backend", "virtual", "--json", code=0).json
    of_program = counterflow(
        "run", "--program", "out/program.json", "--backend", "virtual", "--json", code=0
    ).json
    assert of_program["program_hash"] == of_config["program_hash"]
    assert of_program["report"]["execution"] == "nccl"


def test_same_input_same_hash_other_input_another(counterflow, config):
    def hash_of(*more):
        return counterflow(
            "run", config(SHORT), "--backend", "virtual", "--json", *more, code=0
        ).json["program_hash"]

    assert hash_of() == hash_of("--seed", 9)
    assert hash_of() != hash_of("--microbatches", 5)


def test_says_what_is_wrong(counterflow, config, tmp_path):
    path = config(SHORT)
    assert "--program" in counterflow("run", code=2).err
    assert "--program" in counterflow("run", path, "--program", "x.json", code=2).err
    assert "x.json" in counterflow("run", "--program", "x.json", code=2).err
    assert "threads" in counterflow("run", path, "--backend", "cuda", code=2).err
    assert "gloo" in counterflow("run", path, "--fault", "kill@0:1", code=2).err
    assert "--steps" in counterflow("run", path, "--steps", 0, code=2).err
    assert "--patience" in counterflow("run", path, "--patience", "0s", code=2).err
    assert "--patience" in counterflow("run", path, "--patience", "soon", code=2).err
    bare = counterflow("run", path, "--patience", "3", code=2).err
    assert "write --patience 3s or --patience 3ms" in bare
    program = tmp_path / "program.json"
    program.write_text("{}")
    assert "program.json" in counterflow("run", "--program", program, code=2).err


def test_refuses_what_deadlocks(counterflow, config, tmp_path):
    (tmp_path / "stuck.csv").write_text(
        "0F0,0SEND_F0,0RECV_B0,0B0,0F1,0SEND_F1,0RECV_B1,0B1\n"
        "1RECV_F0,1RECV_F1,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n"
    )
    text = """\
pipeline: {ranks: 2, microbatches: 2, schedule: stuck.csv, placement: loop}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}
"""
    result = counterflow("run", config(text), "-o", "out", code=1)
    assert "deadlock" in result.err or "cycle" in result.err
    assert not (tmp_path / "out").exists()


def edited(counterflow, path, change):
    """A program file changed as if it had been written so: with the hash of its contents."""
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    refused = counterflow("run", "--program", path, code=2).err
    found = re.search(r"the file says (\w+), its contents give (\w+)", refused)
    document["hash"] = found.group(2)
    path.write_text(json.dumps(document))
    return path


def without_the_waits_of_sends(document):
    count = document["columns"]["instructions"].index("waits_count")
    for rank in document["ranks"]:
        for instruction in rank["instructions"]:
            if "SEND" in instruction[4]:
                instruction[count] = 0


def without_a_member(document):
    document["communicators"][0]["members"].pop()


@pytest.mark.parametrize("backend", ["virtual", "threads", "gloo"])
@pytest.mark.parametrize(
    "change, rule", [(without_the_waits_of_sends, "[race]"), (without_a_member, "[form]")]
)
def test_a_program_is_verified_before_it_runs(
    counterflow, config, tmp_path, backend, change, rule
):
    counterflow("compile", config(SHORT), "-o", tmp_path, "--emit", "program.json", code=0)
    path = edited(counterflow, tmp_path / "program.json", change)
    out = tmp_path / "out"
    refused = counterflow("run", "--program", path, "--backend", backend, "-o", out, code=1)
    assert "program.json has " in refused.err
    assert rule in refused.err
    assert not out.exists()
