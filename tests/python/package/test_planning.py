"""From a config to figures: the same as the command line gives, by every way in."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from package import BASIC, EXAMPLES, ROOT, load

cf = load()


def command(*arguments):
    binary = Path(os.environ.get("COUNTERFLOW_BIN", ROOT / "build" / "dev" / "counterflow"))
    done = subprocess.run(
        [binary, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_report_is_the_command_lines(example):
    assert cf.run(example).report.to_json() == command("simulate", example, "--json")


def test_consecutive_steps_are_the_command_lines():
    example = EXAMPLES / "dualpipe_p8_m20.yaml"
    report = cf.run(example, steps=4).report
    assert report.to_json() == command("simulate", example, "--steps", "4", "--json")
    assert report.consecutive_steps.steps == 4
    assert len(report.consecutive_steps.peak_memory_bytes) == 8
    assert cf.Report.from_json(report.to_json()) == report
    assert cf.run(example).report.consecutive_steps is None


def test_the_steady_step():
    """Of 1F1B the makespan; of ZB-H2, whose ranks begin as they ended, what one microbatch costs
    times their number."""
    for schedule, step_ms in (("1f1b", 33), ("zb-h2", 24)):
        run = cf.plan(BASIC, schedule=schedule).run(steps=6)
        figures = run.report.consecutive_steps
        assert figures.steady_step_ns == step_ms * 1_000_000
        assert figures.makespan_ns >= 5 * figures.steady_step_ns
        assert run.timeline.program.microbatches == 8
        assert repr(figures) == f"<ConsecutiveSteps: 6 of {step_ms}000000 ns each>"


@pytest.mark.parametrize("steps", [0, -1, 1001, 2**40])
def test_steps_that_cannot_be_run(steps):
    with pytest.raises(cf.InputError, match=f"steps {steps} is outside 1..1000"):
        cf.run(BASIC, steps=steps)


def test_files_are_the_command_lines(tmp_path):
    example = EXAMPLES / "dualpipe_p8_m20.yaml"
    command("compile", example, "-q", "-o", tmp_path / "cli")
    run = cf.run(example)
    for name, value in {
        "program.csv": run.program,
        "program.json": run.program,
        "report.json": run.report,
        "timeline.json": run,
        "timeline.html": run,
        "timeline.svg": run,
    }.items():
        cf.save(value, tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / "cli" / name).read_bytes(), name
    assert run.trace_json() == (tmp_path / "cli" / "trace.json").read_text()


def test_dualpipe_takes_66_units():
    """The published makespan of DeepSeek's picture."""
    assert cf.run(EXAMPLES / "dualpipe_p8_m20.yaml").report.makespan_ns == 66_000_000


def test_a_config_is_a_path_text_or_a_mapping(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(BASIC, indent=1))
    reports = [cf.run(each).report for each in (path, path.read_text(), BASIC)]
    assert reports[0] == reports[1] == reports[2]
    assert reports[0].makespan_ns == (8 + 4 - 1) * 3_000_000


def test_arguments_override_the_config():
    plan = cf.plan(
        BASIC,
        schedule="interleaved-1f1b",
        ranks=2,
        microbatches=6,
        chunks=2,
        execution="nccl",
        overrides={"links.latency": "5us", "stages.forward": ["1ms", "2ms", "3ms", "4ms"]},
    )
    problem = plan.problem
    assert (problem.ranks, problem.microbatches, problem.stages) == (2, 6, 4)
    assert plan.config.execution == cf.ExecutionModel.preset("nccl")
    assert problem.latency_ns(0, 1) == 5000
    assert list(problem.costs["forward_ns"]) == [1_000_000, 2_000_000, 3_000_000, 4_000_000]
    assert plan.family == "interleaved-1f1b"


def test_an_execution_model_overrides_the_config():
    model = cf.ExecutionModel(semantics="rendezvous", independent_transfers=False)
    found = cf.plan(BASIC, execution=model).config.execution
    assert (found.semantics, found.independent_transfers) == ("rendezvous", False)


def test_a_schedule_file_is_found_beside_its_config(tmp_path, monkeypatch):
    order = cf.plan(BASIC).schedule
    (tmp_path / "configs").mkdir()
    cf.save(order, tmp_path / "configs" / "order.csv")
    config = tmp_path / "configs" / "config.yaml"
    pipeline = {**BASIC["pipeline"], "schedule": "order.csv", "placement": "loop"}
    config.write_text(json.dumps({**BASIC, "pipeline": pipeline}))
    monkeypatch.chdir(tmp_path)
    assert cf.plan(config).schedule.to_csv() == order.to_csv()
    again = cf.plan(config, schedule="configs/order.csv")
    assert again.schedule.to_csv() == order.to_csv()


def test_the_steps_one_by_one_give_the_same():
    plan = cf.plan(BASIC, schedule="zb-h1")
    schedule = cf.generate("zb-h1", plan.problem)
    assert schedule == plan.schedule
    assert cf.verify(plan.problem, schedule).semantics == {
        "buffered": "ok",
        "posted": "ok",
        "rendezvous": "ok",
    }
    program = cf.compile(plan.problem, schedule)
    timeline = cf.simulate(program, plan.problem)
    report = cf.measure(timeline)
    run = plan.run()
    assert program == run.program
    assert timeline == run.timeline
    assert report.makespan_ns == run.report.makespan_ns
    assert cf.makespan_ns(plan.problem, schedule) == report.makespan_ns
    assert plan.problem.lower_bound_ns == run.report.lower_bound_ns


def test_every_family_is_listed_and_explains_itself():
    families = {family.name: family for family in cf.families()}
    listed = json.loads(command("schedules", "--json"))["schedules"]
    assert list(families) == [each["name"] for each in listed]
    assert cf.family("DualPipeV").name == "dualpipev"
    reason = families["dualpipe"].refusal(3, 20)
    assert reason is not None
    assert "even" in reason
    assert families["gpipe"].refusal(4, 8) is None


def test_runs_are_compared():
    runs = [cf.run(BASIC, schedule=name) for name in ("1f1b", "zb-h1")]
    comparison = cf.compare(runs)
    assert comparison.names == ["1f1b", "zb-h1"]
    assert [each.makespan_ns for each in comparison.reports] == [
        each.report.makespan_ns for each in runs
    ]
    assert "zb-h1" in comparison.table()
    assert "<html" in comparison.html()


def test_timeline_files_are_compared(tmp_path):
    paths = []
    for name in ("1f1b", "zb-h1"):
        paths.append(tmp_path / f"{name}.json")
        cf.save(cf.run(BASIC, schedule=name), paths[-1])
    assert [each.schedule for each in cf.compare(paths).reports] == ["1f1b", "zb-h1"]


def test_the_installed_command_is_this_version():
    import shutil
    import sysconfig

    installed = shutil.which("counterflow", path=sysconfig.get_path("scripts"))
    if installed is None:  # a build tree on PYTHONPATH has no scripts
        assert os.environ.get("COUNTERFLOW_REQUIRE_PACKAGE") != "1"
        pytest.skip("the package is not installed, so its command is not either")
    done = subprocess.run([installed, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"counterflow {cf.__version__}"
