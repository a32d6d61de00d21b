"""The page of compare, and timeline.svg."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from chromium import ask
from command_line import counterflow

SVG = "{http://www.w3.org/2000/svg}"


def test_compare_shows_every_run_and_its_figures(compared):
    runs, rows, ranks = ask(
        compared,
        """const rows = [...document.querySelectorAll("#figures tr")].map((row) => row.innerText);
        return [counterflow.runs, rows, counterflow.ranks];""",
    )
    assert runs == ["1f1b", "zb-h1"]
    assert ranks == 4
    assert "makespan" in rows[0]
    assert rows[1].startswith("1f1b")
    assert rows[2].startswith("zb-h1")


def test_compare_deltas_are_those_of_the_reports(compiled, tmp_path):
    """Two timeline.json, as of a prediction and a measurement."""
    folders = [compiled("1f1b"), compiled("zb-h1")]
    counterflow("compare", *(f / "timeline.json" for f in folders), "-o", tmp_path / "two.html")
    reports = [json.loads((f / "report.json").read_text(encoding="utf-8")) for f in folders]
    rows, head = ask(
        tmp_path / "two.html",
        """document.getElementById("details-button").click();
        const number = (cell, key) => Number(cell.dataset[key]);
        const rows = [...document.querySelectorAll("#details-table [data-figure]")].map((row) =>
          [row.dataset.figure, {
            values: [...row.querySelectorAll("[data-value]")].map((cell) => number(cell, "value")),
            delta: number(row.querySelector("[data-delta]"), "delta"),
            text: row.querySelector("[data-delta]").textContent,
          }]);
        return [Object.fromEntries(rows), document.getElementById("figures").innerText];""",
    )
    for key in ("makespan_ns", "bubble_fraction", "span_bubble_fraction", "lower_bound_ns", "gap"):
        assert rows[key]["values"] == pytest.approx([report[key] for report in reports])
        assert rows[key]["delta"] == pytest.approx(reports[1][key] - reports[0][key])
    for key in ("peak_activations", "peak_memory_bytes", "comm_exposed_ns"):
        most = [max(rank[key] for rank in report["per_rank"]) for report in reports]
        assert rows[key]["values"] == most
    for reason in ("op", "transfer"):
        assert rows[f"idle.{reason}"]["values"][1] >= 0
    idle = [
        sum(row["values"][run] for key, row in rows.items() if key.startswith("idle."))
        for run in (0, 1)
    ]
    assert idle == [sum(rank["idle_ns"] for rank in report["per_rank"]) for report in reports]
    assert rows["mean.F"]["values"] == [10e6, 10e6]
    assert rows["mean.F"]["text"] == "same"
    saved = 100 * (1 - reports[1]["makespan_ns"] / reports[0]["makespan_ns"])
    assert f"\u2212{saved:.1f} %" in rows["makespan_ns"]["text"]
    assert f"\u2212{saved:.1f} %" in head


def test_compare_says_how_the_same_op_went_elsewhere(compared):
    card = ask(
        compared,
        """counterflow.hover(4, 5e6);
        return document.getElementById("card").innerText;""",
    )
    assert "in 1f1b" in card
    assert "starts 0, lasts 0" in card


def test_compare_reaches_the_lanes_of_every_run(compared):
    ops = ask(compared, "return [0, 4].map((lane) => counterflow.hover(lane, 5e6).op);")
    assert ops == ["0F0", "0F0"]


def test_compare_aligns_its_runs_on_the_longest(compared):
    view, makespan = ask(compared, "return [counterflow.view(), counterflow.makespan_ns];")
    assert view["from_ns"] == 0
    assert view["to_ns"] >= makespan


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "dualpipe", "zbv"])
def test_svg_is_well_formed_and_inside_its_frame(compiled, schedule):
    root = ElementTree.parse(compiled(schedule) / "timeline.svg").getroot()
    assert root.tag == SVG + "svg"
    width, height = float(root.get("width")), float(root.get("height"))
    shapes = root.findall(SVG + "rect")
    assert len(shapes) > 4 * 8 * 2
    for shape in shapes:
        assert float(shape.get("x")) + float(shape.get("width")) <= width + 0.1
        assert float(shape.get("y")) + float(shape.get("height")) <= height + 0.1
    texts = [text.text for text in root.findall(SVG + "text")]
    assert {f"rank {r}" for r in range(4)} <= set(texts)
    assert any(text.startswith("makespan") for text in texts)
