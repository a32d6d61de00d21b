"""What leaves the page: links, pictures, paper."""

import json
import struct
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from chromium import ask, browser

SVG = "{http://www.w3.org/2000/svg}"

STATE = """
const state = () => ({view: counterflow.view(), selected: counterflow.selected(),
  query: document.getElementById("search").value,
  pressed: [...document.querySelectorAll("[aria-pressed]")].map(
    (each) => each.getAttribute("aria-pressed"))});
"""


def test_link_opens_the_same_again(compiled):
    page = compiled("zb-h1") / "timeline.html"
    link, before = ask(
        page,
        STATE
        + """counterflow.show(40e6, 120e6);
        counterflow.select(1, 75e6);
        counterflow.search("F m2");
        document.querySelector('[data-kind="W"]').click();
        document.getElementById("memory-button").click();
        document.getElementById("theme-button").click();
        counterflow.frame();
        return [counterflow.link(), state()];""",
    )
    after, again, theme = ask(
        page,
        STATE
        + """counterflow.frame();
        return [state(), counterflow.link(), document.documentElement.dataset.theme];""",
        fragment="#" + link,
    )
    assert before["selected"] is not None
    assert after == before
    assert again == link
    assert theme in ("dark", "light")


def test_fresh_page_has_no_link(compiled):
    assert ask(compiled("zb-h1") / "timeline.html", "return counterflow.link();") == ""


def test_broken_links_open_the_whole(compiled):
    whole, view, selected = ask(
        compiled("zb-h1") / "timeline.html",
        "return [counterflow.makespan_ns, counterflow.view(), counterflow.selected()];",
        fragment="#from=x&to=&op=9.9.9&hide=Q&off=nothing&q=%ff",
    )
    assert view["from_ns"] == 0
    assert view["to_ns"] >= whole
    assert selected is None


def test_svg_is_well_formed_and_shows_all_ranks(compiled):
    for schedule, ranks in (("zb-h1", 4), ("1f1b", 64)):
        folder = compiled(schedule, ranks, 64 if ranks == 64 else 8)
        script = "counterflow.select(0, 5e6); return counterflow.svg();"
        text = ask(folder / "timeline.html", script)
        root = ElementTree.fromstring(text)
        assert root.tag == SVG + "svg"
        texts = {each.text for each in root.iter(SVG + "text")}
        assert {f"rank {rank}" for rank in range(ranks)} <= texts
        assert any(each and "makespan" in each for each in texts)
        assert len(list(root.iter(SVG + "rect"))) + len(list(root.iter(SVG + "path"))) > 8 * ranks


def test_png_holds_all_ranks(compiled):
    head, size, height = ask(
        compiled("1f1b", 64, 64) / "timeline.html",
        """const blob = await counterflow.png();
        const bytes = new Uint8Array(await blob.arrayBuffer());
        return [[...bytes.slice(0, 24)], bytes.length,
          document.getElementById("spacer").clientHeight];""",
    )
    assert bytes(head[:8]) == b"\x89PNG\r\n\x1a\n"
    width, tall = struct.unpack(">II", bytes(head[16:24]))
    assert width > 1000
    assert tall > height
    assert size > 10_000


def test_paper_shows_lanes_in_light_colours(compiled, tmp_path):
    page = compiled("zb-h1") / "timeline.html"
    printed, hidden = ask(
        page,
        """dispatchEvent(new Event("beforeprint"));
        const svg = document.querySelector("#print svg");
        const shown = svg.textContent.includes("rank 3") && svg.innerHTML.includes("#ffffff");
        dispatchEvent(new Event("afterprint"));
        return [shown, document.querySelector("#print svg") === null];""",
        scheme="dark",
    )
    assert printed
    assert hidden
    paper = tmp_path / "page.pdf"
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", page.as_uri()]
    command += [f"--print-to-pdf={paper}"]
    command += [f"--user-data-dir={tmp_path / 'profile'}"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert paper.read_bytes().startswith(b"%PDF")


def test_file_is_small_and_keeps_what_timeline_json_says(compiled):
    folder = compiled("1f1b", 64, 64)
    timeline = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    rows = timeline["ranks"][5]["instructions"]
    expected = [row[2] for row in rows if row[1] == 0]
    ops = ask(
        folder / "timeline.html",
        'counterflow.search("r5"); return counterflow.highlighted()[5];',
    )
    assert ops == expected
    size = (folder / "timeline.html").stat().st_size
    assert size < (folder / "timeline.json").stat().st_size / 3


@pytest.mark.parametrize(
    "fragment", ["from=1e999&to=-5", "from=20&to=10", "from=20&to=20", "from=1e15", "to=-1"]
)
def test_links_to_no_time_of_the_timeline_open_the_whole(compiled, fragment):
    script = "return [counterflow.view(), counterflow.link()];"
    whole, _ = ask(compiled("zb-h1") / "timeline.html", script)
    assert ask(compiled("zb-h1") / "timeline.html", script, fragment=f"#{fragment}") == [whole, ""]


def test_a_link_may_name_one_end_of_a_stretch(compiled):
    page = compiled("zb-h1") / "timeline.html"
    whole, view = ask(page, "return [0, counterflow.view()];", fragment="#to=50000000")
    assert view == {"from_ns": whole, "to_ns": 50_000_000}


def test_boxes_of_one_width_are_labelled_alike(compiled):
    """With and without the stage, and with one digit or two: at every zoom the same for all."""
    seen = set()
    page = compiled("gpipe", 1, 64) / "timeline.html"
    labels = ask(
        page,
        """const found = [];
        for (let boxes = 11; boxes <= 64; ++boxes) {
          counterflow.show(0, boxes * 10e6);
          found.push([...counterflow.svg().matchAll(/>(0?F\\d+)</g)].map((each) => each[1]));
        }
        return found;""",
    )
    for found in labels:
        forms = {"0F" in label for label in found}
        assert len(forms) <= 1, found
        seen |= forms
    assert seen == {True, False}
