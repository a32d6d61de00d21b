"""links.compress: messages packed on their way, in the program, its figures and its runs."""

import json

import pytest

CONFIG = """\
pipeline: {ranks: 4, microbatches: 6, schedule: 1f1b}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms, activation: 1MiB}
links: {bandwidth: 1GB/s, message: 1056000B%s}
"""
PACKED = CONFIG % ", compress: {activations: fp8, gradients: bf16}"


def column(program, table, name):
    at = program["columns"][table].index(name)
    return [row[at] for rank in program["ranks"] for row in rank[table]]


def test_the_program_says_what_is_on_the_wire(counterflow, config, tmp_path):
    counterflow("compile", config(PACKED), "-o", "out", code=0)
    program = json.loads((tmp_path / "out" / "program.json").read_text())
    kinds = column(program, "transfers", "payload")
    sizes = {
        (kind, type_, size)
        for kind, type_, size in zip(
            kinds,
            column(program, "transfers", "type"),
            column(program, "transfers", "bytes"),
            strict=True,
        )
    }
    assert sizes == {("activation", "fp8", 272252), ("gradient", "bf16", 528000)}


def test_less_time_on_the_wire_and_more_in_the_ops(counterflow, config):
    def makespan(text):
        return counterflow("simulate", config(text), "--json", code=0).json["makespan_ns"]

    plain = makespan(CONFIG % "")
    packed = makespan(CONFIG % ", compress: bf16")
    # As if the link were twice as fast.
    assert packed == makespan((CONFIG % "").replace("1GB/s", "2GB/s"))
    assert packed < plain
    paid = makespan(CONFIG % ", compress: {activations: bf16, gradients: bf16, rate: 20GB/s}")
    assert packed < paid


def test_the_pass_is_listed(counterflow, config):
    done = counterflow("compile", config(PACKED), "-o", "out", "--dump-passes", "-v", code=0)
    assert "compress_messages" in done.out + done.err


@pytest.mark.parametrize("backend", ["virtual", "threads"])
def test_runs(counterflow, config, tmp_path, backend):
    path = config(PACKED.replace("1ms", "1us").replace("1056000B", "4KiB"))
    counterflow("run", path, "--backend", backend, "--steps", 2, "--execution", "nccl", code=0)
    counterflow("compile", path, "-o", "out", "--emit", "program.json", code=0)
    counterflow("run", "--program", "out/program.json", "--backend", backend, code=0)


def test_an_unknown_type_names_the_line(counterflow, config):
    done = counterflow("simulate", config(CONFIG % ", compress: fp4"), code=2)
    assert "config.yaml:3:" in done.err
    assert "links.compress: fp4 is not one of bf16, fp8" in done.err


def test_a_search_sees_it(counterflow, config):
    done = counterflow(
        "search", config(PACKED), "--iterations", 20, "--set", "pipeline.placement=loop",
        "--json", code=0,
    ).json
    plain = counterflow(
        "search", config(CONFIG % ""), "--iterations", 20, "--set", "pipeline.placement=loop",
        "--json", code=0,
    ).json
    assert done["lower_bound_ns"] < plain["lower_bound_ns"]
    assert done["makespan_ns"] < plain["makespan_ns"]
