"""compare: schedules of one config, or two timelines."""

import pytest

from harness import BASIC, EXAMPLES


def test_table_of_schedules(counterflow, config):
    result = counterflow("compare", config(), "--schedules", "1f1b,zb-h1,gpipe", code=0)
    for name in ("1f1b", "zb-h1", "gpipe"):
        assert name in result.out
    assert result.err == ""


def test_json_of_schedules(counterflow, config):
    path = config()
    result = counterflow("compare", path, "--schedules", "1f1b,zb-h1", "--json", code=0)
    runs = result.json["runs"]
    assert [run["name"] for run in runs] == ["1f1b", "zb-h1"]
    assert result.json["refused"] == []
    for run in runs:
        alone = counterflow("simulate", path, "--schedule", run["name"], "--json", code=0).json
        assert run["report"] == alone


def test_a_family_that_refuses_is_listed_not_fatal(counterflow, config):
    path = config(BASIC.replace("ranks: 4", "ranks: 3"))
    result = counterflow("compare", path, "--schedules", "1f1b,dualpipe", "--json", code=0)
    assert [run["name"] for run in result.json["runs"]] == ["1f1b"]
    (refused,) = result.json["refused"]
    assert refused["schedule"] == "dualpipe"
    assert "even" in refused["reason"]
    assert "dualpipe" in counterflow("compare", path, "--schedules", "1f1b,dualpipe", code=0).err


def test_all_refusing_is_exit_2(counterflow, config):
    path = config(BASIC.replace("ranks: 4", "ranks: 3"))
    result = counterflow("compare", path, "--schedules", "dualpipe,chimera", "--json", code=2)
    assert result.out == ""


def test_all_over_memory_is_exit_1(counterflow, config):
    counterflow(
        "compare", config(), "--schedules", "1f1b,gpipe", "--set", "memory.limit_activations=1",
        code=1,
    )


def test_a_mistyped_schedule_is_exit_2(counterflow, config):
    assert "'1f1b'" in counterflow("compare", config(), "--schedules", "1f1b,1f1bb", code=2).err


@pytest.mark.parametrize("placement", ["", ", placement: loop"])
@pytest.mark.parametrize("text", [None, "0F0,0Q\n", "0F0,0B0\n"], ids=["no", "malformed", "rows"])
def test_a_bad_file_is_exit_2_and_named_as_typed(counterflow, config, tmp_path, placement, text):
    if text is not None:
        (tmp_path / "order.csv").write_text(text, encoding="utf-8")
    path = config(BASIC.replace("1f1b}", f"1f1b{placement}}}"))
    result = counterflow("compare", path, "--schedules", "1f1b,order.csv", "--json", code=2)
    assert result.out == ""
    assert result.err.startswith("error: --schedules: ")
    assert "order.csv" in result.err
    assert "--set pipeline.schedule" not in result.err


def test_a_file_with_faults_is_left_out_with_the_first_of_them(counterflow, config, tmp_path):
    rows = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"
    (tmp_path / "order.csv").write_text(rows, encoding="utf-8")
    path = config(
        BASIC.replace("ranks: 4, microbatches: 8", "placement: loop, ranks: 2, microbatches: 2")
    )
    result = counterflow("compare", path, "--schedules", "1f1b,order.csv", "--json", code=0)
    (refused,) = result.json["refused"]
    assert "1B1" in refused["reason"]
    assert "\n" not in refused["reason"]


def test_options_that_compare_would_ignore_are_exit_2(counterflow, config):
    path = config()
    two = ("--schedules", "1f1b,gpipe")
    assert "gpipe" in counterflow("compare", path, *two, "--schedule", "gpipe", code=2).err
    setting = "pipeline.schedule=gpipe"
    assert setting in counterflow("compare", path, *two, "--set", setting, code=2).err
    counterflow("compile", path, "-o", "a", "--emit", "timeline.json", code=0)
    timelines = ("a/timeline.json", "a/timeline.json")
    assert "ranks=2" in counterflow("compare", *timelines, "--ranks", 2, code=2).err
    counterflow("compare", *timelines, code=0)


def test_h33_ranks_stages_and_stages_a_rank_are_columns(counterflow, config):
    text = BASIC.replace("ranks: 4, microbatches: 8", "ranks: {}, microbatches: {}")
    for name, ranks, microbatches in (("dualpipe", 8, 20), ("dualpipev", 4, 10)):
        path = config(text.replace("{}", str(ranks), 1).replace("{}", str(microbatches), 1))
        counterflow(
            "compile", path, "--schedule", name, "-o", name, "--emit", "timeline.json", code=0
        )
    timelines = ("dualpipe/timeline.json", "dualpipev/timeline.json")
    header, *rows = counterflow("compare", *timelines, code=0).out.splitlines()
    assert header.split()[1:4] == ["ranks", "stages", "stages/rank"]
    assert [row.split()[1:4] for row in rows] == [["8", "8", "2"], ["4", "8", "2"]]
    runs = counterflow("compare", *timelines, "--json", code=0).json["runs"]
    figures = [(run["ranks"], run["stages"], run["stages_per_rank"]) for run in runs]
    assert figures == [(8, 8, 2), (4, 8, 2)]


def test_a_bad_config_is_exit_2(counterflow, config):
    path = config(BASIC.replace("stages", "stagse"))
    error = counterflow("compare", path, "--schedules", "1f1b,gpipe", code=2).err
    assert error.count("stagse") == 1


def test_schedules_are_needed(counterflow, config):
    assert "--schedules" in counterflow("compare", config(), code=2).err


def test_two_timelines(counterflow, config, tmp_path):
    path = config()
    for name in ("1f1b", "zb-h1"):
        counterflow("compile", path, "--schedule", name, "-o", name, "--emit", "timeline.json")
    result = counterflow(
        "compare", "1f1b/timeline.json", "zb-h1/timeline.json", "-o", "page.html", code=0
    )
    assert "1f1b" in result.out
    assert "zb-h1" in result.out
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")[:500].lower()


def test_the_step_of_a_measured_timeline_of_several(counterflow, config, tmp_path):
    path = config(BASIC.replace("1ms", "2ms"))
    steps = ("--steps", 3, "--consecutive")
    run = counterflow("run", path, *steps, "--json", "-o", "run", code=0).json
    counterflow("compile", path, "-o", "one", "--emit", "timeline.json", code=0)
    timelines = ("one/timeline.json", "run/timeline.json")
    one, several = counterflow("compare", *timelines, "--json", code=0).json["runs"]
    assert "step_ns" not in one
    assert several["step_ns"] == run["report"]["consecutive_steps"]["steady_step_ns"]
    assert several["report"]["consecutive_steps"] == run["report"]["consecutive_steps"]
    header, first, second = counterflow("compare", *timelines, code=0).out.splitlines()
    # The columns are flush right.
    column = slice(header.index("step ") - 8, header.index("step ") + 4)
    assert header[column].strip() == "step"
    assert first[column].strip() == "-"
    assert second[column].strip().endswith("ms")


def test_messages_that_share_links_may_pass_each_other(counterflow):
    counterflow("compile", EXAMPLES / "shared_nics.yaml", "-o", "a", "--emit", "timeline.json", code=0)
    counterflow("compare", "a/timeline.json", "a/timeline.json", code=0)


def test_page_into_a_file_or_a_folder(counterflow, config, tmp_path):
    path = config()
    counterflow("compare", path, "--schedules", "1f1b,gpipe", "-o", "a/page.html", code=0)
    counterflow("compare", path, "--schedules", "1f1b,gpipe", "-o", "b", code=0)
    one = (tmp_path / "a" / "page.html").read_bytes()
    assert one == (tmp_path / "b" / "compare.html").read_bytes()


def test_not_a_timeline_is_exit_2(counterflow, config, tmp_path):
    (tmp_path / "a.json").write_text('{"runs": 1}', encoding="utf-8")
    (tmp_path / "b.json").write_text("no", encoding="utf-8")
    assert "a.json" in counterflow("compare", "a.json", "b.json", code=2).err
    assert "c.json" in counterflow("compare", "c.json", "b.json", code=2).err


def test_different_numbers_of_stages_are_noted(counterflow, config):
    result = counterflow("compare", config(), "--schedules", "1f1b,zbv", code=0)
    assert "stages" in result.err
