"""compile: which files, what is in them, and that they come all or not at all."""

import csv
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest

from harness import BASIC, TIMEOUT_S, binary

FILES = [
    "graph.dot", "program.csv", "program.json", "report.json", "schedule.csv", "timeline.html",
    "timeline.json", "timeline.svg", "trace.json",
]

FAULTY = "0F0,0B0,0F1\n1F0,1F1,1B0,1B1\n"
FILE_CONFIG = """\
pipeline: {ranks: 2, microbatches: 2, schedule: order.csv, placement: loop}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_every_file_and_prints_a_summary(counterflow, config, tmp_path):
    result = counterflow("compile", config(), "-o", "a/b/out", code=0)
    assert names(tmp_path / "a" / "b" / "out") == FILES
    assert "makespan" in result.out


def test_files_are_what_they_say(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "out", code=0)
    out = tmp_path / "out"
    for name in ("program.json", "report.json", "timeline.json", "trace.json"):
        assert json.loads((out / name).read_text(encoding="utf-8"))
    rows = list(csv.reader((out / "schedule.csv").open(encoding="utf-8")))
    assert rows[0][:5] == ["0F0", "0F1", "0F2", "0F3", "0B0"]
    assert len(rows) == 4
    assert "SEND_F" in (out / "program.csv").read_text(encoding="utf-8")
    assert ElementTree.parse(out / "timeline.svg").getroot().tag.endswith("svg")
    assert "<html" in (out / "timeline.html").read_text(encoding="utf-8")[:500].lower()
    assert (out / "graph.dot").read_text(encoding="utf-8").startswith("digraph")


def test_json_on_stdout_is_report_json(counterflow, config, tmp_path):
    result = counterflow("compile", config(), "-o", "out", "--json", code=0)
    assert result.out == (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    simulated = counterflow("simulate", config(), "--json", code=0)
    assert simulated.out == result.out


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        ("report.json", ["report.json"]),
        ("report.json,schedule.csv", ["report.json", "schedule.csv"]),
        ("csv", ["program.csv", "schedule.csv"]),
        ("timeline", ["timeline.html", "timeline.json", "timeline.svg"]),
        ("svg,report", ["report.json", "timeline.svg"]),
    ],
)
def test_emit_chooses(counterflow, config, tmp_path, emit, expected):
    counterflow("compile", config(), "-o", "out", "--emit", emit, code=0)
    assert names(tmp_path / "out") == expected


def test_graph_svg_is_drawn_by_graphviz_on_request_only(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "all", code=0)
    assert "graph.svg" not in names(tmp_path / "all")
    wanted = ("compile", config(), "-o", "out", "--emit", "graph.svg")
    if shutil.which("dot") is None:
        pytest.skip("Graphviz is not installed: apt-get install graphviz")
    counterflow(*wanted, code=0)
    root = ElementTree.fromstring((tmp_path / "out" / "graph.svg").read_text(encoding="utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


def test_graph_svg_without_graphviz_names_the_package(counterflow, config, tmp_path):
    result = counterflow("compile", config(), "-o", "out", "--emit", "graph.svg",
                         env={"PATH": str(tmp_path)}, code=4)
    assert "apt-get install graphviz" in result.err
    assert not (tmp_path / "out").exists()


def test_emit_of_an_unknown_file_names_the_nearest(counterflow, config, tmp_path):
    result = counterflow("compile", config(), "-o", "out", "--emit", "report.jsn", code=2)
    assert "report.json" in result.err
    assert not (tmp_path / "out").exists()


def test_output_folder_is_required(counterflow, config):
    assert "--output" in counterflow("compile", config(), code=2).err


def test_same_input_same_bytes(counterflow, config, tmp_path):
    path = config()
    counterflow("compile", path, "-o", "one", code=0)
    counterflow("compile", path, "-o", "two", code=0)
    for name in FILES:
        one, two = ((tmp_path / folder / name).read_bytes() for folder in ("one", "two"))
        assert hashlib.sha256(one).digest() == hashlib.sha256(two).digest(), name


def test_the_folder_of_the_config_leaves_no_trace(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "one", code=0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(tmp_path / "config.yaml", elsewhere)
    counterflow("compile", "config.yaml", "-o", "../two", cwd=elsewhere, code=0)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_compiling_again_replaces_and_keeps_what_is_not_ours(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "out", code=0)
    before = (tmp_path / "out" / "report.json").read_bytes()
    (tmp_path / "out" / "notes.txt").write_text("mine", encoding="utf-8")
    counterflow("compile", config(), "-o", "out", "--microbatches", 9, code=0)
    assert names(tmp_path / "out") == sorted([*FILES, "notes.txt"])
    assert (tmp_path / "out" / "report.json").read_bytes() != before


def test_faults_write_nothing(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text(FAULTY, encoding="utf-8")
    result = counterflow("compile", config(FILE_CONFIG), "-o", "out", "--json", code=1)
    assert result.out == ""
    assert "0B1" in result.err
    assert not (tmp_path / "out").exists()


def test_faults_leave_an_earlier_result_alone(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "out", code=0)
    before = {name: (tmp_path / "out" / name).read_bytes() for name in FILES}
    (tmp_path / "order.csv").write_text(FAULTY, encoding="utf-8")
    counterflow("compile", config(FILE_CONFIG), "-o", "out", code=1)
    assert {name: (tmp_path / "out" / name).read_bytes() for name in FILES} == before
    assert names(tmp_path / "out") == FILES


def test_a_target_that_is_a_folder_stops_all_files(counterflow, config, tmp_path):
    (tmp_path / "out" / "trace.json").mkdir(parents=True)
    result = counterflow("compile", config(), "-o", "out", code=4)
    assert "trace.json" in result.err
    assert names(tmp_path / "out") == ["trace.json"]


@pytest.mark.parametrize("name", ["schedule.csv", "program.json", "graph.dot"])
def test_a_target_that_is_a_folder_leaves_an_earlier_result_alone(
    counterflow, config, tmp_path, name
):
    out = tmp_path / "out"
    counterflow("compile", config(), "-o", "out", code=0)
    (out / name).unlink()
    (out / name).mkdir()
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    counterflow("compile", config(), "-o", "out", "--microbatches", 9, code=4)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    assert names(out) == FILES


def test_a_target_that_becomes_a_folder_meanwhile_stops_all_files(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "out", code=0)
    before = (tmp_path / "out" / "schedule.csv").read_bytes()
    # Graphviz runs between the making of the files and their renaming.
    dot = tmp_path / "bin" / "dot"
    dot.parent.mkdir()
    dot.write_text(
        f"#!/bin/sh\ncat >/dev/null\nmkdir -p '{tmp_path}/out/graph.svg'\necho '<svg/>'\n",
        encoding="utf-8",
    )
    dot.chmod(0o755)
    result = counterflow(
        "compile", config(), "-o", "out", "--microbatches", 9, "--emit", "schedule.csv,graph.svg",
        env={"PATH": f"{dot.parent}:/usr/bin:/bin"}, code=4,
    )
    assert "graph.svg" in result.err
    assert (tmp_path / "out" / "schedule.csv").read_bytes() == before
    assert names(tmp_path / "out") == sorted([*FILES, "graph.svg"])


def test_its_own_schedule_csv_compiles_to_the_same_program(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "one", code=0)
    path = config(BASIC.replace("1f1b", "one/schedule.csv, placement: loop"), "again.yaml")
    counterflow("compile", path, "-o", "two", code=0)
    for name in ("schedule.csv", "program.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_verbose_says_what_was_written(counterflow, config):
    result = counterflow("compile", config(), "-o", "out", "-v", code=0)
    assert "out/schedule.csv" in result.err


# Stands in for Graphviz, which draws the last file of all: says that it runs, and goes on until killed.
STUCK_DOT = """\
#!/bin/sh
echo $$ > "$STARTED.part" && mv "$STARTED.part" "$STARTED"
exec sleep 1000
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("earlier", [False, True], ids=["new", "again"])
def test_a_signal_leaves_nothing_half_written(counterflow, config, tmp_path, name, earlier):
    tools = tmp_path / "tools"
    tools.mkdir()
    dot = tools / "dot"
    dot.write_text(STUCK_DOT, encoding="utf-8")
    dot.chmod(0o755)
    out = tmp_path / "out"
    wanted = ("compile", config(), "-o", out / "deep", "--emit")
    if earlier:
        counterflow(*wanted, "report.json", code=0)
    before = sorted(path.relative_to(out) for path in out.rglob("*"))
    started = tmp_path / "started"
    process = subprocess.Popen(
        [binary(), *map(str, wanted), "report.json,program.json,graph.svg"],
        env={"PATH": f"{tools}:{os.environ['PATH']}", "STARTED": str(started)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        # Whoever runs the tests may ignore the signal, and children inherit that.
        preexec_fn=lambda: signal.signal(getattr(signal, name), signal.SIG_DFL),
    )
    deadline = time.monotonic() + TIMEOUT_S
    while not started.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, "dot was never called"
        time.sleep(0.01)
    try:
        hidden = [path for path in (out / "deep").iterdir() if path.name.startswith(".")]
        assert len(hidden) == 2
        process.send_signal(getattr(signal, name))
        assert process.wait(TIMEOUT_S) == -getattr(signal, name)
    finally:
        os.kill(int(started.read_text(encoding="utf-8")), signal.SIGKILL)
        process.stderr.close()
    assert sorted(path.relative_to(out) for path in out.rglob("*")) == before
    assert out.exists() == earlier
