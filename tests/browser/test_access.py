"""The page for those who do not see it, without scripts, and at its extremes."""

import json
import re

from chromium import ask
from command_line import counterflow


def test_canvas_is_described(compiled):
    label, role, summary, unnamed = ask(
        compiled("1f1b") / "timeline.html",
        """const lanes = document.getElementById("lanes");
        const unnamed = [...document.querySelectorAll("button, input")].filter((each) =>
          !each.textContent.trim() && !each.ariaLabel);
        return [lanes.ariaLabel, lanes.role, document.getElementById("summary").textContent,
          unnamed.length];""",
    )
    assert role == "img"
    assert unnamed == 0
    for text in (label, summary):
        assert "4 ranks, 4 stages, 8 microbatches" in text
        assert "Makespan" in text
        assert "bubble fraction" in text


def test_every_text_colour_stands_out_from_its_ground(compiled):
    """At least 4.5 to 1, as WCAG 2 asks of text."""
    for scheme in ("dark", "light"):
        ratios = ask(
            compiled("1f1b") / "timeline.html",
            """const light = (colour) => {
              const [r, g, b] = colour.match(/[0-9a-f]{2}/gi).map((x) => parseInt(x, 16) / 255)
                .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const value = (name) =>
              getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
            const ratio = (a, b) => {
              const [x, y] = [light(value(a)), light(value(b))].sort((p, q) => q - p);
              return (x + 0.05) / (y + 0.05);
            };
            const grounds = ["paper", "raised"];
            return ["ink", "quiet", "accent", "warning"].flatMap(
              (text) => grounds.map((ground) => [text, ground, ratio(text, ground)]));""",
            scheme=scheme,
        )
        assert all(ratio >= 4.5 for _, _, ratio in ratios), ratios


def test_without_scripts_the_figures_stand_there(compiled):
    folder = compiled("1f1b")
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    text = (folder / "timeline.html").read_text(encoding="utf-8")
    plain = re.search(r"<noscript>(.*?)</noscript>", text, re.DOTALL).group(1)
    assert f"{report['makespan_ns'] / 1e6:.4g}" in plain
    assert "bubble" in plain


def test_one_rank_and_one_op(compiled):
    ops, path, idle = ask(
        compiled("1f1b", 1, 1) / "timeline.html",
        """counterflow.frame();
        return [counterflow.ops, counterflow.critical_path().map((part) => part.op),
          counterflow.idle().total];""",
    )
    assert ops == 2
    assert path == ["0F0", "0B0"]
    assert sum(idle.values()) == 0


def test_many_ranks_fit_the_window_when_asked(compiled):
    before, after, bottom = ask(
        compiled("1f1b", 64, 64) / "timeline.html",
        """const inner = () => document.getElementById("spacer").clientHeight;
        const before = inner();
        document.getElementById("ranks-button").click();
        return [before, inner(), document.getElementById("scroller").clientHeight];""",
    )
    assert before > bottom
    assert after <= bottom


def test_run_whose_program_is_unknown(compiled, tmp_path):
    """A timeline.json without waits, as other tools or older versions write it."""
    timeline = json.loads((compiled("1f1b", 2, 2) / "timeline.json").read_text(encoding="utf-8"))
    for rank in timeline["ranks"]:
        del rank["waits"]
        rank["memory"] = []
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps(timeline), encoding="utf-8")
    counterflow("compare", bare, compiled("1f1b", 2, 2) / "timeline.json", "-o", tmp_path)
    idle, op, path, note = ask(
        tmp_path / "compare.html",
        """const facts = [counterflow.hover(0, 30e6), counterflow.hover(0, 5e6)];
        counterflow.select(0, 5e6);
        document.getElementById("path-button").click();
        return [...facts, counterflow.critical_path(),
          document.getElementById("note").textContent];""",
    )
    assert "does not say" in idle["reason"]
    assert op["waits_for"] is None
    assert op["slack_ns"] is None
    assert path == []
    assert "not known" in note
