"""`partition`, and the keys `layers` and `layout` everywhere else."""

import json

import pytest

from harness import EXAMPLES


def layers(*entries):
    return "layers:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


def layer(kind, repeat=1, f=1, i=1, w=1, more=""):
    return (
        f"kind: {kind}, repeat: {repeat}, forward: {f}ms, backward_input: {i}ms, "
        f"backward_weight: {w}ms{more}"
    )


def pipeline(ranks, microbatches=8, schedule="1f1b", more=""):
    return (
        f"pipeline: {{ranks: {ranks}, microbatches: {microbatches}, schedule: {schedule}{more}}}\n"
    )


def model(decoders, more=(), head=1):
    return layers(
        layer("embedding", i=0), layer("decoder", decoders), *more, layer("head", head)
    )


# ---- layout strings -------------------------------------------------------------------------


def test_a_layout_that_adds_up_runs(counterflow, config):
    path = config(
        pipeline(16, 32, "interleaved-1f1b") + model(61) + 'layout: "Et|(tt|)*30L"\n'
    )
    report = counterflow("simulate", path, "--json", code=0).json
    assert (report["ranks"], report["stages"]) == (16, 32)
    assert "stage 31 has no decoder layer, only L" in report["warnings"]


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("Et|(tt|)*29L|", "layout: 59 decoder layers, model has 61; stage 31 is empty"),
        ("Et|(tt|)*29|L", "layout: 59 decoder layers, model has 61; stage 30 is empty"),
        ("Et|(tt|)*28t|t|L", "layout: 59 decoder layers, model has 61"),
        ("E(|tt)*30,|L", "layout: 60 decoder layers, model has 61"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "partition"])
def test_counts_that_do_not_add_up(counterflow, config, command, layout, says):
    path = config(
        pipeline(16, 32, "interleaved-1f1b") + model(61) + f'layout: "{layout}"\n'
    )
    result = counterflow(command, path, code=2)
    assert f":7: {says}" in result.err or f"{says}" in result.err
    assert result.out == ""


def test_a_pass_through_stage_still_sends_and_receives(counterflow, config, tmp_path):
    path = config(
        pipeline(16, 32, "interleaved-1f1b") + model(59) + 'layout: "Et|(tt|)*29|L"\n'
    )
    out = tmp_path / "out"
    counterflow("compile", path, "-o", out, "--emit", "program.csv,report.json", code=0)
    cells = set((out / "program.csv").read_text().replace("\n", ",").split(","))
    for cell in ["30RECV_F0", "30F0", "30SEND_F0", "30RECV_B0", "30B0", "30SEND_B0"]:
        assert cell in cells
    warnings = json.loads((out / "report.json").read_text())["warnings"]
    assert any("stage 30 is empty: it only passes on" in warning for warning in warnings)


def test_loss_and_mtp_over_several_stages(counterflow, config):
    def figures(head_stages):
        mtp = layer("mtp", 3)
        path = config(
            pipeline(8, 16, "interleaved-1f1b")
            + layers(layer("embedding", i=0), layer("decoder", 10), mtp,
                     layer("loss", 4, f=9, i=9, w=9))
            + f'layout: "E|(t|)*10m|m|m|{head_stages}"\n'
        )
        return counterflow("partition", path, "--iterations", 1, "--json", code=0).json

    split = figures("LL|LL")
    assert split["stages"] == 16
    assert [cut["name"] for cut in split["compared"]] == ["even", "given", "balanced"]
    given = split["compared"][1]
    assert given["layout"] == "E|(t|)*10,m|m|m|LL|LL"

    path = config(
        pipeline(8, 16, "interleaved-1f1b")
        + layers(layer("embedding", i=0), layer("decoder", 11), layer("mtp", 3),
                 layer("loss", 4, f=9, i=9, w=9))
        + 'layout: "E|(t|)*11m|m|m|LLLL"\n'
    )
    whole = counterflow("partition", path, "--iterations", 1, "--json", code=0).json
    # Ranks 6 and 7 hold LL each in the first, rank 7 all four in the second.
    assert given["bottleneck_ns"] == (2 * 27 + 3) * 1_000_000
    assert whole["compared"][1]["bottleneck_ns"] == (4 * 27 + 3) * 1_000_000


def test_warnings_for_every_stage_without_a_decoder_layer(counterflow, config):
    path = config(
        pipeline(8, 16, "interleaved-1f1b")
        + layers(layer("embedding", i=0), layer("decoder", 11), layer("mtp", 3), layer("head"))
        + 'layout: "E|(t|)*11m|m|m|L"\n'
    )
    said = counterflow("simulate", path, "--json", code=0).json["warnings"]
    assert [s for s in (0, 12, 13, 14, 15) if f"stage {s} has no decoder layer" in str(said)] == [
        0, 12, 13, 14, 15,
    ]


def test_commas_are_ignored_and_a_stage_may_be_mtp_and_head(counterflow, config):
    text = layers(layer("embedding", i=0), layer("decoder", 60), layer("mtp"), layer("head"))
    path = config(pipeline(16, 32, "interleaved-1f1b") + text + 'layout: "E(|tt)*30,|mL"\n')
    said = counterflow("simulate", path, "--json", code=0).json["warnings"]
    assert "stage 0 has no decoder layer, only E" in said
    assert "stage 31 has no decoder layer, only mL" in said


# ---- partition ------------------------------------------------------------------------------


def test_no_layer_is_lost(counterflow, config):
    path = config(pipeline(4) + layers(layer("decoder", 30)))
    result = counterflow("partition", path, "--json", code=0).json
    assert result["compared"][0]["layers_per_stage"] == [8, 8, 7, 7]
    assert sum(result["layers_per_stage"]) == 30
    bounds = [stage["layers"] for stage in result["per_stage"]]
    assert bounds[0][0] == 0 and bounds[-1][1] == 30
    assert all(a[1] == b[0] for a, b in zip(bounds, bounds[1:]))
    refused = counterflow("simulate", path, "--set", "layout=[7, 7, 7, 7]", code=2)
    assert "28 decoder layers, model has 30" in refused.err


def test_a_doubled_last_stage(counterflow, config):
    costs = "forward: [1ms, 1ms, 1ms, 2ms], backward_input: [1ms, 1ms, 1ms, 2ms], " \
            "backward_weight: [1ms, 1ms, 1ms, 2ms]"
    path = config(pipeline(4, 8, more=", split_backward: false") + f"stages: {{{costs}}}\n")
    report = counterflow("simulate", path, "--json", code=0).json
    assert report["makespan_ns"] == 57_000_000
    assert report["per_rank"][0]["idle_ns"] / 57e6 == pytest.approx(0.579, abs=5e-4)


def test_balance_of_stages_as_they_are(counterflow, config):
    forward = [3.153, 3.150, 3.150, 3.150, 3.150, 3.149, 3.149, 3.901]
    path = config(
        pipeline(8, 64, "forward-only") + f"units: {{time: ms}}\nstages: {{forward: {forward}}}\n"
    )
    result = counterflow("partition", path, "--json", code=0).json
    assert result["steady_cycle_ns"] == 3_901_000
    assert result["balance"] == pytest.approx(3.244 / 3.901, abs=1e-6)
    assert f"{100 * result['balance']:.1f}" == "83.2"
    assert "83.16 %" in counterflow("partition", path, code=0).out


def test_the_head_is_paid_for_with_layers(counterflow, config):
    path = config(pipeline(4, 16) + model(30))
    heavy = config(
        pipeline(4, 16)
        + layers(layer("embedding", f=0, i=0, w=0), layer("decoder", 32), layer("head", f=6, i=6, w=6))
    )
    result = counterflow("partition", heavy, "--json", code=0).json
    even = result["compared"][0]
    assert even["layout"] == "Et*8|t*8|t*8|t*8L"
    assert even["bottleneck_ns"] == 42_000_000
    assert result["bottleneck_ns"] == result["bottleneck_lower_bound_ns"] == 30_000_000
    assert result["makespan_ns"] < even["makespan_ns"]
    assert result["all_cuts_simulated"]
    assert counterflow("partition", path, code=0).out.rstrip().splitlines()[-1].startswith("layout: ")


def test_the_written_config_simulates_to_the_makespan_found(counterflow, config, tmp_path):
    path = config(pipeline(4, 8, "auto") + model(13, [layer("mtp", f=3)]))
    out = tmp_path / "cut" / "found.yaml"
    found = counterflow(
        "partition", path, "--microbatches", 12, "-o", out, "--json", code=0
    ).json
    report = counterflow("simulate", out, "--json", code=0).json
    for key in ["makespan_ns", "schedule", "ranks", "stages", "lower_bound_ns"]:
        assert report[key] == found[key], key
    assert report["microbatches"] == 12
    again = counterflow("partition", out, "--json", code=0).json
    assert again["compared"][1]["makespan_ns"] == found["makespan_ns"]


def test_no_cut_compared_is_faster(counterflow, config):
    for schedule in ["1f1b", "interleaved-1f1b", "zbv", "dualpipe", "dualpipev"]:
        path = config(pipeline(4, 16, schedule) + model(29, [layer("mtp", f=2)]))
        result = counterflow("partition", path, "--iterations", 300, "--json", code=0).json
        assert all(cut["makespan_ns"] >= result["makespan_ns"] for cut in result["compared"])
        assert result["bottleneck_ns"] >= result["bottleneck_lower_bound_ns"]
        assert sum(result["layers_per_stage"]) == 32


def test_found_is_the_best_of_all_cuts_simulated_one_by_one(counterflow, config):
    """Frozen layers, messages, factors and limits together, through the other subcommand."""
    path = config(
        "pipeline: {ranks: 3, schedule: zb-h1,\n"
        "           microbatches: {count: 5, scale: [1, 2, 1, 0.5, 1]}}\n"
        + layers(
            layer("vision", 3, more=", letter: v, frozen: true, message: 1MiB, activation: 10MiB"),
            layer("decoder", 4, more=", message: 8MiB, activation: 20MiB"),
            layer("head", f=2),
        )
        + "links: {bandwidth: 1GB/s}\nmemory: {limit: [150MiB, 1GiB, 1GiB], static: 10MiB}\n"
    )
    makespans = {}
    for a in range(1, 7):
        for b in range(1, 8 - a):
            cut = [a, b, 8 - a - b]
            result = counterflow("simulate", path, "--json", "--set", f"layout={cut}")
            assert result.code in (0, 1)
            if result.code == 0:
                makespans[tuple(cut)] = result.json["makespan_ns"]
    assert 3 < len(makespans) < 21
    found = counterflow("partition", path, "--json", code=0).json
    assert found["all_cuts_simulated"]
    assert found["makespan_ns"] == min(makespans.values())
    assert makespans[tuple(found["layers_per_stage"])] == found["makespan_ns"]


def test_memory_decides_before_the_makespan(counterflow, config):
    sized = layers(layer("decoder", 16, more=", activation: 1GiB, static: 1GiB"))
    text = pipeline(4, 8) + sized
    free = counterflow("partition", config(text), "--json", code=0).json
    assert free["layers_per_stage"] == [4, 4, 4, 4]
    assert free["per_rank"][0]["peak_memory_bytes"] == 20 << 30
    tight = config(text + "memory: {limit: 17GiB}\n")
    found = counterflow("partition", tight, "--json", code=0).json
    assert found["layers_per_stage"][0] == 3
    assert max(rank["peak_memory_bytes"] for rank in found["per_rank"]) <= 17 << 30
    even = found["compared"][0]
    assert even["makespan_ns"] is None
    assert "rank 0 needs" in even["fault"]
    impossible = counterflow(
        "partition", config(text + "memory: {limit: 4GiB}\n"), code=1
    )
    assert "no cut of the layers was found that fits" in impossible.err


def test_an_open_map_is_chosen(counterflow, config):
    text = pipeline(4, 16, "auto") + model(30)
    assert "needs pipeline.placement" in counterflow("simulate", config(text), code=2).err
    found = counterflow("partition", config(text), "--json", code=0).json
    assert found["placement"] in {"loop", "v"}
    for name in ["1f1b", "zb-h1", "zbv", "interleaved-1f1b"]:
        one = counterflow(
            "partition", config(text), "--schedule", name, "--iterations", 200, "--json", code=0
        ).json
        assert found["makespan_ns"] <= one["makespan_ns"], name


def test_same_bytes_every_time(counterflow, config):
    path = config(pipeline(4, 8, "zbv") + model(21))
    wanted = ("partition", path, "--iterations", 300, "--json")
    first = counterflow(*wanted, code=0).out
    assert counterflow(*wanted, code=0).out == first


def test_families_of_other_stage_counts_compare_on_one_model(counterflow, config):
    result = counterflow(
        "compare", config(pipeline(4, 16) + model(30)), "--schedules", "1f1b,zbv,interleaved-1f1b",
        code=0,
    )
    assert "models of different size" not in result.err


def test_the_example_is_as_partition_left_it(counterflow):
    path = EXAMPLES / "layers_deepseek_v3_like_16.yaml"
    result = counterflow("partition", path, "--iterations", 100, "--json", code=0).json
    given = next(cut for cut in result["compared"] if cut["name"] == "given")
    even = next(cut for cut in result["compared"] if cut["name"] == "even")
    assert given["makespan_ns"] < even["makespan_ns"]


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (model(8) + "stages: {forward: 1ms}\n", "layers: given beside stages"),
        ("layout: tt|tt\nstages: {forward: 1ms}\n", "layout: given without layers"),
        ("layers: []\n", "layers: no layers"),
        ("layers: 3\n", "layers: 3 is not a list"),
        (layers("forward: 1ms"), "layers[0]: neither kind nor letter"),
        (layers("kind: vision, forward: 1ms"), "the kind vision has no letter of its own"),
        (layers("letter: tt, forward: 1ms"), "tt is not one letter"),
        (layers("kind: decoder, letter: E, forward: 1ms", "kind: embedding, forward: 1ms"),
         "layers[1]: the letter E already stands for decoder, not embedding"),
        (layers("kind: decoder"), "layers[0].forward: missing"),
        (layers("kind: decoder, repeat: 4, forward: 1ms"), "layers: backward_input is missing"),
        (layers(layer("decoder"), "kind: head, forward: 1ms"),
         "layers[1]: backward_input is missing, which layers[0] gives"),
        (layers(layer("decoder", 5000)), "layers[0].repeat: 5000 is out of range"),
        (layers(layer("decoder", 4000), layer("decoder", 97)), "more than 4096 layers"),
        (layers(layer("decoder", more=", activations: 1MiB")), "did you mean activation"),
        (layers(layer("decoder", 4, more=", activation: 1MiB, weight_activation: 2MiB")),
         "is more than the activation"),
        (layers(layer("decoder", 2, more=", message: 1MiB"), layer("decoder", 2), layer("head")),
         "layers[1]: message is missing"),
        (layers(layer("decoder", 4, more=", message: 1MiB")) + "links: {message: 1MiB}\n",
         "links.message: given beside the layers' own message"),
        (layers(layer("decoder", 4)) + "links: {message: [1MiB, 2MiB]}\n", "a list beside layers"),
        (layers(layer("decoder", 4)) + "links: {bandwidth: 50GB/s}\n", "without links.message"),
        (layers(layer("decoder", 3)), "3 layers do not fill 4 stages"),
        (model(8) + "layout: [5, 5]\n", "2 stages do not divide by 4 ranks"),
        (model(8) + "layout: []\n", "a list of 0 stages"),
        (model(8) + "layout: [2, 2, 2, -1]\n", "layout[3]: -1"),
        (model(8) + "layout: {a: 1}\n", "layout: a map is not a layout"),
        (model(8) + 'layout: "E(t|*8L"\n', "layout: 'E(t|*8L': at position 2: a ( without its )"),
        (model(8) + 'layout: "Et*999999999|L"\n', "more than"),
        (model(8) + 'layout: "Ett|tt|tt|tt|L"\n', "5 stages do not divide by 4 ranks"),
        (model(8) + 'layout: "Et|t|t|t|t|t|t|tL"\n', "1F1B takes 1 stage per rank, got 2"),
    ],
)
def test_refusals(counterflow, config, text, says):
    result = counterflow("simulate", config(pipeline(4) + text), code=2)
    assert says in result.err
    assert ".yaml:" in result.err


def test_chunks_and_layout_must_agree(counterflow, config):
    path = config(pipeline(4, 8, "interleaved-1f1b") + model(8) + 'layout: "Ett|tt|tt|ttL"\n')
    result = counterflow("simulate", path, "--chunks", 2, code=2)
    assert "4 stages, but 4 ranks with 2 stages a rank have 8" in result.err


@pytest.mark.parametrize(
    "placement", ["[0, 0, 1, 1]", "[1, 0]", "[0, 1, 0]"]
)
def test_a_list_that_is_no_familys_map_is_what_auto_blames(
    counterflow, config, tmp_path, placement
):
    asked = pipeline(2, 4, "auto", f", placement: {placement}")
    path = config(asked + model(6))
    result = counterflow("partition", path, code=2)
    assert ":1:" in result.err
    assert "pipeline.placement: no schedule family takes this list as its map" in result.err
    assert "gpipe" not in result.err.lower()
    # What is advised works.
    counterflow("search", path, "--iterations", 50, "-q", "-o", "out", code=0)
    counterflow("partition", path, "--schedule", "out/schedule.csv", "--iterations", 20, "-q",
                code=0)
    counterflow("partition", config(pipeline(2, 4, "auto") + model(6)), "--iterations", 20, "-q",
                code=0)


@pytest.mark.parametrize(("placement", "same"), [("[0, 1, 1, 0]", "v"),
                                                 ("[0, 1, 0, 1]", "loop, chunks: 2")])
def test_a_list_that_is_a_familys_map_is_that_map(counterflow, config, placement, same):
    makespans = {
        counterflow("partition", config(pipeline(2, 4, "auto", f", placement: {each}")
                                        + model(6)),
                    "--iterations", 40, "--json", code=0).json["makespan_ns"]
        for each in (placement, same)
    }
    assert len(makespans) == 1


def test_forward_only_needs_no_backward(counterflow, config):
    path = config(pipeline(4, 8, "forward-only") + layers("kind: decoder, repeat: 9, forward: 1ms"))
    found = counterflow("partition", path, "--json", code=0).json
    assert found["steady_cycle_ns"] == 3_000_000


def test_output_to_a_folder_that_is_a_file(counterflow, config, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("x")
    path = config(pipeline(4) + model(8))
    counterflow("partition", path, "-o", blocked / "a.yaml", code=4)
    counterflow("partition", path, "--iterations", 0, code=2)
