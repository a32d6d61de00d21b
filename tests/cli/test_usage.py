"""Exit statuses, messages, help: what every subcommand shares."""

import os
import resource
import subprocess

import pytest

from harness import BASIC, binary


def test_version_goes_to_stdout(counterflow):
    result = counterflow("--version", code=0)
    assert result.out.startswith("counterflow 0.")
    assert result.err == ""


def test_help_lists_every_subcommand(counterflow):
    text = counterflow("--help", code=0).out
    for name in ("compile", "simulate", "verify", "compare", "schedules"):
        assert name in text


@pytest.mark.parametrize("name", ["compile", "simulate", "verify", "compare"])
def test_help_of_a_subcommand_lists_the_common_options(counterflow, name):
    text = counterflow(name, "--help", code=0).out
    for option in (
        "--schedule", "--execution", "--semantics", "--ranks", "--microbatches", "--chunks",
        "--set", "--seed", "--quiet", "--verbose", "--json", "--dump-passes",
    ):
        assert option in text, option


# What is wrong only together with the rest of the config, and so is found at another place.
@pytest.mark.parametrize(
    ("given", "named", "words"),
    [
        (["--set", "stages.forward=4000000000s"], "--set stages.forward=4000000000s: stages: ",
         "the durations of the whole run sum to 2^62 ns"),
        (["--set", "stages.activation=4000000TiB"], "--set stages.activation=4000000TiB: stages: ",
         "the sizes of the whole run sum to 2^62 bytes"),
        (["--set", "links.message=4000000TiB"], "--set links.message=4000000TiB: stages: ",
         "the durations of the whole run sum to 2^62 ns"),
        (["--set", "links.latency=4000000000s", "--set", "execution=nccl"],
         "--set links.latency=4000000000s: stages: ",
         "the durations of the whole run sum to 2^62 ns"),
        (["--microbatches", "1000000", "--set", "stages.forward=[9000000s, 1ms, 1ms, 1ms]"],
         "--microbatches 1000000: ", "the durations of the whole run sum to 2^62 ns"),
        # Either would be too much.
        (["--set", "stages.forward=4000000000s", "--set", "stages.backward_weight=4000000000s"],
         "--set stages.forward=4000000000s: stages: ",
         "the durations of the whole run sum to 2^62 ns"),
        (["--chunks", "3"], "--chunks 3: ", "1F1B takes 1 stage per rank"),
        (["--set", "pipeline.chunks=3"], "--set pipeline.chunks=3: ", "1F1B takes 1 stage per rank"),
    ],
)
def test_what_the_command_line_brings_about_names_it(counterflow, config, given, named, words):
    text = BASIC + "links: {bandwidth: 1GB/s, message: 4KiB, latency: 1us}\n"
    err = counterflow("simulate", config(text), *given, code=2).err
    assert err.startswith(f"error: {named}")
    assert words in err


@pytest.mark.parametrize("command", ["verify", "run", "search", "frontier", "partition"])
def test_every_subcommand_names_it(counterflow, config, command):
    path = config(BASIC + "memory: {limit_activations: 8}\n")
    err = counterflow(command, path, "--set", "stages.forward=4000000000s", code=2).err
    assert err.startswith("error: --set stages.forward=4000000000s: stages: the durations")


def test_what_the_file_brings_about_names_its_line(counterflow, config):
    path = config(BASIC.replace("forward: 1ms", "forward: 4000000000s", 1))
    err = counterflow("simulate", path, "--set", "execution=nccl", code=2).err
    assert err.startswith(f"error: {path}:2:9: stages: the durations of the whole run")


def test_no_subcommand_prints_help_on_stderr(counterflow):
    result = counterflow(code=2)
    assert result.out == ""
    assert "subcommand is missing" in result.err
    assert "compile" in result.err


@pytest.mark.parametrize(
    ("word", "meant"),
    [("simulte", "simulate"), ("verfy", "verify"), ("shedules", "schedules"), ("compaer", "compare")],
)
def test_unknown_subcommand_names_the_nearest(counterflow, word, meant):
    result = counterflow(word, "x.yaml", code=2)
    assert result.out == ""
    assert f"unknown subcommand '{word}'" in result.err
    assert f"'{meant}'" in result.err


def test_unknown_option_names_the_nearest(counterflow, config):
    result = counterflow("simulate", config(), "--microbatch=4", code=2)
    assert "--microbatches" in result.err


@pytest.mark.parametrize(
    "option",
    ["--schedule", "--execution", "--semantics", "--ranks", "--microbatches", "--chunks", "--set",
     "--seed", "--output", "--emit"],
)
def test_an_empty_value_is_exit_2(counterflow, config, tmp_path, option):
    rest = [] if option == "--output" else ["-o", "out"]
    for given in ([option, ""], [f"{option}="]):
        error = counterflow("compile", *given, config(), *rest, code=2).err
        assert option in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml"]


def test_an_empty_output_names_a_folder(counterflow, config):
    error = counterflow("compile", config(), "-o", "", code=2).err
    assert "empty" in error
    assert "folder" in error


def test_an_empty_config_or_list_of_schedules_is_exit_2(counterflow, config):
    assert "CONFIG" in counterflow("simulate", "", code=2).err
    assert "--schedules" in counterflow("compare", config(), "--schedules", "", code=2).err


def test_words_like_nothing_known_get_the_list_instead_of_a_guess(counterflow, config):
    path = config()
    for arguments, known in (
        (("qqqqqqqq", path), "simulate"),
        (("simulate", path, "--schedule", "qqqqqqqq"), "zbv"),
        (("compare", path, "--schedules", "qqqqqqqq"), "zbv"),
        (("compile", path, "-o", "out", "--emit", "qqqqqqqq"), "trace.json"),
        (("simulate", path, "--qqqqqqqq"), "--help"),
    ):
        error = counterflow(*arguments, code=2).err
        assert "did you mean" not in error
        assert known in error


def test_missing_config_argument(counterflow):
    result = counterflow("simulate", code=2)
    assert "CONFIG" in result.err


def test_superfluous_argument(counterflow, config):
    assert "extra" in counterflow("simulate", config(), "extra", code=2).err


def test_missing_config_file(counterflow):
    assert "nowhere.yaml" in counterflow("simulate", "nowhere.yaml", code=2).err


@pytest.mark.parametrize("command", ["simulate", "verify", "compile"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("pipeline: [", ""),
        (BASIC.replace("ranks", "rnaks"), "'ranks'"),
        (BASIC.replace("ranks: 4", "ranks: -4"), "-4"),
        (BASIC.replace("1f1b", "1f2b"), "1f1b"),
        (BASIC.replace("forward: 1ms", "forward: 1 parsec"), "parsec"),
    ],
    ids=["empty", "not-yaml", "unknown-key", "negative", "unknown-schedule", "unit"],
)
def test_bad_config_is_exit_2_and_leaves_stdout_empty(counterflow, config, command, text, expected):
    arguments = ["-o", "out"] if command == "compile" else []
    result = counterflow(command, config(text), *arguments, "--json", code=2)
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert "config.yaml" in result.err
    assert expected.strip("'") in result.err


def test_error_says_file_and_line(counterflow, config):
    text = "pipeline:\n  ranks: 4\n  microbatches: 8\n  schedule: 1f2b\nstages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}\n"
    assert "config.yaml:4" in counterflow("simulate", config(text), code=2).err


def test_stdout_full_is_exit_4(counterflow, config):
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = counterflow("simulate", config(), stdout=full, code=4)
    assert "standard output" in result.err


def test_stdout_closed_is_exit_4_and_writes_into_no_file(counterflow, config, tmp_path):
    path = config()
    process = subprocess.run(
        ["sh", "-c", f'"{binary()}" compile "{path}" -o "{tmp_path}/out" >&-'],
        stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )
    assert process.returncode == 4, process.stderr
    assert "standard output" in process.stderr
    assert "makespan" not in (tmp_path / "out" / "schedule.csv").read_text(encoding="utf-8")


def test_a_reader_that_goes_away_is_exit_4(counterflow, config):
    read, write = os.pipe()
    os.close(read)
    try:
        result = counterflow("schedules", stdout=write, code=4)
    finally:
        os.close(write)
    assert "standard output" in result.err


@pytest.mark.parametrize("directory", ["file", "file/below", "/dev/null"])
def test_a_file_is_no_folder(counterflow, config, tmp_path, directory):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for command in (("compile",), ("compare", "--schedules", "1f1b")):
        error = counterflow(*command, config(), "-o", directory, code=4).err
        assert "it is not a directory" in error


FOLDER_WRITERS = [("compile",), ("search",), ("frontier",), ("run",),
                  ("compare", "--schedules", "1f1b")]


@pytest.mark.parametrize("directory", ["file", "file/below", "/dev/null", "long" * 80])
@pytest.mark.parametrize("command", FOLDER_WRITERS, ids=lambda command: command[0])
def test_an_unusable_folder_is_refused_before_any_work(counterflow, tmp_path, command, directory):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    # No config is read yet, or its absence would be the error.
    result = counterflow(*command, "no.yaml", "-o", directory, code=4)
    assert f"cannot write {directory.removesuffix('/below')}" in result.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("command", "taken"),
    [
        (("compile",), "out/program.csv"),
        (("search",), "out/schedule.csv"),
        (("frontier",), "out/frontier.svg"),
        (("compare", "--schedules", "1f1b"), "out/compare.html"),
    ],
)
def test_a_folder_in_a_files_place_is_refused_before_any_work(
    counterflow, tmp_path, command, taken
):
    (tmp_path / taken).mkdir(parents=True)
    result = counterflow(*command, "no.yaml", "-o", "out", code=4)
    assert f"cannot write {taken}: it is a directory" in result.err


@pytest.mark.parametrize("file", ["file/new.yaml", "folder", "new/", "long" * 80 + ".yaml"])
def test_an_unusable_file_of_partition_is_refused_before_any_work(counterflow, tmp_path, file):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    assert "cannot write" in counterflow("partition", "no.yaml", "-o", file, code=4).err


@pytest.mark.parametrize("command", FOLDER_WRITERS, ids=lambda command: command[0])
def test_a_usable_folder_is_not_made_before_there_is_something_to_write(
    counterflow, tmp_path, command
):
    counterflow(*command, "no.yaml", "-o", "new/out", code=2)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("directory", ["file", "file/below", "/proc/nothing/here"])
def test_a_folder_that_cannot_be_made_is_exit_4(counterflow, config, tmp_path, directory):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    result = counterflow("compile", config(), "-o", directory, code=4)
    assert "cannot write" in result.err
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_leaves_nothing_behind(counterflow, config, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    result = counterflow("compile", config(), "-o", "new/out", preexec_fn=limit, code=4)
    assert "cannot write" in result.err
    assert not (tmp_path / "new").exists()


def test_no_colour_in_a_pipe(counterflow):
    assert "\033" not in counterflow("nonsense", code=2).err
