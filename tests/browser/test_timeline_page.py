"""timeline.html: what it shows, and how it answers to hand and key."""

import json

import pytest
from chromium import ask

# Fires an event at the lanes; x and y are from their top left corner.
EVENTS = """
const lanes = document.getElementById("lanes");
const box = lanes.getBoundingClientRect();
const at = (x, y) => ({
  clientX: box.left + x, clientY: box.top + y, bubbles: true, cancelable: true, pointerId: 1,
});
const press = (key) => window.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
lanes.setPointerCapture = () => {};
"""


def report_of(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


def ask_timeline(folder, script, **options):
    return ask(folder / "timeline.html", EVENTS + script, **options)


def test_page_needs_nothing_from_elsewhere(compiled):
    text = (compiled("1f1b") / "timeline.html").read_text(encoding="utf-8")
    text = text.replace("http://www.w3.org/2000/svg", "")  # a name, not an address
    for reference in ("http:", "https:", "src=", "@import", 'url("'):
        assert reference not in text


@pytest.mark.parametrize(
    ("schedule", "ops"), [("1f1b", 4 * 8 * 2), ("zb-h1", 4 * 8 * 3), ("gpipe", 4 * 8 * 2)]
)
def test_page_knows_the_run(compiled, schedule, ops):
    folder = compiled(schedule)
    known = ask_timeline(
        folder, "const {ranks, ops, makespan_ns} = counterflow; return {ranks, ops, makespan_ns};"
    )
    assert known == {"ranks": 4, "ops": ops, "makespan_ns": report_of(folder)["makespan_ns"]}


def test_headline_shows_the_figures_of_the_report(compiled):
    folder = compiled("1f1b")
    report = report_of(folder)
    text = ask_timeline(folder, "return document.querySelector('header').innerText;")
    assert "1f1b" in text
    assert "4 ranks, 4 stages, 8 microbatches" in text
    for label in ("makespan", "bubble fraction", "span bubble fraction", "lower bound", "gap"):
        assert label in text
    assert "peak memory" in text
    assert f"{100 * report['bubble_fraction']:.2f} %" in text
    assert f"{report['makespan_ns'] / 1e6:.4g} ms" in text


def test_legend_names_the_kinds_that_are_there(compiled):
    legend = "return document.getElementById('legend').innerText;"
    split = ask_timeline(compiled("zb-h1"), legend)
    assert "forward" in split
    assert "input gradient" in split
    assert "weight gradient" in split
    assert "backward" not in split
    assert "memory limit" in split
    assert "fused pair" in ask_timeline(compiled("dualpipe"), legend)


def test_hover_tells_an_op(compiled):
    facts, card, hidden = ask_timeline(
        compiled("1f1b"),
        """const facts = counterflow.hover(1, 15e6);
        const card = document.getElementById("card");
        return [facts, card.innerText, card.hidden];""",
    )
    assert not hidden
    assert (facts["what"], facts["op"], facts["stage"], facts["microbatch"]) == ("op", "1F0", 1, 0)
    assert (facts["start_ns"], facts["duration_ns"]) == (11_000_000, 10_000_000)
    for part in ("1F0", "forward", "11 ms", "10 ms", "compute"):
        assert part in card


def test_hover_tells_idle_time_and_what_ends_it(compiled):
    facts = ask_timeline(compiled("1f1b"), "return counterflow.hover(3, 5e6);")
    assert (facts["what"], facts["duration_ns"], facts["next"]) == ("idle", 33_000_000, "3F0")


def test_hover_tells_both_ops_of_a_pair(compiled):
    timeline = json.loads((compiled("dualpipe") / "timeline.json").read_text(encoding="utf-8"))
    rows = timeline["ranks"][0]["instructions"]
    pair = next(row for row in rows if row[1] == 0 and ";" in row[2])
    facts, card = ask_timeline(
        compiled("dualpipe"),
        f"return [counterflow.hover(0, {pair[3] + 1}), document.getElementById('card').innerText];",
    )
    assert facts["op"] == pair[2]
    for op in pair[2].split(";"):
        assert op in card


def test_hover_beyond_the_ranks_is_nothing(compiled):
    assert ask_timeline(compiled("1f1b"), "return counterflow.hover(4, 0);") is None


def test_lanes_are_painted_in_the_colours_of_the_kinds(compiled):
    counts = ask_timeline(
        compiled("1f1b"),
        """const head = JSON.parse(document.getElementById("head").textContent);
        const palette = Object.fromEntries(head.kinds);
        const {data} = lanes.getContext("2d").getImageData(0, 0, lanes.width, lanes.height);
        const counts = {};
        for (const token of ["F", "B", "W"]) {
          const [r, g, b] = [1, 3, 5].map((i) => parseInt(palette[token].slice(i, i + 2), 16));
          let n = 0;
          for (let i = 0; i < data.length; i += 4) {
            n += data[i] === r && data[i + 1] === g && data[i + 2] === b;
          }
          counts[token] = n / (data.length / 4);
        }
        return counts;""",
    )
    assert counts["F"] > 0.03
    assert counts["B"] > 0.06
    assert counts["W"] == 0


def test_wheel_zooms_at_the_cursor(compiled):
    before, after = ask_timeline(
        compiled("1f1b"),
        """const before = counterflow.view();
        lanes.dispatchEvent(new WheelEvent("wheel", {...at(640, 100), deltaY: -400}));
        return [before, counterflow.view()];""",
    )
    assert after["to_ns"] - after["from_ns"] < 0.7 * (before["to_ns"] - before["from_ns"])

    def under_cursor(view):
        return view["from_ns"] + (640 - 104) / (1200 - 104 - 14) * (view["to_ns"] - view["from_ns"])

    # A scroll bar may take some of the width.
    assert abs(under_cursor(after) - under_cursor(before)) < 0.02 * before["to_ns"]


def test_keys_zoom_move_and_fit(compiled):
    views = ask_timeline(
        compiled("1f1b"),
        """const views = [counterflow.view()];
        for (const key of ["+", "ArrowRight", "ArrowLeft", "-", "+", "0"]) {
          press(key);
          views.push(counterflow.view());
        }
        return views;""",
    )
    whole, closer, right, left, wider, _, fitted = views

    def length(view):
        return view["to_ns"] - view["from_ns"]

    assert length(closer) < length(whole)
    assert right["from_ns"] > closer["from_ns"]
    assert left == pytest.approx(closer)
    assert length(wider) == pytest.approx(length(whole))
    assert fitted == whole


def test_drag_moves_in_time(compiled):
    before, after = ask_timeline(
        compiled("1f1b"),
        """press("+"); press("+");
        const before = counterflow.view();
        lanes.dispatchEvent(new PointerEvent("pointerdown", at(600, 60)));
        lanes.dispatchEvent(new PointerEvent("pointermove", at(500, 60)));
        lanes.dispatchEvent(new PointerEvent("pointerup", at(500, 60)));
        return [before, counterflow.view()];""",
    )
    assert after["from_ns"] > before["from_ns"]
    assert after["to_ns"] - after["from_ns"] == pytest.approx(before["to_ns"] - before["from_ns"])


def test_pointer_over_an_op_shows_its_card(compiled):
    card = ask_timeline(
        compiled("1f1b"),
        """lanes.dispatchEvent(new PointerEvent("pointermove", at(110, 40)));
        const shown = document.getElementById("card").innerText;
        lanes.dispatchEvent(new PointerEvent("pointerleave", at(0, 0)));
        return [shown, document.getElementById("card").hidden];""",
    )
    assert "0F0" in card[0]
    assert card[1] is True


def test_question_mark_opens_the_keys(compiled):
    opened = 'press("?"); return document.getElementById("help").open;'
    assert ask_timeline(compiled("1f1b"), opened) is True


def test_memory_can_be_hidden(compiled):
    heights = ask_timeline(
        compiled("1f1b", 32, 32),
        """const height = () => document.getElementById("spacer").clientHeight;
        const before = height();
        press("m");
        const button = document.getElementById("memory-button");
        return [before, height(), button.getAttribute("aria-pressed")];""",
    )
    assert heights[1] < heights[0]
    assert heights[2] == "false"


def test_many_ranks_scroll(compiled):
    ranks, inner, outer = ask_timeline(
        compiled("1f1b", 64, 64),
        """const scroller = document.getElementById("scroller");
        return [counterflow.ranks, scroller.scrollHeight, scroller.clientHeight];""",
    )
    assert ranks == 64
    assert inner > outer


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_page_follows_the_colour_scheme(compiled, scheme, is_dark):
    colour = ask_timeline(
        compiled("1f1b"),
        "return getComputedStyle(document.body).backgroundColor;",
        scheme=scheme,
    )
    red = int(colour.removeprefix("rgb(").split(",")[0])
    assert (red < 80) == is_dark
