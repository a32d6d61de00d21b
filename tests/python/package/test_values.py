"""Values: views without copies that keep their owners, copies, notebook forms, threads."""

import copy
import gc
import html.parser
import pickle
import sys
import threading
import time

import numpy as np
import pytest
from package import BASIC, EXAMPLES, load

cf = load()


@pytest.fixture(scope="module")
def run():
    return cf.run(EXAMPLES / "dualpipe_p8_m20.yaml")


def arrays_of(run):
    part = run.program.rank(1)
    return {
        "intervals": run.timeline.intervals(1),
        "memory": run.timeline.memory(1),
        "kernels": run.program.kernels,
        **{name: getattr(part, name) for name in ("instructions", "waits", "transfers", "slots")},
    }


def test_arrays_are_read_only_views(run):
    again = arrays_of(run)
    for name, array in arrays_of(run).items():
        assert not array.flags.owndata or array.size == 0, name
        assert not array.flags.writeable, name
        assert array.size == 0 or np.shares_memory(array, again[name]), name
        if array.size:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]


def test_arrays_outlive_their_owners():
    run = cf.run(BASIC)
    arrays = arrays_of(run)
    order = cf.plan(BASIC).schedule.array(2)
    costs = cf.plan(BASIC).problem.costs
    expected = {name: array.copy() for name, array in arrays.items()}
    del run
    for _ in range(20):
        gc.collect()
        cf.run(BASIC, microbatches=9)  # takes what was freed
    for name, array in arrays.items():
        assert np.array_equal(array, expected[name]), name
    assert order["first"]["microbatch"].tolist() == [0, 1, 0, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 6, 7]
    assert costs["backward_weight_ns"].tolist() == [1_000_000] * 4


def test_a_part_keeps_its_program():
    part = cf.run(BASIC).program.rank(3)
    gc.collect()
    assert part.streams[0].role == "compute"
    assert len(part.instructions) == len(part)


def test_columns_agree_with_the_report(run):
    table = cf.columns(run.timeline)
    assert {len(column) for column in table.values()} == {len(run.program)}
    compute = table["kind"] == "run"
    begin, end = table["begin_ns"][compute], table["end_ns"][compute]
    assert end.max() - begin.min() == run.report.makespan_ns
    for rank, figures in enumerate(run.report.per_rank):
        own = table["rank"][compute] == rank
        assert (end - begin)[own].sum() == figures.busy_ns
        held = run.timeline.memory(rank)["held_bytes"]
        assert held.max() == figures.peak_memory_bytes


def test_every_op_of_the_program_is_the_schedules():
    plan = cf.plan(BASIC, schedule="zb-h1")
    table = cf.columns(plan.run().timeline)
    for rank in range(4):
        own = (table["rank"] == rank) & (table["kind"] == "run")
        names = ["op", "stage", "microbatch"]
        ran = list(zip(*(table[name][own].tolist() for name in names), strict=True))
        slots = [slot.first for slot in plan.schedule.slots(rank)]
        assert ran == [(op.kind, op.stage, op.microbatch) for op in slots]


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_values_are_copied_and_pickled(run, duplicate):
    plan = cf.plan(EXAMPLES / "dualpipe_p8_m20.yaml")
    values = [
        cf.Op("F", 3, 2, 1),
        cf.Slot(cf.Op("F", 0, 1), cf.Op("B", 3, 0)),
        cf.Slot(cf.Op("W", 0, 1)),
        cf.ExecutionModel.preset("nccl"),
        plan.schedule,
        run.program,
        run.report,
    ]
    for value in values:
        assert duplicate(value) == value, value
    assert duplicate(cf.ScheduleFile.from_csv("0F0,0B0\n")).to_csv() == "0F0,0B0\n"


def test_equal_values_hash_alike():
    assert len({cf.Op("F", 0, 1), cf.Op("F", 0, 1), cf.Op("B", 0, 1)}) == 2
    assert len({cf.ExecutionModel.preset("gloo"), cf.ExecutionModel.preset("gloo")}) == 1
    assert cf.Op("F", 0, 1) != "0F1"


def test_text_and_ops_make_the_same_schedule():
    rows = [["0F0", ("0F1", "0B0"), "0B1"], ["1F0", "1I0", "1W0"]]
    ops = [
        [cf.Op("F", 0), cf.Slot(cf.Op("F", 0, 1), cf.Op("B", 0)), cf.Op("B", 0, 1)],
        [cf.Op("F", 1), cf.Op("I", 1), cf.Op("W", 1)],
    ]
    schedule = cf.Schedule("s", rows)
    assert schedule == cf.Schedule("s", ops)
    assert schedule == cf.Schedule.from_arrays("s", [schedule.array(0), schedule.array(1)])
    assert str(schedule.slots(0)[1]) == "(0F1;0B0)OVERLAP_F_B"


def test_files_read_back(tmp_path, run):
    cf.save(run.program, tmp_path / "program.json")
    cf.save(run.report, tmp_path / "report.json")
    cf.save(cf.ScheduleFile.from_csv(run.program.to_csv()), tmp_path / "program.csv")
    assert cf.load_program(tmp_path / "program.json") == run.program
    assert cf.load_report(tmp_path / "report.json") == run.report
    file = cf.load_schedule(tmp_path / "program.csv")
    assert file.has_communication
    assert file.compute().to_csv() == cf.plan(EXAMPLES / "dualpipe_p8_m20.yaml").schedule.to_csv()


def test_a_file_that_deadlocks_is_repaired():
    plan = cf.plan(BASIC, ranks=2, microbatches=2, schedule="gpipe")
    rows = plan.compile().to_csv().splitlines()
    cells = rows[0].split(",")
    last = max(i for i, cell in enumerate(cells) if "SEND" in cell)
    cells.insert(len(cells) - 1, cells.pop(last))
    file = cf.ScheduleFile.from_csv("\n".join([",".join(cells), *rows[1:]]) + "\n", "moved.csv")
    verdict = cf.verify(plan.problem, file)
    assert "deadlock" in verdict.semantics.values()
    assert cf.verify(plan.problem, cf.repair(plan.problem, file)).ok


class Balance(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_everything_shows_itself_in_a_notebook(run):
    plan = cf.plan(BASIC)
    faulty = cf.Schedule("<b>", [["0F0"]] * 4)
    values = [
        plan,
        plan.problem,
        plan.schedule,
        plan.verify(),
        cf.verify(plan.problem, faulty),
        run,
        run.timeline,
        run.program,
        run.report,
        cf.compare([run]),
        cf.family("zbv"),
    ]
    for value in values:
        text = value._repr_html_()
        balance = Balance()
        balance.feed(text)
        assert balance.open == [], value
        assert "<table" in text or "<svg" in text or text.startswith("<p>"), value
    assert "<b>" not in faulty._repr_html_()
    assert "<svg" in run.timeline._repr_html_()


def test_repr_names_what_counts(run):
    assert repr(cf.Op("F", 3, 2, 1)) == "Op('~3F2')"
    assert repr(cf.plan(BASIC).problem) == "<Problem: 4 ranks, 4 stages (loop), 8 microbatches>"
    assert "dualpipe" in repr(run)


def test_other_threads_run_while_a_schedule_compiles():
    """A counting thread gets on while the compiler works: the interpreter is not locked."""
    plan = cf.plan(BASIC, schedule="zb-h1", ranks=32, microbatches=512)
    done = threading.Event()
    inside = []

    def work():
        inside.append(time.perf_counter())
        plan.run()
        inside.append(time.perf_counter())
        done.set()

    ticks = []
    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    thread.start()
    while not done.is_set():
        ticks.append(time.perf_counter())
        time.sleep(0)
    thread.join()
    begin, end = inside
    assert sum(begin < tick < end for tick in ticks) > 3, (end - begin, interval)


def test_threads_share_values():
    plan = cf.plan(BASIC, schedule="zb-h1")
    expected = plan.run().report
    results = []
    threads = [
        threading.Thread(target=lambda: results.extend(plan.run().report for _ in range(5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    assert all(each == expected for each in results)
