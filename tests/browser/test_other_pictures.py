"""The page of compare, and timeline.svg."""

import xml.etree.ElementTree as ElementTree

import pytest
from chromium import ask

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
