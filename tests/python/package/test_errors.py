"""Errors carry what the command line says, and nothing a caller passes ends the process."""

import copy
import pickle
import random

import numpy as np
import pytest
from package import BASIC, load

cf = load()


def test_an_input_error_names_its_place(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("stages: {}\npipeline:\n  microbatchs: 8\n")
    with pytest.raises(cf.InputError, match="microbatches") as caught:
        cf.plan(path)
    assert caught.value.location == cf.Location(str(path), 3, 3)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, cf.Error)


def test_an_input_error_outside_a_file_has_no_place():
    with pytest.raises(cf.InputError, match="did you mean '1f1b'") as caught:
        cf.family("1f1c")
    assert caught.value.location is None


def test_a_faulty_schedule_says_every_fault():
    plan = cf.plan(BASIC)
    rows = [plan.schedule.slots(rank) for rank in range(4)]
    del rows[2][3]
    faulty = cf.Schedule("faulty", rows)
    verdict = cf.verify(plan.problem, faulty)
    assert not verdict
    assert verdict.program is None
    with pytest.raises(cf.InfeasibleError) as caught:
        cf.compile(plan.problem, faulty)
    faults = caught.value.diagnostics
    assert [str(fault) for fault in faults] == [str(fault) for fault in verdict.diagnostics]
    assert (faults[0].rule, faults[0].rank) == ("complete", 2)
    assert str(caught.value) == str(verdict)


def test_memory_is_exceeded_with_rank_and_op():
    limited = {**BASIC, "memory": {"limit_activations": 2}}
    with pytest.raises(cf.InfeasibleError) as caught:
        cf.run(limited)
    assert {fault.rule for fault in caught.value.diagnostics} == {"memory"}
    assert caught.value.diagnostics[0].op.kind == "F"


def test_errors_survive_pickling():
    with pytest.raises(cf.InfeasibleError) as caught:
        cf.run({**BASIC, "memory": {"limit_activations": 2}})
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert [str(each) for each in again.diagnostics] == [
        str(each) for each in caught.value.diagnostics
    ]
    where = pickle.loads(pickle.dumps(cf.InputError("wrong", "a.yaml", 3, 4)))
    assert (str(where), where.location) == ("wrong", cf.Location("a.yaml", 3, 4))


def test_what_cannot_be_written_is_an_environment_error(tmp_path):
    report = cf.run(BASIC).report
    with pytest.raises(cf.EnvironmentError) as caught:
        cf.save(report, tmp_path / "missing" / "report.json")
    assert isinstance(caught.value, OSError)
    with pytest.raises(cf.InputError, match=r"\.json"):
        cf.save(report, tmp_path / "report.csv")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (lambda: cf.Op("X", 0), cf.InputError),
        (lambda: cf.Op("F", -1), cf.InputError),
        (lambda: cf.Op("F", 0, 10**7), cf.InputError),
        (lambda: cf.Op("F", 0, 10**30), TypeError),
        (lambda: cf.Op(0, 0), TypeError),
        (lambda: cf.Slot(None), TypeError),
        (lambda: cf.Schedule("s", [["0F"]]), cf.InputError),
        (lambda: cf.Schedule("s", [["0F0,0F1"]]), cf.InputError),
        (lambda: cf.Schedule("s", [["0SEND_F0"]]), cf.InputError),
        (lambda: cf.Schedule("s", [[("0B0", "0F0")]]), cf.InputError),
        (lambda: cf.Schedule("s", ["0F0"]), TypeError),
        (lambda: cf.Schedule("s", [[3]]), TypeError),
        (lambda: cf.Schedule("s", None), TypeError),
        (lambda: cf.plan(BASIC).problem.rank_of(4), IndexError),
        (lambda: cf.plan(BASIC).problem.rank_of(-1), IndexError),
        (lambda: cf.plan(BASIC).schedule.array(4), IndexError),
        (lambda: cf.run(BASIC).program.rank(-1), IndexError),
        (lambda: cf.run(BASIC).timeline.memory(9), IndexError),
        (lambda: cf.simulate(None, None), TypeError),
        (lambda: cf.measure(None), TypeError),
        (lambda: cf.Run(None, None), TypeError),
        (lambda: cf.compare([]), cf.InputError),
        (lambda: cf.compare([None]), TypeError),
        (lambda: cf.plan(BASIC, schedule="no-such"), cf.InputError),
        (lambda: cf.plan(BASIC, ranks="four"), cf.InputError),
        (lambda: cf.plan(BASIC, execution="abacus"), cf.InputError),
        (lambda: cf.plan({"pipeline": float("nan")}), cf.InputError),
        (lambda: cf.plan("missing.yaml"), cf.InputError),
        (lambda: cf.plan(3), TypeError),
        (lambda: cf.ExecutionModel(semantics="loud"), cf.InputError),
        (lambda: cf.ExecutionModel(hardware_queues=-1), cf.InputError),
        (lambda: cf.load_program("missing.json"), cf.InputError),
        (lambda: cf.Program.from_json("{}"), cf.InputError),
        (lambda: cf.Report.from_json("[]"), cf.InputError),
        (lambda: cf.verify(cf.plan(BASIC).problem, cf.plan(BASIC).schedule, "loud"), cf.InputError),
    ],
)
def test_wrong_arguments_raise(wrong, error):
    with pytest.raises(error):
        wrong()


def test_a_schedule_of_another_problem_is_refused_whatever_it_names():
    problem = cf.plan(BASIC).problem
    draw = random.Random(1)
    for _ in range(300):
        rows = [
            [
                cf.Op(draw.choice("FBIW"), draw.randrange(6), draw.randrange(12), draw.randrange(2))
                for _ in range(draw.randrange(6))
            ]
            for _ in range(draw.choice([1, 4, 4, 5]))
        ]
        schedule = cf.Schedule("random", rows)
        assert not cf.verify(problem, schedule)
        with pytest.raises(cf.InfeasibleError):
            cf.makespan_ns(problem, schedule)


def test_arrays_that_are_no_schedule_are_refused():
    array = cf.plan(BASIC).schedule.array(0)
    with pytest.raises(TypeError):
        cf.Schedule.from_arrays("s", [np.zeros(3)])
    with pytest.raises(TypeError):
        cf.Schedule.from_arrays("s", [array.reshape(1, -1)])
    for field, value in (("kind", 99), ("microbatch", -1), ("kind", 0)):
        wrong = array.copy()
        wrong["first"][field] = value
        with pytest.raises(cf.InputError):
            cf.Schedule.from_arrays("s", [wrong])


def test_a_program_changed_at_random_is_refused_or_run():
    """Whatever numbers a pass writes, the answer is an error or a run, never a crash."""
    plan = cf.plan(BASIC, schedule="zb-h1", ranks=2, microbatches=3)
    program = plan.compile()
    draw = np.random.default_rng(7)
    outcomes = {"refused": 0, "faulty": 0, "ran": 0}
    for _ in range(600):
        part = program.rank(int(draw.integers(2)))
        table = draw.choice(["instructions", "transfers", "waits"])
        changed = getattr(part, table).copy()
        raw = changed.view(np.uint8).reshape(len(changed), -1)
        for _ in range(int(draw.integers(1, 3))):
            value = draw.choice([0, 1, 2, 3, 255])
            raw[draw.integers(raw.shape[0]), draw.integers(raw.shape[1])] = value
        try:
            other = program.with_rank(0, **{table: changed})
        except cf.InputError:
            outcomes["refused"] += 1
            continue
        try:
            plan.run_program(other)
            outcomes["ran"] += 1
        except cf.InfeasibleError:
            outcomes["faulty"] += 1
    assert min(outcomes.values()) > 0, outcomes


def test_a_problem_copies_but_has_no_pickled_form():
    problem = cf.plan(BASIC).problem
    assert copy.copy(problem).stages == problem.stages
    with pytest.raises(TypeError):
        pickle.dumps(problem)
