"""compare: schedules of one config, or two timelines."""

from harness import BASIC


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
