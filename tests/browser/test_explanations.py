"""Why ops begin when they do: dependencies, idle time, critical path and slack, against an example
worked out by hand.

Two ranks, 1F1B, two microbatches, F of 10 ms, B of 20 ms, messages on their way for 1 ms:

    rank 0  F0 0-10  F1 10-20                 B0 42-62           B1 72-92
    rank 1           F0 11-21  B0 21-41  F1 41-51  B1 51-71
"""

import json

import pytest
from chromium import ask
from command_line import counterflow

MS = 1_000_000


@pytest.fixture(scope="session")
def small(compiled):
    return compiled("1f1b", 2, 2) / "timeline.html"


def test_idle_time_says_what_it_waits_for(small):
    facts, card = ask(
        small,
        """const facts = [[0, 30], [0, 65], [1, 5], [1, 80]].map(
          ([rank, at]) => counterflow.hover(rank, at * 1e6));
        counterflow.hover(0, 30e6);
        return [facts, document.getElementById("card").innerText];""",
    )
    steady, later, start, end = facts
    assert (steady["start_ns"], steady["duration_ns"], steady["next"]) == (20 * MS, 22 * MS, "0B0")
    assert steady["times_ns"]["op"] == 21 * MS
    assert steady["times_ns"]["transfer"] == 1 * MS
    assert "waits for 1B0 of rank 1, which ends at 41 ms, and 1 ms for 1SEND_B0" in steady["reason"]
    assert later["times_ns"]["op"] == 9 * MS
    assert later["times_ns"]["transfer"] == 1 * MS
    assert "1B1 of rank 1" in later["reason"]
    assert start["times_ns"]["start"] == 11 * MS
    assert "0F0 of rank 0" in start["reason"]
    assert end["times_ns"]["end"] == 21 * MS
    assert end["next"] is None
    assert "waits for 1B0 of rank 1" in card
    assert "22 ms" in card


def test_idle_time_adds_up_by_reason(small):
    idle = ask(small, "return counterflow.idle();")
    expected = {"start": 11 * MS, "op": 30 * MS, "transfer": 2 * MS, "other": 0, "end": 21 * MS}
    assert idle["total"] == expected
    assert sum(idle["ranks"][0].values()) == 32 * MS


@pytest.mark.parametrize("schedule", ["zb-h1", "dualpipe", "interleaved-1f1b"])
def test_reasons_and_critical_path_cover_the_report(compiled, schedule):
    folder = compiled(schedule)
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    idle, path = ask(
        folder / "timeline.html", "return [counterflow.idle(), counterflow.critical_path()];"
    )
    assert [sum(rank.values()) for rank in idle["ranks"]] == [
        rank["idle_ns"] for rank in report["per_rank"]
    ]
    assert idle["total"]["other"] == 0
    assert path[0]["from_ns"] == 0
    assert path[-1]["to_ns"] == report["makespan_ns"]
    assert all(a["to_ns"] == b["from_ns"] for a, b in zip(path, path[1:], strict=False))
    assert all(part["op"] for part in path)


def test_critical_path_is_the_longest_chain(small):
    path = ask(small, "return counterflow.critical_path();")
    ops = [part["op"] for part in path if "_" not in part["op"]]
    assert ops == ["0F0", "1F0", "1B0", "1F1", "1B1", "0B1"]
    assert sum(part["to_ns"] - part["from_ns"] for part in path) == 92 * MS
    transfers = [part for part in path if "_" in part["op"]]
    assert sum(part["to_ns"] - part["from_ns"] for part in transfers) == 2 * MS


def test_critical_path_stands_out(small):
    lanes, note, pressed = ask(
        small,
        """const button = document.getElementById("path-button");
        button.click();
        counterflow.frame();
        return [counterflow.highlighted(), document.getElementById("note").textContent,
          button.getAttribute("aria-pressed")];""",
    )
    assert lanes == [["0F0", "0B1"], ["1F0", "1B0", "1F1", "1B1"]]
    assert "compute 90 ms, transfers 2 ms" in note
    assert pressed == "true"


def test_card_tells_waits_slack_and_times(small):
    facts, card = ask(
        small,
        """const facts = [[0, 15], [0, 50], [1, 30]].map(
          ([rank, at]) => counterflow.hover(rank, at * 1e6));
        counterflow.hover(0, 50e6);
        return [facts, document.getElementById("card").innerText];""",
    )
    late_forward, backward, critical = facts
    assert late_forward["slack_ns"] == 20 * MS
    # What follows it in 10 ms has a buffer to wait for: a receive that begins 1 ms before.
    assert backward["slack_ns"] == 9 * MS
    assert critical["slack_ns"] == 0
    first, before = backward["waits_for"]
    assert (first["op"], first["rank"], first["by"]) == ("1B0", 1, "1SEND_B0")
    assert first["arrived_ns"] == 42 * MS
    assert before["op"] == "0F1"
    for part in ("0B0", "backward", "rank", "stage", "microbatch", "42 ms", "20 ms", "slack"):
        assert part in card


def test_card_of_a_transfer_tells_its_size(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        """units: {time: ms}
pipeline: {ranks: 2, microbatches: 2, schedule: 1f1b}
stages: {forward: 10, backward_input: 10, backward_weight: 10}
links: {latency: 1, bandwidth: 1GB/s, message: 5MB}
"""
    )
    counterflow("compile", config, "-o", tmp_path, "--emit", "html")
    card = ask(
        tmp_path / "timeline.html",
        """const lanes = document.getElementById("lanes");
        const box = lanes.getBoundingClientRect();
        const {from_ns: from, to_ns: to} = counterflow.view();
        const x = 104 + (12e6 - from) / (to - from) * (lanes.clientWidth - 104 - 14);
        for (let y = 30; y < 200; ++y) {
          lanes.dispatchEvent(new PointerEvent("pointermove", {bubbles: true,
            clientX: box.left + x, clientY: box.top + y}));
          const card = document.getElementById("card");
          if (!card.hidden && card.innerText.includes("SEND_F0")) return card.innerText;
        }
        return null;""",
    )
    for part in ("0SEND_F0", "send activation", "4.768 MiB", "5 ms", "send to 1"):
        assert part in card


def test_dualpipe_tells_both_directions(compiled):
    page = compiled("dualpipe") / "timeline.html"
    legend, facts, card = ask(
        page,
        """const seen = [];
        for (let at = 0; at < counterflow.makespan_ns; at += 1e6) {
          const facts = counterflow.hover(0, at);
          if (facts?.what === "op") seen.push(facts);
        }
        const second = seen.find((facts) => facts.direction.includes(1));
        counterflow.hover(0, second.start_ns + 1);
        return [document.getElementById("legend").innerText, seen[0],
          document.getElementById("card").innerText];""",
    )
    assert "first direction" in legend
    assert "second direction" in legend
    assert facts["direction"] == [0]
    assert "up the ranks" in card


def test_what_is_not_counted_for_many_ops_says_so(compiled, tmp_path):
    """200,000 ops are many for a browser; here the page is told that its eight are."""
    text = (compiled("1f1b", 2, 2) / "timeline.html").read_text(encoding="utf-8")
    assert text.count("MANY_OPS = 2e5;") == 1
    page = tmp_path / "many.html"
    page.write_text(text.replace("MANY_OPS = 2e5;", "MANY_OPS = 8;"), encoding="utf-8")
    idle, before, after, counted = ask(
        page,
        """const card = () => {
          counterflow.hover(0, 5e6);
          return document.getElementById("card").innerText;
        };
        const idle = document.getElementById("idle").textContent, before = card();
        counterflow.select(0, 15e6);
        const after = card();
        document.getElementById("details-button").click();
        return [idle, before, after, document.getElementById("idle").textContent];""",
    )
    assert (
        idle == "idle: reasons of 8 ops are counted when \N{LEFT DOUBLE QUOTATION MARK}"
        "figures\N{RIGHT DOUBLE QUOTATION MARK} opens"
    )
    assert "slack" in before and "counted once an op is selected" in before
    assert "slack" in after and "counted once" not in after
    assert counted.startswith("idle: ") and "%" in counted
