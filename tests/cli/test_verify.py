"""verify: every fault of a file, deadlock under each of the three transfer rules."""

import pytest

from harness import DATA

PUBLIC = DATA / "public"
STAGES = "stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}\n"


def file_config(ranks, microbatches, path, placement="loop", more=""):
    return (
        f"pipeline: {{ranks: {ranks}, microbatches: {microbatches}, schedule: {path}, "
        f"placement: {placement}{more}}}\n" + STAGES
    )


def test_json_of_a_valid_schedule(counterflow, config):
    result = counterflow("verify", config(), "--json", code=0)
    assert result.json == {
        "ok": True,
        "diagnostics": [],
        "semantics": {"buffered": "ok", "posted": "ok", "rendezvous": "ok"},
    }
    assert result.err == ""


def test_text_of_a_valid_schedule(counterflow, config):
    text = counterflow("verify", config(), code=0).out
    assert "valid" in text
    for name in ("buffered", "posted", "rendezvous"):
        assert name in text


@pytest.mark.parametrize("semantics", ["all", "posted", "rendezvous", "buffered"])
def test_a_published_order_that_hangs_unless_buffered(counterflow, config, semantics):
    path = config(file_config(2, 4, PUBLIC / "interleaved_2rank_4mb_comms.csv"))
    code = 0 if semantics == "buffered" else 1
    result = counterflow("verify", path, "--semantics", semantics, "--json", code=code)
    assert result.json["ok"] == (code == 0)
    assert result.json["semantics"] == {
        "buffered": "ok", "posted": "deadlock", "rendezvous": "deadlock",
    }
    if code == 1:
        deadlocks = [d for d in result.json["diagnostics"] if d["rule"] == "deadlock"]
        assert deadlocks
        text = " ".join(d["message"] for d in deadlocks)
        assert "0SEND_F1" in text
        assert "1SEND_F0" in text


def test_simulate_and_compile_of_that_order(counterflow, config, tmp_path):
    path = config(file_config(2, 4, PUBLIC / "interleaved_2rank_4mb_comms.csv"))
    assert "0SEND_F1" in counterflow("simulate", path, code=1).err
    counterflow("simulate", path, "--semantics", "buffered", code=0)
    counterflow("compile", path, "-o", "out", "--semantics", "buffered", code=1)
    assert not (tmp_path / "out").exists()


def test_an_older_order_that_never_hangs(counterflow, config):
    path = config(file_config(2, 8, PUBLIC / "zb1p_2rank_2stagep_comms.csv"))
    result = counterflow("verify", path, "--json")
    assert result.json["semantics"] == {"buffered": "ok", "posted": "ok", "rendezvous": "ok"}


@pytest.mark.parametrize(
    ("name", "ranks", "microbatches", "placement", "makespan_ms"),
    [("zb1p_2rank_2stagep_compute", 2, 8, "loop", 49)],
)
def test_compute_only_files(counterflow, config, name, ranks, microbatches, placement, makespan_ms):
    path = config(file_config(ranks, microbatches, PUBLIC / f"{name}.csv", placement))
    assert counterflow("verify", path, "--json", code=0).json["ok"]
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["makespan_ns"] == makespan_ms * 1_000_000


def test_dualpipev_file(counterflow, config):
    path = config(file_config(4, 10, PUBLIC / "dualpipev_4rank_10mb.csv", "v"))
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["makespan_ns"] == 66_000_000
    assert [rank["idle_ns"] for rank in report["per_rank"]] == [6_000_000] * 4
    assert [rank["peak_activations"] for rank in report["per_rank"]] == [9] * 4


@pytest.mark.parametrize(
    ("rows", "rule_words"),
    [
        ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n", "1B1"),
        ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1B1\n", "1B1"),
        ("0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n", "1B0"),
        ("0F0,0F1,0B0,0B1,1F0\n1B0,1F1,1B1\n", "1F0"),
        ("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n", "0B0"),
    ],
    ids=["missing", "twice", "backward-first", "wrong-rank", "cycle"],
)
def test_each_fault_has_rank_position_and_op(counterflow, config, tmp_path, rows, rule_words):
    (tmp_path / "order.csv").write_text(rows, encoding="utf-8")
    path = config(file_config(2, 2, "order.csv"))
    result = counterflow("verify", path, "--json", code=1)
    assert result.json["ok"] is False
    assert result.json["diagnostics"]
    for fault in result.json["diagnostics"]:
        assert set(fault) == {"rule", "rank", "index", "op", "message"}
        assert fault["rule"]
        assert fault["message"]
    mentioned = " ".join(f"{d['op']} {d['message']}" for d in result.json["diagnostics"])
    assert rule_words in mentioned
    text = counterflow("verify", path, code=1)
    assert "faulty" in text.out
    assert rule_words in text.err


def test_a_marker_stands_under_the_faulty_cell(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n", encoding="utf-8")
    lines = counterflow("verify", config(file_config(2, 2, "order.csv")), code=1).err.splitlines()
    marked = [(a, b) for a, b in zip(lines, lines[1:]) if set(b.strip()) == {"^"}]
    assert marked
    for row, marker in marked:
        first, last = marker.index("^"), marker.rindex("^")
        assert "," not in row[first : last + 1]
        assert row[first : last + 1].strip() == row[first : last + 1]


def test_tails_that_cross_under_every_swap(counterflow, config, tmp_path):
    (tmp_path / "tails.csv").write_text(
        "2SEND_F1,0F2,0SEND_F2,2RECV_B0,2B0\n3RECV_F1,3SEND_B0,3F1,3B1,1RECV_F2,3SEND_B1\n",
        encoding="utf-8",
    )
    path = config(file_config(2, 3, "tails.csv", more=", chunks: 2"))
    result = counterflow("verify", path, "--json", code=1)
    deadlocks = " ".join(d["message"] for d in result.json["diagnostics"] if d["rule"] == "deadlock")
    assert "0SEND_F2" in deadlocks
    assert "3SEND_B0" in deadlocks


def test_a_receive_without_sender_is_said_not_waited_for(counterflow, config, tmp_path):
    (tmp_path / "forward.csv").write_text("\n1RECV_F0,1F0\n", encoding="utf-8")
    result = counterflow("verify", config(file_config(2, 1, "forward.csv")), "--json", code=1)
    messages = " ".join(d["message"] for d in result.json["diagnostics"])
    assert "1RECV_F0" in messages or any(
        d["op"] == "1RECV_F0" for d in result.json["diagnostics"]
    )


@pytest.mark.parametrize("where", ["config", "option"])
def test_paths_count_from_the_config_or_from_here(counterflow, config, tmp_path, where):
    folder = tmp_path / "sub"
    folder.mkdir()
    order = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
    path = config(file_config(2, 2, "order.csv"), "sub/config.yaml")
    if where == "config":
        (folder / "order.csv").write_text(order, encoding="utf-8")
        counterflow("verify", path, code=0)
    else:
        (tmp_path / "order.csv").write_text(order, encoding="utf-8")
        counterflow("verify", path, "--schedule", "order.csv", code=0)
        assert "sub/order.csv" in counterflow("verify", path, code=2).err


def test_a_file_needs_a_placement(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0B0\n", encoding="utf-8")
    text = "pipeline: {ranks: 1, microbatches: 1, schedule: order.csv}\n" + STAGES
    assert "placement" in counterflow("verify", config(text), code=2).err


def test_rows_and_ranks_must_agree(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0B0\n", encoding="utf-8")
    error = counterflow("verify", config(file_config(2, 1, "order.csv")), code=2).err
    assert "1 row" in error
    assert "is 2" in error


@pytest.mark.parametrize("text", ["0F\n1F0\n", "0Q1\n1F0\n", "0F0x\n1F0\n", "0F99999999999\n1F0\n"])
def test_a_bad_cell_is_named_with_its_place(counterflow, config, tmp_path, text):
    (tmp_path / "order.csv").write_text(text, encoding="utf-8")
    assert "order.csv:1" in counterflow("verify", config(file_config(2, 1, "order.csv")), code=2).err


def test_a_folder_is_no_schedule(counterflow, config, tmp_path):
    (tmp_path / "order.csv").mkdir()
    assert "directory" in counterflow("verify", config(file_config(2, 1, "order.csv")), code=2).err
