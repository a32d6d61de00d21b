"""optimizer.fsdp: parameters in shards over the pipelines side by side."""

import csv
import json

import pytest

CONFIG = """\
pipeline: {ranks: 2, microbatches: 4, chunks: 2, schedule: interleaved-1f1b}
stages: {forward: 10ms, backward_input: 10ms, backward_weight: 10ms, activation: 1GiB}
links: {latency: 1ms, bandwidth: 1GB/s, message: 4B}
memory: {static: 4GiB}
optimizer: {data_parallel: 2, gradients: 4MiB, step: 2ms, global_norm: true, fsdp: {parameters: 2MiB%s}}
"""
GIB = 2**30
MIB = 2**20


def rows(path):
    return list(csv.reader(path.read_text().splitlines()))


def compiled(counterflow, config, tmp_path, text):
    counterflow("compile", config(text), "-o", "out", code=0)
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    return report, rows(tmp_path / "out" / "program.csv")


def test_stages_are_gathered_and_freed(counterflow, config, tmp_path):
    _, program = compiled(counterflow, config, tmp_path, CONFIG % "")
    assert len(program) == 4
    assert program[0][0] == "0UNSHARD"
    # Every stage is unsharded whenever it computes, as PyTorch's runtime asks.
    for row in program:
        unsharded = set()
        for cell in row:
            if cell.endswith("UNSHARD"):
                unsharded.add(cell.removesuffix("UNSHARD"))
            elif cell.endswith("RESHARD"):
                unsharded.remove(cell.removesuffix("RESHARD"))
            elif "F" in cell and "SEND" not in cell and "RECV" not in cell:
                assert cell.split("F")[0] in unsharded, row
        assert not unsharded
    # And again after another stage's turn.
    assert program[0].count("0UNSHARD") > 1
    _, program = compiled(counterflow, config, tmp_path, CONFIG % ", reshard: never")
    assert program[0].count("0UNSHARD") == 1


def test_memory_holds_a_share_and_what_is_gathered(counterflow, config, tmp_path):
    whole = (CONFIG % "").replace(", fsdp: {parameters: 2MiB}", "")
    before, _ = compiled(counterflow, config, tmp_path, whole)
    after, _ = compiled(counterflow, config, tmp_path, CONFIG % "")
    for one, other in zip(before["per_rank"], after["per_rank"], strict=True):
        saved = one["peak_memory_bytes"] - other["peak_memory_bytes"]
        # Half of the static memory, less two stages and the gradients of two.
        assert 2 * GIB - 12 * MIB <= saved < 2 * GIB


def test_what_is_not_hidden_takes_time(counterflow, config, tmp_path):
    steps = {}
    for prefetch in (0, 1):
        report, _ = compiled(counterflow, config, tmp_path, CONFIG % f", prefetch: {prefetch}")
        steps[prefetch] = report["step_ns"]
    assert steps[0] > steps[1]


@pytest.mark.parametrize("backend", ["virtual", "threads", "gloo"])
def test_runs(counterflow, config, backend):
    text = (CONFIG % "").replace("0ms", "0us").replace("GiB", "MiB").replace("MiB", "KiB")
    done = counterflow(
        "run", config(text), "--backend", backend, "--steps", 2, "--json", code=0
    ).json
    assert len(done["report"]["per_rank"]) == 4


def test_the_program_reads_back(counterflow, config, tmp_path):
    counterflow("compile", config(CONFIG % ""), "-o", "out", code=0)
    counterflow("run", "--program", "out/program.json", "--backend", "virtual", code=0)


def test_a_limit_holds_for_what_is_gathered(counterflow, config, tmp_path):
    report, _ = compiled(counterflow, config, tmp_path, CONFIG % "")
    most = max(rank["peak_memory_bytes"] for rank in report["per_rank"])
    text = (CONFIG % "").replace("memory: {", f"memory: {{limit: {most}B, ")
    counterflow("verify", config(text), code=0)
    text = (CONFIG % "").replace("memory: {", f"memory: {{limit: {most - 1}B, ")
    refused = counterflow("verify", config(text), code=1)
    assert "with what it gathers" in refused.err


def test_what_is_chosen_without_gathers_says_so(counterflow, config):
    said = counterflow(
        "simulate", config(CONFIG % ""), "--schedule", "auto", "--set", "pipeline.placement=loop",
        "--json", code=0,
    ).json["warnings"]
    assert any("chosen, and a goal worked out, without gathers" in each for each in said)
    refused = counterflow("frontier", config(CONFIG % ""), "--points", 2, code=2).err
    assert "leave out optimizer.fsdp" in refused
