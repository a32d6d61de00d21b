"""Flight records: what a run that stops writes, what PyTorch's tool and `diagnose` make of them."""

import importlib.util
import json
import os
import pickle
import re
import subprocess
import sys

import pytest
from harness import TIMEOUT_S, binary

CONFIG = """\
pipeline: {ranks: 3, microbatches: 4, schedule: 1f1b}
stages: {forward: 20ms, backward_input: 20ms, backward_weight: 20ms, activation: 1KiB}
links: {latency: 10us, bandwidth: 1GB/s, message: 4KiB}
execution: nccl
"""
LAUNCHER = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MASTER_ADDR")


def without_launcher():
    return {name: value for name, value in os.environ.items() if name not in LAUNCHER}


@pytest.fixture(scope="session")
def gloo():
    result = subprocess.run(
        [binary(), "run", "--backend", "gloo", "--program", "/dev/null"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )
    if result.returncode == 4:
        pytest.skip("built without libgloo-dev")


@pytest.fixture
def stopped(gloo, counterflow, config, tmp_path):
    """A run over gloo that a fault stops; the folder of its records, and its program."""

    def run(fault, patience, text=CONFIG):
        counterflow("compile", config(text), "-o", "plan", "--emit", "program.json", code=0)
        result = counterflow(
            "run", config(text), "--backend", "gloo", "--fault", fault,
            "--patience", patience, "-o", "out", code=4, env=without_launcher(),
        )
        assert f"cause lies with rank {fault.split('@')[1][0]}" in result.err
        return tmp_path / "out"

    return run


def strip(folder):
    """Leaves in the records what PyTorch has a place for."""
    for path in folder.iterdir():
        record = pickle.loads(path.read_bytes())
        del record["counterflow"]
        path.write_bytes(pickle.dumps(record, 4))


# Patience, and how the entries alone show it; None: they do not.
FAULTS = {
    "kill@1:2": ("60s", "no_record"),
    "stall@1:2": ("2s", "never_posted"),
    "drop@0:2": ("2s", "does_not_arrive"),
    "size@2:1": ("60s", None),
    "corrupt@0:1": ("60s", None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_culprit_of_a_run_is_named(stopped, counterflow, fault):
    patience, kind = FAULTS[fault]
    culprit = int(fault.split("@")[1][0])
    folder = stopped(fault, patience)
    ranks = {0, 1, 2} - ({culprit} if fault.startswith("kill") else set())
    assert {path.name for path in folder.iterdir()} == {f"flight_record_{r}" for r in ranks}
    told = counterflow("diagnose", folder, "--program", "plan/program.json", code=0)
    assert told.out.startswith(f"rank {culprit} is at fault")
    found = counterflow("diagnose", folder, "--json", code=0).json
    assert found["culprit"] == culprit
    assert found["findings"][0]["kind"] == "recorded"
    assert set(found["ranks"]) == ranks
    if kind:
        strip(folder)
        found = counterflow(
            "diagnose", folder, "--program", "plan/program.json", "--json", code=0
        ).json
        assert (found["culprit"], found["findings"][0]["kind"]) == (culprit, kind), found


# The norm of all gradients is an all-reduce: it comes behind eight ops of each rank, and behind the
# four messages that the last rank sends.
NORM = CONFIG + "optimizer: {gradients: 4KiB, step: 20ms, global_norm: true}\n"


def test_the_rank_that_never_comes_to_a_collective_is_named(stopped, counterflow):
    folder = stopped("stall@1:8", "2s", NORM)
    told = counterflow("diagnose", folder, "--program", "plan/program.json", code=0)
    first = told.out.splitlines()[0]
    assert first.startswith("rank 1 is at fault") and "NORM" in first
    strip(folder)
    for program in ((), ("--program", "plan/program.json")):
        found = counterflow("diagnose", folder, *program, "--json", code=0).json
        assert found["culprit"] == 1
        assert found["findings"][0]["kind"] == "never_posted", found
        assert "all_reduce" in found["findings"][0]["reason"]


def test_a_share_of_a_collective_that_is_lost(stopped, counterflow):
    folder = stopped("drop@2:4", "2s", NORM)
    found = counterflow("diagnose", folder, "--json", code=0).json
    assert found["culprit"] == 2
    assert found["findings"][0]["kind"] == "recorded"
    assert "share does not arrive" in found["findings"][0]["reason"]


def test_threads_record_too(counterflow, config, tmp_path):
    counterflow("compile", config(CONFIG), "-o", "plan", "--emit", "program.json", code=0)
    # An op is longer than the patience.
    result = counterflow(
        "run", "--program", "plan/program.json", "--backend", "threads", "--patience", "1ms",
        "-o", "out", "--json", code=1,
    )
    assert json.loads(result.out)["completed"] is False
    assert len(list((tmp_path / "out").iterdir())) == 3
    found = counterflow("diagnose", "out", "--json", code=0).json
    assert found["culprit"] == json.loads(result.out)["failure"]["culprit"]


def test_records_of_an_earlier_run_are_gone(counterflow, config, tmp_path):
    """What lies in a folder is of its last run: one that went well leaves none."""
    out = tmp_path / "out"
    out.mkdir()
    for name in ("flight_record_0", "flight_record_7"):
        (out / name).write_text("{}")
    (out / "flight_record_0.kept").write_text("{}")
    counterflow("run", config(), "--backend", "virtual", "-o", "out", code=0)
    assert [path.name for path in out.glob("flight_record_*")] == ["flight_record_0.kept"]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_torchfrtrace_reads_the_records(stopped, tmp_path):
    folder = stopped("stall@1:2", "2s")
    result = subprocess.run(
        [sys.executable, "-c",
         "from torch.distributed.flight_recorder.fr_trace import main; main()",
         str(folder), "-o", str(tmp_path / "database")],
        capture_output=True, text=True, timeout=600, check=False,
    )
    said = result.stdout + result.stderr
    assert result.returncode == 0, said
    assert "Not all ranks joining collective" in said
    assert "missing ranks: {1}" in said
    # The instruction stands where a stack frame does.
    assert re.search(r"0SEND_F\d|2RECV_F\d", said)
    assert (tmp_path / "database").exists()


def pytorch_dump(rank, entries, **more):
    """As torch 2.13 dumps it: what gloo leaves out included."""
    names = {"process_group": ("0", "default_pg"), "pg_id": 0, "retired": False, "timeout_ms": 1000,
             "thread_id": "1", "thread_name": "python", "time_discovered_started_ns": None,
             "time_discovered_completed_ns": None, "input_dtypes": ["Float"],
             "output_dtypes": ["Float"], "input_sizes": [[4]], "output_sizes": [[4]],
             "frames": [{"name": "step", "filename": "train.py", "line": 7}]}
    listed = [
        names | {"record_id": n, "op_id": n + 1, "time_created_ns": 1000 * n + rank} | entry
        for n, entry in enumerate(entries)
    ]
    return {"version": "2.10", "comm_lib_version": "", "entries": listed,
            "pg_config": {"": {"name": "", "desc": "", "ranks": "[0, 1]"}},
            "pg_status": {"0": {"last_completed_collective": 1, "last_enqueued_collective": 2,
                                "last_started_collective": -1}}} | more


def collective(sequence, **more):
    return {"profiling_name": "gloo:all_reduce", "is_p2p": False, "collective_seq_id": sequence,
            "p2p_seq_id": 0, "state": "scheduled", "retired": sequence == 1} | more


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_reads_the_records_of_pytorch(counterflow, tmp_path, form):
    folder = tmp_path / "dumps"
    folder.mkdir()
    dumps = [pytorch_dump(0, [collective(1), collective(2)]), pytorch_dump(1, [collective(1)])]
    for rank, dump in enumerate(dumps):
        if form == "pickle":
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, 2))
        else:
            (folder / f"rank_{rank}.json").write_text(json.dumps(dump))
    found = counterflow("diagnose", folder, "--json", code=0).json
    assert found["culprit"] == 1
    assert found["findings"][0]["kind"] == "never_posted"
    assert "all_reduce 2" in found["reason"]


def test_nothing_wrong_is_said(counterflow, tmp_path):
    for rank in range(2):
        dump = pickle.dumps(pytorch_dump(rank, [collective(1)]))
        (tmp_path / f"trace_{rank}").write_bytes(dump)
    assert counterflow("diagnose", tmp_path, code=1).out.startswith("nothing is wrong")


class Hostile:
    def __reduce__(self):
        return os.system, ("touch ran",)


def test_refuses_what_is_no_record(counterflow, tmp_path):
    folder = tmp_path / "dumps"
    folder.mkdir()
    assert "cannot read" in counterflow("diagnose", "nowhere", code=2).err
    assert "no file's name ends in a rank" in counterflow("diagnose", folder, code=2).err
    record = folder / "trace_0"
    for protocol in (2, 4):
        record.write_bytes(pickle.dumps(pytorch_dump(0, [], extra=Hostile()), protocol))
        error = counterflow("diagnose", folder, code=2).err
        assert "trace_0" in error and "GLOBAL would make Python run code" in error
        assert not (tmp_path / "ran").exists()
    good = pickle.dumps(pytorch_dump(0, [collective(1)]), 2)
    record.write_bytes(good[:-20])
    assert "trace_0: byte" in counterflow("diagnose", folder, code=2).err
    record.write_bytes(b"not a record")
    assert "it is no flight record" in counterflow("diagnose", folder, code=2).err
    record.write_bytes(good)
    (folder / "other_0").write_bytes(good)
    assert "both of rank 0" in counterflow("diagnose", folder, code=2).err


def test_refuses_the_program_of_another_run(counterflow, config, tmp_path):
    counterflow("compile", config(CONFIG), "-o", "plan", "--emit", "program.json",
                "--ranks", 1, code=0)
    dump = pytorch_dump(1, [collective(1)])
    (tmp_path / "trace_1").write_bytes(pickle.dumps(dump))
    error = counterflow("diagnose", tmp_path, "--program", "plan/program.json", code=2).err
    assert "names rank 1, and the program has ranks 0 to 0" in error
