"""Families and passes written in Python: verified, simulated, and refused where they are wrong."""

import importlib.util
import subprocess
import sys

import pytest
from package import BASIC, EXAMPLES, ROOT, load

cf = load()


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / "python" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["my_family", "my_pass"])
def test_an_example_runs(name):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "python" / f"{name}.py"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4


def test_the_readme_runs(tmp_path, monkeypatch):
    """Its example, in a folder that has the examples."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    _, _, rest = (ROOT / "README.md").read_text().partition("```python\n")
    exec(rest.partition("```")[0], {})
    assert (tmp_path / "timeline.html").stat().st_size > 10_000


@pytest.mark.parametrize(("p", "m"), [(1, 1), (2, 3), (4, 8), (5, 4), (8, 24)])
def test_the_family_is_valid_and_hides_latency(p, m):
    deep = example("my_family").deep_1f1b
    arguments = {"ranks": p, "microbatches": m, "overrides": {"links.latency": "400us"}}
    plan = cf.plan(BASIC, schedule=deep, **arguments)
    assert plan.verify().ok, str(plan.verify())
    mine = plan.run().report
    assert mine.schedule == "deep-1f1b"
    assert mine.makespan_ns <= cf.run(BASIC, schedule="1f1b", **arguments).report.makespan_ns


def test_a_wrong_family_gets_the_verifiers_diagnostics():
    @cf.recipe("hasty")
    def hasty(problem):
        """Backward before forward on the last rank, and no last microbatch on rank 0."""
        last, m = problem.ranks - 1, problem.microbatches
        for rank in range(problem.ranks):
            order = "BF" if rank == last else "FB"
            yield [f"{rank}{kind}{i}" for kind in order for i in range(m - (rank == 0))]

    verdict = cf.plan(BASIC, schedule=hasty).verify()
    assert not verdict.ok
    found = {(fault.rule, fault.rank) for fault in verdict.diagnostics}
    assert ("complete", 0) in found
    assert ("order", 3) in found
    wrong = next(fault for fault in verdict.diagnostics if fault.rule == "order")
    assert (wrong.index, wrong.op) == (0, cf.Op("B", 3, 0))
    with pytest.raises(cf.InfeasibleError) as caught:
        cf.run(BASIC, schedule=hasty)
    assert len(caught.value.diagnostics) == len(verdict.diagnostics)


def test_a_family_on_a_placement_of_its_own():
    """The published ZB-V order, taken as text, is the same problem and the same figures."""
    published = cf.plan(BASIC, schedule="zbv")

    @cf.recipe("copied", placement="v", chunks=2)
    def copied(problem):
        assert problem.placement == "v"
        return [[str(slot) for slot in published.schedule.slots(rank)] for rank in range(4)]

    assert cf.run(BASIC, schedule=copied).report.makespan_ns == published.run().report.makespan_ns


def test_what_a_family_raises_comes_out():
    def broken(problem):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cf.plan(BASIC, schedule=broken)


def test_a_schedule_pass_keeps_the_work():
    weights_last = example("my_pass").weights_last
    plan = cf.plan(BASIC, schedule="zb-h1")
    late = weights_last(plan.schedule)
    assert len(late) == len(plan.schedule)
    run = cf.plan(BASIC, schedule=late).run()
    assert run.report.makespan_ns >= plan.problem.lower_bound_ns
    assert [cells[-8:] for cells in (row.split(",") for row in late.to_csv().splitlines())] == [
        [f"{rank}W{i}" for i in range(8)] for rank in range(4)
    ]


def test_a_program_pass_is_verified_and_run():
    without_streams = example("my_pass").without_streams
    latency = {"links.latency": "100us"}
    plan = cf.plan(BASIC, schedule="zb-h1", execution="nccl", overrides=latency)
    program = plan.compile()
    blocking = without_streams(program)
    assert blocking.hash != program.hash
    run = plan.run_program(blocking)
    assert all(len(run.program.rank(rank).streams) == 1 for rank in range(4))
    assert run.report.makespan_ns > plan.run().report.makespan_ns


def test_a_program_pass_that_loses_a_message_is_refused():
    plan = cf.plan(BASIC)
    program = plan.compile()
    instructions = program.rank(0).instructions.copy()
    first = int((instructions["kind"] == cf.INSTRUCTION_KINDS.index("transfer")).argmax())
    kept = [i for i in range(len(instructions)) if i != first]
    with pytest.raises(cf.InfeasibleError) as caught:
        plan.run_program(program.with_rank(0, instructions=instructions[kept]))
    assert {fault.rule for fault in caught.value.diagnostics} == {"form"}


def test_a_program_of_another_problem_is_refused():
    program = cf.plan(BASIC, microbatches=9).compile()
    with pytest.raises(cf.InputError, match="another problem"):
        cf.plan(BASIC).run_program(program)
    with pytest.raises(cf.InputError, match="microbatches"):
        cf.simulate(program, cf.plan(BASIC).problem)
