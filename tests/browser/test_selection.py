"""Choosing ops: by hand, by key, by search, by kind."""

import pytest
from chromium import ask

PRESS = """
const press = (key, more = {}) => window.dispatchEvent(
  new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true, ...more}));
const lanes = document.getElementById("lanes");
lanes.setPointerCapture = () => {};
// Clicks the box of an op that runs at an instant, found by its card.
const click = (op, time) => {
  const {from_ns: from, to_ns: to} = counterflow.view();
  const box = lanes.getBoundingClientRect();
  const x = 104 + (time - from) / (to - from) * (lanes.clientWidth - 104 - 14);
  const card = document.getElementById("card");
  for (let y = 28; y < lanes.clientHeight; y += 4) {
    const at = {clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerId: 1};
    lanes.dispatchEvent(new PointerEvent("pointermove", at));
    if (card.hidden || !card.innerText.startsWith(op)) continue;
    lanes.dispatchEvent(new PointerEvent("pointerdown", at));
    lanes.dispatchEvent(new PointerEvent("pointerup", at));
    return;
  }
};
"""


def test_click_shows_the_microbatch_path_and_dependencies(compiled):
    page = compiled("1f1b", 2, 2) / "timeline.html"
    before, selected, path, after = ask(
        page,
        PRESS
        + """const before = counterflow.highlighted();
        click("1B0", 25e6);
        const chosen = [counterflow.selected(), counterflow.highlighted()];
        press("Escape");
        return [before, ...chosen, counterflow.highlighted()];""",
    )
    assert before is None
    assert selected == "1B0"
    assert path == [["0F0", "0B0"], ["1F0", "1B0"]]
    assert after is None


def test_dependencies_of_an_op(compiled):
    first, middle = ask(
        compiled("1f1b", 2, 2) / "timeline.html",
        "return [counterflow.select(0, 5e6), counterflow.select(1, 15e6)];",
    )
    assert first == {"needs": [], "feeds": ["1F0@1"]}
    assert middle["needs"] == ["0F0@0"]


def test_arrow_keys_walk_from_op_to_op(compiled):
    walk = ask(
        compiled("1f1b", 2, 2) / "timeline.html",
        PRESS
        + """counterflow.select(0, 5e6);
        const seen = [];
        for (const key of ["ArrowRight", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"]) {
          press(key, {shiftKey: true});
          seen.push(counterflow.selected());
        }
        return [seen, document.getElementById("live").textContent];""",
    )
    seen, told = walk
    assert seen == ["0F1", "1F0", "1B0", "1F0", "0F1"]
    assert told.startswith("forward of stage 0, microbatch 1, rank 0, starts at 10 ms")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("F", 32),
        ("m3", 8),
        ("3", 8),
        ("B s2", 8),
        ("r1 F m2-4", 3),
        ("0F3", 1),
        ("0F3 2B1", 2),
        ("W", 0),
    ],
)
def test_search_finds_ops(compiled, query, found):
    script = f"return counterflow.search({query!r});"
    assert ask(compiled("1f1b") / "timeline.html", script) == found


def test_search_field_highlights_and_steps(compiled):
    told, lanes, steps, unknown = ask(
        compiled("1f1b") / "timeline.html",
        """const field = document.getElementById("search");
        const type = (text) => {
          field.value = text;
          field.dispatchEvent(new Event("input"));
        };
        const enter = (shiftKey = false) => field.dispatchEvent(
          new KeyboardEvent("keydown", {key: "Enter", shiftKey, bubbles: true}));
        type("F m2");
        const found = document.getElementById("found").textContent;
        const lanes = counterflow.highlighted();
        const steps = [false, false, true, true].map((back) => {
          enter(back);
          return counterflow.selected();
        });
        type("xyz");
        return [found, lanes, steps, document.getElementById("found").textContent];""",
    )
    assert told == "4 ops"
    assert lanes == [["0F2"], ["1F2"], ["2F2"], ["3F2"]]
    assert steps == ["0F2", "1F2", "0F2", "3F2"]
    assert "xyz" in unknown


def test_kinds_of_the_legend_can_be_hidden(compiled):
    shown, hidden = ask(
        compiled("zb-h1") / "timeline.html",
        """const share = () => {
          const canvas = document.getElementById("lanes");
          counterflow.frame();
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let green = 0;
          for (let i = 0; i < data.length; i += 4) {
            if (data[i] === 0x1f && data[i + 1] === 0x9e && data[i + 2] === 0x7a) ++green;
          }
          return green;
        };
        const before = share();
        document.querySelector('[data-kind="W"]').click();
        return [before, share()];""",
    )
    assert shown > 1000
    assert hidden == 0


def test_op_labels_carry_the_letter_of_their_kind(compiled):
    svg = ask(compiled("zb-h1", 2, 4) / "timeline.html", "return counterflow.svg();")
    for label in ("0F0", "0I0", "0W0", "1F3"):
        assert f">{label}<" in svg


def test_ops_of_pipelines_side_by_side(compiled_data_parallel):
    text, direction, found = ask(
        compiled_data_parallel / "timeline.html",
        """counterflow.search("2~0F16");
        const found = counterflow.highlighted();
        const card = counterflow.hover(8, 5e6);
        return [card.op, card.direction, found];""",
    )
    assert text == "2~0F16"
    assert direction is None
    assert [len(each) for each in found] == [0] * 8 + [1] + [0] * 3
