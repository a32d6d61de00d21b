"""Runs of one process a rank: alone, under a launcher, and with something that goes wrong."""

import os
import random
import signal
import socket
import subprocess
import time

import pytest
from harness import TIMEOUT_S, binary

CONFIG = """\
pipeline: {ranks: 3, microbatches: 4, schedule: 1f1b}
stages: {forward: 2ms, backward_input: 2ms, backward_weight: 2ms, activation: 1KiB}
links: {latency: 10us, bandwidth: 1GB/s, message: 4KiB}
execution: nccl
"""
# With reductions of tied parameters, the norm of all gradients and steps after the last gradient.
OPTIMIZER = """\
optimizer:
  {{gradients: 4KiB, bucket: 1KiB, step: 2ms, global_norm: true,
    tied: [{{stages: [0, {last}], size: 512B}}]}}
"""
# Long enough that nothing else is late, on a loaded machine under a sanitizer too.
PATIENCE_S = 3
# What is not late but wrong is not to be waited for.
NO_HURRY_S = 60


def without_launcher():
    names = ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MASTER_ADDR", "MASTER_PORT")
    return {name: value for name, value in os.environ.items() if name not in names}


def has_gloo():
    # What is wrong with the program comes after.
    result = subprocess.run(
        [binary(), "run", "--backend", "gloo", "--program", "/dev/null"],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )
    return result.returncode != 4


@pytest.fixture(scope="session")
def built_with_gloo():
    if not has_gloo():
        pytest.skip("built without libgloo-dev")


needs_gloo = pytest.mark.usefixtures("built_with_gloo")


@pytest.fixture
def gloo(counterflow, config, tmp_path):
    """Runs over gloo; afterwards no process and no folder of it is left."""
    folder = tmp_path / "tmp"
    folder.mkdir()

    def run(*arguments, text=CONFIG, **options):
        env = without_launcher() | {"TMPDIR": str(folder)}
        return counterflow("run", config(text), "--backend", "gloo", *arguments, env=env, **options)

    run.diagnose = lambda folder: counterflow("diagnose", folder, "--json", code=0).json["culprit"]
    yield run
    assert list(folder.iterdir()) == []
    assert children_named(str(folder)) == []


def children_named(mark):
    """Processes with this text in their environment, this one and its tools excepted."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if f"TMPDIR={mark}".encode() in file.read().split(b"\0"):
                    found.append(int(entry))
        except OSError:
            continue
    return found


@needs_gloo
@pytest.mark.parametrize("execution", ["ideal", "nccl", "gloo"])
def test_runs_alone(gloo, execution):
    run = gloo("--steps", 2, "--compare", "--json", "--execution", execution, code=0).json
    assert run["completed"] is True
    assert len(run["makespans_ns"]) == 2
    kinds = {kind["kind"]: kind["count"] for kind in run["prediction_error"]["kinds"]}
    assert kinds == {"F": 12, "B": 12, "SEND_F": 8, "RECV_F": 8, "SEND_B": 8, "RECV_B": 8}
    # Clocks are aligned: no message arrives before its sender has begun to make it.
    assert run["report"]["makespan_ns"] > 3 * 2_000_000


@needs_gloo
def test_writes_what_threads_write(gloo, tmp_path):
    gloo("-o", "out", code=0)
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"run.json", "timeline.html", "trace.json"} <= written


@needs_gloo
@pytest.mark.parametrize("execution", ["ideal", "nccl", "gloo"])
def test_runs_what_comes_after_the_last_gradient(gloo, execution):
    run = gloo(
        "--steps", 3, "--compare", "--json", "--execution", execution,
        text=CONFIG + OPTIMIZER.format(last=2), code=0,
    ).json
    assert run["completed"] is True
    assert len(run["makespans_ns"]) == 3
    kinds = {kind["kind"]: kind["count"] for kind in run["prediction_error"]["kinds"]}
    assert kinds["NORM"] == kinds["STEP"] == 3
    assert kinds["REDUCE_GRAD"] == 2
    # No rank steps before the norm of all gradients is there.
    assert run["report"]["step_ns"] > 3 * 6_000_000


# What each is told by; those that are only late have to be waited for.
FAULTS = {
    "kill": "gone", "stall": "has run for", "slow": "has run for", "drop": "does not arrive",
    "duplicate": "second time", "reorder": "", "corrupt": "other bytes", "size": "B of",
}
LATE = ("stall", "slow", "drop")
OF_RANK = ("kill", "stall", "slow")
# COUNTERFLOW_INJECTIONS=200 for a long run.
INJECTIONS = int(os.environ.get("COUNTERFLOW_INJECTIONS", "16"))


@needs_gloo
def test_a_store_that_is_not_there_is_said(counterflow, config):
    env = without_launcher() | {
        "RANK": "0", "WORLD_SIZE": "3", "COUNTERFLOW_STORE": "/nowhere/store",
    }
    err = counterflow("run", config(CONFIG), "--backend", "gloo", env=env, code=4).err
    assert "COUNTERFLOW_STORE=/nowhere/store: there is no such folder" in err


@needs_gloo
def test_needs_no_folder_for_temporary_files(counterflow, config):
    env = without_launcher() | {"TMPDIR": "/nowhere"}
    counterflow("run", config(CONFIG), "--backend", "gloo", env=env, code=0)


@needs_gloo
def test_runs_pipelines_side_by_side(gloo):
    text = CONFIG.replace("ranks: 3", "ranks: 2")
    text += "optimizer: {data_parallel: 2, gradients: 4KiB, bucket: 2KiB, step: 1ms}\n"
    done = gloo("--steps", 2, "--json", text=text, code=0).json
    assert len(done["report"]["per_rank"]) == 4
    assert done["report"]["step_ns"] > done["report"]["makespan_ns"]


@needs_gloo
@pytest.mark.parametrize("seed", range(INJECTIONS))
def test_every_fault_ends_the_run_and_is_named(gloo, tmp_path, seed):
    draw = random.Random(seed)
    kind = list(FAULTS)[seed % len(FAULTS)]
    ranks, microbatches = draw.randint(2, 4), draw.randint(3, 5)
    # Every rank runs more ops in a step, and sends at least as many messages.
    culprit, at = draw.randrange(ranks), draw.randrange(microbatches)
    # A hundred times as slow is later than the patience.
    text = CONFIG.replace("2ms", "50ms")
    # Every other time with collectives, at a message that is one of theirs at the first and last rank.
    if seed // len(FAULTS) % 2 == 1:
        text += OPTIMIZER.format(last=ranks - 1)
        if kind not in OF_RANK:
            at = microbatches + draw.randrange(4)
    # That it ends at all is seen to by the harness.
    result = gloo(
        "--ranks", ranks, "--microbatches", microbatches, "--steps", 2,
        "--schedule", draw.choice(["1f1b", "gpipe", "zb-h1"]),
        "--execution", draw.choice(["nccl", "gloo", "ideal"]),
        "--fault", f"{kind}@{culprit}:{at}",
        "--patience", f"{PATIENCE_S if kind in LATE else NO_HURRY_S}s",
        "--json", "-o", "out", text=text, code=4,
    )
    run = result.json
    assert run["completed"] is False
    assert run["failure"]["culprit"] == culprit, run["failure"]
    assert FAULTS[kind] in run["failure"]["reason"]
    assert f"rank {culprit}" in result.err
    # Nothing but what each rank recorded; whoever is gone wrote nothing.
    names = {path.name for path in (tmp_path / "out").iterdir()}
    expected = {f"flight_record_{r}" for r in range(ranks) if kind != "kill" or r != culprit}
    assert names == expected
    assert gloo.diagnose("out") == culprit


@needs_gloo
def test_a_slow_rank_is_a_straggler(gloo):
    # From its second step on, each op of rank 1 takes a hundred times as long.
    text = CONFIG.replace("microbatches: 4", "microbatches: 2").replace("2ms", "1ms")
    statistics = gloo(
        "--steps", 7, "--fault", "slow@1:4", "--json", "--patience", f"{NO_HURRY_S}s",
        text=text, code=0,
    ).json["statistics"]
    named = {(found["rank"], found["kind"]): found for found in statistics["stragglers"]}
    for kind in ("F", "B"):
        found = named[1, kind]
        assert found["than"] == "peers"
        assert found["factor"] > 1.1
        assert found["since_step"] <= 1
        assert found["cost_ns"] > 0


@needs_gloo
def test_refuses_what_is_no_fault(gloo):
    for fault in ("kill", "kill@1", "explode@1:2", "kill@-1:2", "kill@7:2", "kill@1:2x"):
        assert fault in gloo("--fault", fault, code=2).err


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start_ranks(config, names, more, size=3, arguments=()):
    rank_name, size_name = names
    processes = []
    for rank in range(size):
        env = without_launcher() | {rank_name: str(rank), size_name: str(size)} | more
        processes.append(
            subprocess.Popen(
                [binary(), "run", config, "--backend", "gloo", "--json", *arguments],
                env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )
    return [(*p.communicate(timeout=TIMEOUT_S), p.returncode) for p in processes]


@needs_gloo
@pytest.mark.parametrize(
    "names",
    [("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
     ("PMI_RANK", "PMI_SIZE")],
)
def test_runs_under_a_launcher(config, tmp_path, names):
    path = config(CONFIG)
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if names[0] == "PMI_RANK":
        (tmp_path / "store").mkdir()
        more = {"COUNTERFLOW_STORE": str(tmp_path / "store")}
    more["COUNTERFLOW_ADDRESS"] = "127.0.0.1"
    ends = start_ranks(path, names, more)
    assert [code for _, _, code in ends] == [0, 0, 0], ends
    assert '"completed":true' in ends[0][0].replace(" ", "")
    assert ends[1][0] == ends[2][0] == ""


@needs_gloo
def test_ranks_with_different_programs_do_not_start(config):
    path = config(CONFIG)
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
            "COUNTERFLOW_ADDRESS": "127.0.0.1"}
    env = [without_launcher() | more | {"RANK": str(r), "WORLD_SIZE": "3"} for r in range(3)]
    processes = [
        subprocess.Popen(
            [binary(), "run", path, "--backend", "gloo", "--microbatches", str(5 if r == 2 else 4)],
            env=env[r], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for r in range(3)
    ]
    ends = [(*p.communicate(timeout=TIMEOUT_S), p.returncode) for p in processes]
    assert all(code == 4 for _, _, code in ends), ends
    assert all("give all ranks the same input" in err for _, err, _ in ends)


@needs_gloo
def test_launcher_of_another_size(config):
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    env = without_launcher() | more | {"RANK": "0", "WORLD_SIZE": "2"}
    result = subprocess.run(
        [binary(), "run", config(CONFIG), "--backend", "gloo"],
        env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )
    assert result.returncode == 2
    assert "2 ranks (WORLD_SIZE=2), the program has 3" in result.stderr
    assert "mpirun -np 3" in result.stderr
    assert "unset WORLD_SIZE" in result.stderr


def as_rank(counterflow, path, rank, size=3, code=4, **more):
    env = without_launcher() | {"RANK": str(rank), "WORLD_SIZE": str(size)} | more
    # Were it not kept to, half a minute would go by: the harness's patience is longer.
    arguments = ("--backend", "gloo", "--patience", "300ms")
    return counterflow("run", path, *arguments, env=env, code=code).err


@needs_gloo
def test_ranks_that_do_not_come_are_named(counterflow, config, tmp_path):
    path = config(CONFIG)
    port = str(free_port())
    err = as_rank(counterflow, path, 0, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    assert "rank 0 has waited 300 ms for the 2 others, and ranks 1, 2 did not come" in err
    assert f"127.0.0.1:{port}" in err
    (tmp_path / "store").mkdir()
    err = as_rank(counterflow, path, 2, COUNTERFLOW_STORE=str(tmp_path / "store"))
    assert "rank 2 has waited 300 ms for the 2 others, and ranks 0, 1 did not come" in err


@needs_gloo
def test_a_host_that_is_none_is_told_from_one_that_does_not_answer(counterflow, config):
    path = config(CONFIG)
    port = str(free_port())
    err = as_rank(counterflow, path, 1, MASTER_ADDR="no.such.host.invalid", MASTER_PORT=port)
    assert "MASTER_ADDR=no.such.host.invalid: there is no such host" in err
    err = as_rank(counterflow, path, 1, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    assert f"rank 0 does not answer at 127.0.0.1:{port} within 300 ms: Connection refused" in err
    assert "no such host" not in err


@needs_gloo
def test_a_port_that_is_not_set_is_said(counterflow, config):
    err = as_rank(counterflow, config(CONFIG), 0, MASTER_ADDR="127.0.0.1")
    assert "MASTER_ADDR is set and MASTER_PORT is not" in err
    assert "MASTER_PORT=29500" in err


@needs_gloo
def test_a_store_of_an_earlier_run_is_said(config, tmp_path):
    path = config(CONFIG)
    (tmp_path / "store").mkdir()
    more = {"COUNTERFLOW_STORE": str(tmp_path / "store"), "COUNTERFLOW_ADDRESS": "127.0.0.1"}
    names = ("RANK", "WORLD_SIZE")
    assert [code for _, _, code in start_ranks(path, names, more)] == [0, 0, 0]
    for rank, (_, err, code) in enumerate(start_ranks(path, names, more)):
        assert code == 4
        assert f"rank {rank} has come already, in an earlier run" in err
        assert "an empty folder in every run" in err


@needs_gloo
def test_a_rank_without_memory_is_named_and_what_it_needs(gloo, config):
    if b"__asan_init" in binary().read_bytes():
        pytest.skip("the address sanitizer ends whoever asks for so much, where new throws")
    setting = ("--set", "stages.activation=20TiB")
    failure = gloo(*setting, "--json", code=4).json["failure"]
    assert failure["rank"] == failure["culprit"]
    assert "there is no memory for the 65970697666560 bytes" in failure["reason"]
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
            "COUNTERFLOW_ADDRESS": "127.0.0.1"}
    ends = start_ranks(config(CONFIG), ("RANK", "WORLD_SIZE"), more, arguments=setting)
    assert [code for _, _, code in ends] == [4, 4, 4]
    # Each may have heard of another first.
    errors = [f"rank {rank}: there is no memory for the" in err
              for rank, (_, err, _) in enumerate(ends)]
    assert any(errors), ends


@needs_gloo
def test_a_stopped_rank_is_named_and_ended(config, tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    process = subprocess.Popen(
        [binary(), "run", config(CONFIG.replace("2ms", "500ms")), "--backend", "gloo",
         "--patience", f"{PATIENCE_S}s"],
        env=without_launcher() | {"TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    deadline = time.monotonic() + TIMEOUT_S
    while len(children_named(str(folder))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    ranks = [pid for pid in children_named(str(folder)) if pid != process.pid]
    os.kill(ranks[0], signal.SIGSTOP)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 4
    assert "has said nothing for" in err or "did not come" in err, err
    assert children_named(str(folder)) == []


@needs_gloo
def test_ended_from_outside_leaves_nothing(config, tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    text = CONFIG.replace("2ms", "500ms")
    process = subprocess.Popen(
        [binary(), "run", config(text), "--backend", "gloo"],
        env=without_launcher() | {"TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + TIMEOUT_S
    while len(children_named(str(folder))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(children_named(str(folder))) == 4
    process.kill()
    process.wait()
    while children_named(str(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children_named(str(folder)) == []
    assert list(folder.iterdir()) == []


def test_without_gloo_it_says_so(counterflow, config):
    if has_gloo():
        counterflow("run", config(CONFIG), "--backend", "gloo", "--help", code=0)
    else:
        result = counterflow("run", config(CONFIG), "--backend", "gloo", code=4)
        assert "libgloo-dev" in result.err
