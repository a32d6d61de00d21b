"""The report: its contract, its figures, its warnings, its options."""

import json

import pytest

from harness import BASIC

REPORT_KEYS = {
    "schema_version": int, "schedule": str, "ranks": int, "stages": int, "microbatches": int,
    "execution": str, "makespan_ns": int, "span_ns": int, "bubble_fraction": float,
    "span_bubble_fraction": float, "lower_bound_ns": int, "lower_bound_by": str, "gap": float,
    "notes": list, "warnings": list,
    "per_rank": list,
}
RANK_KEYS = {
    "busy_ns", "idle_ns", "first_start_ns", "last_end_ns", "peak_activations", "peak_in_flight",
    "peak_memory_bytes", "comm_exposed_ns", "stages_held",
}


def costs(forward, backward_input, backward_weight):
    return (
        f"stages: {{forward: {forward}ms, backward_input: {backward_input}ms, "
        f"backward_weight: {backward_weight}ms}}\n"
    )


def pipeline(schedule, ranks, microbatches, more=""):
    return (
        f"pipeline: {{schedule: {schedule}, ranks: {ranks}, microbatches: {microbatches}{more}}}\n"
        + costs(1, 1, 1)
    )


def test_json_has_every_key_of_the_contract(counterflow, config):
    report = counterflow("simulate", config(), "--json", code=0).json
    for key, kind in REPORT_KEYS.items():
        assert isinstance(report[key], kind), key
    assert report["schema_version"] == 1
    assert set(report["formula"]) == {"idle_ns", "source"}
    assert len(report["per_rank"]) == 4
    for rank in report["per_rank"]:
        assert set(rank) >= RANK_KEYS


def test_figures_of_1f1b(counterflow, config):
    path = config(BASIC.replace("1f1b}", "1f1b, split_backward: false}"))
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["makespan_ns"] == 33_000_000
    assert report["bubble_fraction"] == pytest.approx(9 / 33)
    assert report["lower_bound_ns"] == 33_000_000
    assert report["gap"] == 0
    assert report["formula"]["idle_ns"] == 9_000_000
    assert [rank["peak_activations"] for rank in report["per_rank"]] == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("schedule", "ranks", "microbatches", "makespan_ms"),
    [("1f1b", 8, 1, 24), ("1f1b", 4, 2, 15), ("1f1b", 4, 3, 18), ("gpipe", 4, 2, 15)],
)
def test_few_microbatches_run_and_warn(
    counterflow, config, schedule, ranks, microbatches, makespan_ms
):
    path = config(pipeline(schedule, ranks, microbatches))
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["makespan_ns"] == makespan_ms * 1_000_000
    idle = 1 - 3 * microbatches / makespan_ms
    assert report["bubble_fraction"] == pytest.approx(idle)
    warning = next(text for text in report["warnings"] if "m < p" in text)
    assert f"p={ranks}" in warning
    assert f"m={microbatches}" in warning
    assert f"{100 * idle:.1f}%" in warning


def test_few_microbatches_interleaved_names_two_ways_out(counterflow, config):
    path = config(pipeline("interleaved-1f1b", 6, 3, ", chunks: 2"))
    report = counterflow("simulate", path, "--json", code=0).json
    warning = next(text for text in report["warnings"] if "m < p" in text)
    for fact in ("p=6", "v=2", "m=3", "m >= 6", "v=1"):
        assert fact in warning
    # The second way out works as it is written.
    counterflow("simulate", path, "--schedule", "1f1b", "--chunks", 1, code=0)


def test_uneven_activation_memory_is_explained(counterflow, config):
    warnings = counterflow("simulate", config(), "--json", code=0).json["warnings"]
    text = next(text for text in warnings if "uneven" in text)
    assert "min(m, p-r)" in text
    assert "zbv" in text
    even = counterflow("simulate", config(), "--schedule", "zbv", "--json", code=0).json
    assert not any("uneven" in text for text in even["warnings"])


def uneven(counterflow, path, *settings):
    """The warning about uneven memory under some --set, "" if there is none."""
    arguments = [f"--set={setting}" for setting in settings]
    warnings = counterflow("simulate", path, *arguments, "--json", code=0).json["warnings"]
    return next((text for text in warnings if "uneven" in text), "")


def test_h32_1f1b_explains_its_in_flight_microbatches_and_how_to_flatten_them(counterflow, config):
    text = uneven(counterflow, config(pipeline("1f1b", 8, 24)))
    for fact in ("rank 0 holds up to 8", "rank 7 only 1", "min(m, p-r)", "zbv", "dualpipev",
                 "recomputing"):
        assert fact in text


def test_frozen_ranks_are_no_reason_for_uneven_memory(counterflow, config):
    path = config()
    text = uneven(counterflow, path, "stages.frozen=[0, 1]")
    assert "rank 2 holds up to 2" in text
    assert "rank 3 only 1" in text
    assert uneven(counterflow, path, "stages.frozen=[0, 1, 2]") == ""
    assert uneven(counterflow, path, "stages.frozen=[0, 1, 2, 3]") == ""


def test_on_other_graphs_than_a_chain_no_v_schedule_is_recommended(counterflow, config):
    text = uneven(counterflow, config(), "stages.graph=[[0,1],[0,2],[1,3],[2,3]]")
    assert "ecomputing" in text
    for fact in ("zbv", "dualpipev", "min(m, p-r)"):
        assert fact not in text


def test_a_group_size_that_nothing_reads_is_said(counterflow, config):
    def warnings(schedule):
        path = config(pipeline(schedule, 2, 4, ", group_size: 4"))
        found = counterflow("simulate", path, "--json", code=0).json["warnings"]
        return [text for text in found if "group_size" in text]

    assert len(warnings("1f1b")) == 1
    assert len(warnings("zbv")) == 1
    assert warnings("interleaved-1f1b") == []
    assert warnings("interleaved-zb") == []


def test_doubled_parameters_are_said(counterflow, config):
    path = config(pipeline("dualpipe", 4, 8))
    warnings = counterflow("simulate", path, "--json", code=0).json["warnings"]
    assert any("2x" in text for text in warnings)


def test_too_many_stages_a_rank_names_the_sibling(counterflow, config):
    stages = "stages: {forward: [1ms, 1ms, 1ms, 1ms], backward_input: 1ms, backward_weight: 1ms}\n"
    text = "pipeline: {ranks: 2, microbatches: 4, schedule: 1F1B}\n" + stages
    for arguments in ([], ["--chunks", 2]):
        error = counterflow("simulate", config(text), *arguments, code=2).err
        assert "1 stage" in error
        assert "nterleaved" in error


def test_wrong_placement_names_stage_and_ranks(counterflow, config):
    path = config(pipeline("zbv", 4, 8, ", placement: loop"))
    error = counterflow("simulate", path, code=2).err
    assert "stage 4" in error
    assert "rank 3" in error
    assert "rank 0" in error


@pytest.mark.parametrize("kind", ["v", "wave", "loop"])
def test_another_placement_is_named_before_its_own_rules(counterflow, config, kind):
    path = config(pipeline("dualpipe", 4, 8, f", placement: {kind}"))
    error = counterflow("simulate", path, code=2).err
    assert "dualpipe needs the bidirectional placement" in error
    assert f"the config has {kind}" in error
    assert "chunk" not in error


@pytest.mark.parametrize("key", ["stages.forward", "stages.backward_input", "memory.static"])
def test_an_empty_list_is_called_empty(counterflow, config, key):
    error = counterflow("simulate", config(), "--set", f"{key}=[]", code=2).err
    assert f"{key}: the list is empty" in error


@pytest.mark.parametrize(
    ("option", "value"),
    [("--schedule", "zvb"), ("--ranks", "two"), ("--microbatches", "0"), ("--chunks", "-1"),
     ("--execution", "ncl")],
)
def test_a_bad_shortcut_is_named_as_it_was_typed(counterflow, config, option, value):
    error = counterflow("simulate", config(), option, value, code=2).err
    assert error.startswith(f"error: {option} {value}: ")
    assert "--set" not in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("--ranks=5", "--set=pipeline.ranks=6"),
        ("--set=pipeline.ranks=6", "--ranks=5"),
        ("--schedule=zb-h1", "--set=pipeline.schedule=gpipe"),
        ("--execution=nccl", "--set=execution.launch_order=serial"),
        ("--microbatches=4", "--set=pipeline.microbatches.count=5"),
    ],
)
def test_a_shortcut_and_set_that_contradict_are_exit_2(counterflow, config, arguments):
    error = counterflow("simulate", config(), *arguments, code=2).err
    assert "keep one" in error
    for argument in arguments:
        assert argument.split("=", 1)[1] in error


def test_a_shortcut_and_set_that_agree_are_one(counterflow, config):
    result = counterflow(
        "simulate", config(), "--ranks=5", "--set=pipeline.ranks=5", "--json", code=0
    )
    assert result.json["ranks"] == 5


def test_shortcuts_equal_set(counterflow, config):
    path = config()
    short = counterflow(
        "simulate", path, "--ranks", 2, "--microbatches", 6, "--chunks", 2,
        "--schedule", "interleaved-1f1b", "--execution", "nccl", "--json", code=0,
    )
    long = counterflow(
        "simulate", path, "--set", "pipeline.ranks=2", "--set", "pipeline.microbatches=6",
        "--set=pipeline.chunks=2", "--set", "pipeline.schedule=interleaved-1f1b",
        "--set", "execution=nccl", "--json", code=0,
    )
    assert short.out == long.out
    report = short.json
    assert (report["ranks"], report["microbatches"], report["stages"]) == (2, 6, 4)
    assert report["execution"] == "nccl"


def test_set_of_a_nested_key(counterflow, config):
    slow = counterflow("simulate", config(), "--set", "stages.forward=2ms", "--json", code=0).json
    assert slow["makespan_ns"] == 44_000_000


def test_set_before_the_config_does_not_swallow_it(counterflow, config):
    path = config()
    counterflow("simulate", "--set", "pipeline.ranks=2", path, code=0)


@pytest.mark.parametrize("bad", ["pipeline.rnaks=2", "pipeline.ranks=two", "pipeline.ranks", "=3"])
def test_bad_set_is_exit_2(counterflow, config, bad):
    result = counterflow("simulate", config(), "--set", bad, code=2)
    assert bad.split("=")[-1] in result.err


def test_bad_semantics_is_exit_2(counterflow, config):
    assert "rendezvous" in counterflow("simulate", config(), "--semantics", "eager", code=2).err


def test_bad_execution_is_exit_2(counterflow, config):
    assert "nccl" in counterflow("simulate", config(), "--execution", "ncl", code=2).err


def test_seed_is_a_number(counterflow, config):
    path = config()
    plain = counterflow("simulate", path, code=0)
    assert counterflow("simulate", path, "--seed", 7, code=0).out == plain.out
    counterflow("simulate", path, "--seed", "seven", code=2)


LAST_SEED = 2**63 - 1


@pytest.mark.parametrize("seed", [0, LAST_SEED])
def test_every_seed_of_a_config_may_be_typed(counterflow, config, seed):
    text = BASIC + "jitter: {compute: 0.1, seed: %d}\n"
    written = counterflow("simulate", config(text % seed), "--trials", 2, "--json", code=0)
    typed = counterflow(
        "simulate", config(text % 5), "--trials", 2, "--seed", seed, "--json", code=0
    )
    assert typed.json == written.json
    assert typed.json["monte_carlo"]["seed"] == seed


@pytest.mark.parametrize("command", ["simulate", "search", "partition"])
@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("--seed", "-1", "is out of range; write a whole number from 0 to"),
        ("--seed", str(LAST_SEED + 1), f"write a whole number from 0 to {LAST_SEED}"),
        ("--seed", str(2**64), f"write a whole number from 0 to {LAST_SEED}"),
        ("--seed", "1e3", f"is not a whole number; write one from 0 to {LAST_SEED}"),
    ],
)
def test_a_seed_that_is_none_names_the_rule(counterflow, config, command, option, value, rule):
    error = counterflow(command, config(), f"{option}={value}", code=2).err
    assert option in error and value in error and rule in error


@pytest.mark.parametrize(
    ("command", "option", "most"),
    [
        ("simulate", "--trials", 10_000_000),
        ("simulate", "--threads", 1024),
        ("search", "--trials", 10_000_000),
        ("search", "--threads", 1024),
        ("partition", "--iterations", 1_000_000_000),
    ],
)
@pytest.mark.parametrize("value", ["0", "-1", "1e3", "0x10", str(2**64 + 1)])
def test_whole_numbers_have_the_rule_of_configs(counterflow, config, command, option, most, value):
    extra = ["--trials", "1"] if option == "--threads" else []
    error = counterflow(command, config(), *extra, f"{option}={value}", code=2).err
    assert f"{option}: {value}" in error and f"from 1 to {most}" in error


def test_summary_names_the_figures(counterflow, config):
    result = counterflow("simulate", config(), code=0)
    assert "makespan" in result.out
    assert "33" in result.out
    assert result.err == ""


def test_quiet_prints_nothing(counterflow, config):
    result = counterflow("simulate", config(), "-q", code=0)
    assert result.out == result.err == ""
    assert counterflow("simulate", config(), "-q", "--json", code=0).json["ranks"] == 4


def test_dump_passes_names_each_pass_on_stderr(counterflow, config):
    path = config()
    result = counterflow("simulate", path, "--dump-passes", "--json", code=0)
    lines = [line for line in result.err.splitlines() if line.startswith("pass ")]
    assert len(lines) >= 4
    assert all(line.endswith("instructions") and " ms " in line for line in lines)
    json.loads(result.out)
    verbose = counterflow("simulate", path, "--dump-passes", "-v", code=0).err
    assert "0F0" in verbose
    assert "SEND_F" in verbose


def test_unset_memory_limit_and_exceeded_one(counterflow, config):
    text = BASIC.replace("stages: {", "stages: {activation: 1GiB, ")
    path = config(text)
    counterflow("simulate", path, code=0)
    counterflow("simulate", path, "--set", "memory.limit=4GiB", code=0)
    result = counterflow("simulate", path, "--set", "memory.limit=3GiB", "--json", code=1)
    assert result.out == ""
    assert "rank 0" in result.err
    assert "memory" in result.err


def test_auto_takes_the_fastest_family_that_fits(counterflow, config):
    path = config(pipeline("auto", 4, 8, ", placement: loop"))
    report = counterflow("simulate", path, "--json", code=0).json
    assert any("auto" in text and report["schedule"] in text for text in report["notes"])
    for family in ("gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2"):
        other = counterflow("simulate", path, "--schedule", family, "--json", code=0).json
        assert report["makespan_ns"] <= other["makespan_ns"], family


def test_auto_respects_memory(counterflow, config):
    path = config(pipeline("auto", 4, 8, ", placement: loop"))
    report = counterflow(
        "simulate", path, "--set", "memory.limit_activations=4", "--json", code=0
    ).json
    assert report["schedule"] == "zb-h1"
    assert max(rank["peak_activations"] for rank in report["per_rank"]) <= 4
    # No family takes such a placement; a search still finds an order.
    path = config(pipeline("auto", 4, 8, ", placement: [2, 0, 3, 1]"))
    report = counterflow(
        "simulate", path, "--set", "memory.limit_activations=1", "--json", code=0
    ).json
    assert report["schedule"] == "search"
    assert [rank["peak_activations"] for rank in report["per_rank"]] == [1, 1, 1, 1]
    assert any("auto" in text for text in report["notes"])
    too_small = ["--set", "stages.activation=2B", "--set", "memory.limit=[8B, 8B, 1B, 8B]"]
    result = counterflow("simulate", path, *too_small, code=1)
    assert "rank 2 needs 2 B" in result.err
    assert "raise memory.limit to 2 B there" in result.err


def test_auto_needs_a_placement(counterflow, config):
    assert "placement" in counterflow("simulate", config(pipeline("auto", 4, 8)), code=2).err


def test_sizes_beyond_all_reason_are_refused_at_once(counterflow, config):
    text = pipeline("interleaved-1f1b", 1000, 1_000_000, ", chunks: 4")
    assert "at most" in counterflow("simulate", config(text), code=2).err
