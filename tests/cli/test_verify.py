"""verify: every fault of a file, deadlock under each of the three transfer rules."""

import pytest

from harness import DATA

PUBLIC = DATA / "public"
HUNG = "interleaved_2rank_4mb_comms.csv"  # completes only where sends are buffered
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


def deadlock_rows(text):
    """The text's rows under its first line, as {semantics: what is said of it}."""
    return dict(line.split(maxsplit=1) for line in text.splitlines()[1:])


def test_text_of_a_valid_schedule(counterflow, config):
    text = counterflow("verify", config(), code=0).out
    assert "valid" in text
    assert deadlock_rows(text) == dict.fromkeys(
        ("buffered", "posted", "rendezvous"), "no deadlock"
    )


def test_text_of_a_faulty_schedule_without_deadlock(counterflow, config):
    text = "pipeline: {ranks: 4, microbatches: 8, schedule: gpipe}\n" + STAGES
    path = config(text + "memory: {limit_activations: 3}\n")
    out = counterflow("verify", path, code=1).out
    assert out.splitlines()[0].endswith(": faulty")
    assert deadlock_rows(out) == dict.fromkeys(
        ("buffered", "posted", "rendezvous"), "no deadlock"
    )


def test_a_file_without_placement_shows_the_option(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0B0\n1F0,1B0\n", encoding="utf-8")
    path = config("pipeline: {ranks: 2, microbatches: 1, schedule: 1f1b}\n" + STAGES)
    error = counterflow("verify", path, "--schedule", "order.csv", code=2).err
    shown = "--set pipeline.placement=loop"
    assert f"for example {shown}" in error
    counterflow("verify", path, "--schedule", "order.csv", *shown.split(), code=0)


@pytest.mark.parametrize("semantics", ["all", "posted", "rendezvous", "buffered"])
def test_a_published_order_that_hangs_unless_buffered(counterflow, config, semantics):
    path = config(file_config(2, 4, PUBLIC / HUNG))
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
    path = config(file_config(2, 4, PUBLIC / HUNG))
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


@pytest.mark.parametrize("stray", ["60000UNSHARD", "9UNSHARD", "9REDUCE_GRAD"])
@pytest.mark.parametrize("at", [0, 1])
def test_a_stage_without_compute_is_one_fault_and_no_larger_problem(
    counterflow, config, tmp_path, stray, at
):
    rows = ["0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"]
    rows[at] += f",{stray}"
    (tmp_path / "order.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    result = counterflow("verify", config(file_config(2, 2, "order.csv")), "--json", code=1)
    (fault,) = result.json["diagnostics"]
    assert (fault["rule"], fault["rank"], fault["index"]) == ("range", at, 4)
    assert fault["op"] == stray
    stage = stray.rstrip("UNSHARDECG_")
    assert fault["message"] == f"there is no stage {stage}; the problem has stages 0..1"


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


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ("0F0,0F1,0B0,0B1,1F0\n1B0,1F1,1B1\n", "unknown"),
        ("0F0,0F1,0B0,0B7\n1F0,1B0,1F1,1B1\n", "unknown"),
        ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n", "unknown"),
        ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1,1B1\n", "unknown"),
        ("0F0,0B0,0F1,0B1\n1F1,1F0,1B0,1B1\n", "deadlock"),
        ("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n", "ok"),
    ],
    ids=["wrong-rank", "out-of-range", "missing", "twice", "cycle", "memory"],
)
def test_semantics_of_what_cannot_be_analysed_are_unknown(
    counterflow, config, tmp_path, rows, word
):
    (tmp_path / "order.csv").write_text(rows, encoding="utf-8")
    path = config(file_config(2, 2, "order.csv"))
    limit = ("--set", "memory.limit_activations=1")
    result = counterflow("verify", path, "--json", *limit, code=1)
    assert result.json["semantics"] == dict.fromkeys(("buffered", "posted", "rendezvous"), word)
    rows = deadlock_rows(counterflow("verify", path, *limit, code=1).out)
    assert set(rows.values()) == {"no deadlock" if word == "ok" else word}


def test_many_faults_are_counted_and_the_first_twenty_shown(counterflow, config, tmp_path):
    count = 12_000
    rows = (",".join(f"{stage}F{i},{stage}B{i}" for i in range(count)) for stage in (1, 0))
    (tmp_path / "order.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = config(file_config(2, count, "order.csv"))
    error = counterflow("verify", path, code=1).err
    assert error.count("[rank]") == 20
    assert error.splitlines()[-1] == f"... and {4 * count - 20} more faults"
    result = counterflow("verify", path, "--json", code=1)
    assert len(result.json["diagnostics"]) == 4 * count
    assert len(result.err.splitlines()) == 1


def test_positions_in_a_file_with_communication_count_every_cell(counterflow, config, tmp_path):
    count = 3_000
    rows = [
        ",".join(f"0F{i},0SEND_F{i}" for i in range(count)) + ","
        + ",".join(f"0RECV_B{i},0B{i}" for i in range(count)),
        ",".join(f"1RECV_F{i},1B{i},1F{i},1SEND_B{i}" for i in range(count)),
    ]
    (tmp_path / "order.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    result = counterflow("verify", config(file_config(2, count, "order.csv")), "--json", code=1)
    order = [d for d in result.json["diagnostics"] if d["rule"] == "order"]
    assert [d["index"] for d in order] == [4 * i + 1 for i in range(count)]
    assert [d["op"] for d in order] == [f"1B{i}" for i in range(count)]


def test_a_file_without_backward_is_said_to_be_forward_only(counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text("0F0,0F1\n1F0,1F1\n", encoding="utf-8")
    path = config(file_config(2, 2, "order.csv"))
    assert "forward-only" in counterflow("verify", path, code=0).err
    assert "forward-only" in counterflow("verify", path, "--json", code=0).json["warnings"][0]
    assert "forward-only" in counterflow("simulate", path, "--json", code=0).json["warnings"][0]
    bare = path.read_text(encoding="utf-8").replace(STAGES, "stages: {forward: 1ms}\n")
    assert "forward-only" not in counterflow("verify", config(bare), code=0).err


@pytest.mark.parametrize(
    ("split", "rows", "first"),
    [
        ("true", "0F0,0I0,0W0\n1F0,1B0\n", "1B0"),
        ("false", "0F0,0B0\n1F0,1I0,1W0\n", "1I0"),
        ("true", "0F0,0I0,0W0\n1F0,1I0,1W0\n", None),
        ("false", "0F0,0B0\n1F0,1B0\n", None),
        ("auto", "0F0,0I0,0W0\n1F0,1B0\n", None),
    ],
)
def test_a_file_must_cut_the_backward_as_the_config_asks(
    counterflow, config, tmp_path, split, rows, first
):
    (tmp_path / "order.csv").write_text(rows, encoding="utf-8")
    path = config(file_config(2, 1, "order.csv", more=f", split_backward: {split}"))
    result = counterflow("verify", path, code=0 if first is None else 2)
    if first is not None:
        assert "config.yaml:1" in result.err
        assert f"split_backward: {split}" in result.err
        assert f"rank 1, position 1, {first}" in result.err


def test_split_backward_false_leaves_a_frozen_stage_its_input_gradient(
    counterflow, config, tmp_path
):
    (tmp_path / "order.csv").write_text("0F0,0B0\n1F0,1I0\n", encoding="utf-8")
    path = config(file_config(2, 1, "order.csv", more=", split_backward: false"))
    counterflow("verify", path, "--set", "stages.frozen=[1]", code=0)


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


def test_repair_moves_transfers_and_nothing_else(counterflow, config):
    path = config(file_config(2, 4, PUBLIC / HUNG))
    broken = PUBLIC / HUNG
    repaired = counterflow("verify", path, "--schedule", broken, "--repair", code=0)
    mended = path.parent / "mended.csv"
    mended.write_text(repaired.out, encoding="utf-8")
    counterflow("verify", path, "--schedule", mended, "--semantics", "all", code=0)

    def computes(text):
        return [
            [cell for cell in line.split(",") if "SEND" not in cell and "RECV" not in cell]
            for line in text.split()
        ]

    assert computes(repaired.out) == computes(broken.read_text(encoding="utf-8"))
    report = counterflow("verify", path, "--schedule", broken, "--repair", "--json", code=0).json
    assert report["ok"] is True
    assert set(report["semantics"].values()) == {"ok"}
    assert report["repaired"] == repaired.out


def test_repair_refuses_what_moving_transfers_cannot_mend(counterflow, config, tmp_path):
    path = config(file_config(2, 4, PUBLIC / HUNG))
    file = tmp_path / "missing.csv"
    text = (PUBLIC / HUNG).read_text(encoding="utf-8")
    file.write_text(text.replace("0SEND_F1,", "", 1), encoding="utf-8")
    result = counterflow("verify", path, "--schedule", file, "--repair", code=1)
    assert result.out == ""
    assert "0SEND_F1" in result.err and "is missing" in result.err
    result = counterflow("verify", path, "--schedule", "interleaved-1f1b", "--repair", code=2)
    assert "no communication to repair" in result.err


def test_stages_never_resharded_are_advice_not_faults(counterflow, config):
    """H56: torchtitan's file reshards stages 2 and 3 only."""
    path = config(file_config(2, 4, PUBLIC / HUNG))
    result = counterflow("verify", path, "--semantics", "buffered", "--json", code=0)
    assert result.json["warnings"] == [
        "rank 0: stage 0 unsharded, never resharded",
        "rank 1: stage 1 unsharded, never resharded",
    ]


def test_a_reduction_before_the_last_gradient_is_a_fault(counterflow, config, tmp_path):
    """H40: also in a file without communication."""
    (tmp_path / "order.csv").write_text("0F0,0I0,0REDUCE_GRAD,0W0\n", encoding="utf-8")
    path = config(file_config(1, 1, "order.csv"))
    result = counterflow("verify", path, "--json", code=1)
    (fault,) = result.json["diagnostics"]
    assert (fault["rule"], fault["index"], fault["op"]) == ("reduction", 2, "0REDUCE_GRAD")
    assert "stands before 0W0" in fault["message"]


def test_a_file_has_one_channel_each_way_between_two_ranks(counterflow, config, tmp_path):
    path = config(
        "pipeline: {schedule: interleaved-1f1b, ranks: 2, microbatches: 2, placement: loop}\n"
        "stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}\n"
    )
    file = tmp_path / "order.csv"
    # Rank 1 sends an activation, then a gradient; rank 0 takes them the other way round.
    file.write_text(
        "0F0,0SEND_F0,2RECV_F0,2F0,2SEND_F0,0F1,0SEND_F1,2RECV_B0,2RECV_F1,2B0,2SEND_B0,2F1,"
        "2SEND_F1,2RECV_B1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1SEND_F0,3RECV_F0,3F0,3B0,1RECV_F1,1F1,1SEND_F1,3SEND_B0,1RECV_B0,3RECV_F1,"
        "3F1,3B1,3SEND_B1,1RECV_B1,1B0,1SEND_B0,1B1,1SEND_B1\n",
        encoding="utf-8",
    )
    for semantics in ["buffered", "posted", "all"]:
        result = counterflow(
            "verify", path, "--schedule", file, "--semantics", semantics, code=1
        )
        assert "[crossing] is message 1 from rank 1 (position 8, 1SEND_F1)" in result.err
    repaired = counterflow("verify", path, "--schedule", file, "--repair", code=0)
    file.write_text(repaired.out, encoding="utf-8")
    counterflow("verify", path, "--schedule", file, code=0)
