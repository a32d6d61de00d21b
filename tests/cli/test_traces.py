"""trace.json and trace.perfetto-trace, read as viewers read them and held against the timeline."""

import gzip
import json
from collections import Counter

import pytest
from harness import EXAMPLES
from trace_readers import Trace, count_events, read_chrome, read_perfetto

READERS = {"trace.json": read_chrome, "trace.perfetto-trace": read_perfetto}

# Durations of odd nanoseconds and large messages: as long as numbers get in practice.
CONFIG = """\
pipeline: {ranks: %d, microbatches: %d, schedule: %s}
stages: {forward: 18.522371ms, backward_input: 18.086413ms, backward_weight: 9.337129ms,
         activation: 100MiB, weight_activation: 30MiB}
links: {latency: %s, message: 56MiB%s}
execution: %s
"""

RUNS = {
    "a link of its own for each message": CONFIG % (8, 24, "zb-h1", "601237ns", "", "ideal"),
    "messages that overtake compute": CONFIG % (4, 12, "1f1b", "95ms", "", "ideal"),
    "limited bandwidth": CONFIG % (4, 8, "interleaved-1f1b, chunks: 2", "11us",
                                   ", bandwidth: 3GB/s", "ideal"),
    "receives posted early": CONFIG % (8, 16, "zb-h2", "601237ns", "", "nccl"),
    "receives posted early, no latency": CONFIG % (4, 8, "gpipe", "0ns", "", "gloo"),
    "both directions, fused pairs": CONFIG % (8, 20, "dualpipe", "601237ns", "", "nccl"),
    "no time at all": """\
pipeline: {ranks: 3, microbatches: 4, schedule: 1f1b}
stages: {forward: 0ns, backward_input: 0ns, backward_weight: 0ns}
""",
    "a file with its own communication, in groups": """\
pipeline: {ranks: 2, microbatches: 2, placement: loop, schedule: order.csv}
stages: {forward: 3ms, backward_input: 2ms, backward_weight: 2ms}
links: {latency: 0.5ms}
""",
}


ORDER = """\
0F0,0SEND_F0,0F1,[0SEND_F1;0RECV_B0],0B0,0RECV_B1,0B1
1RECV_F0,1F0,1B0,[1SEND_B0;1RECV_F1],1F1,1B1,1SEND_B1
"""


class Compiled:
    def __init__(self, folder):
        self.folder = folder
        self.ranks = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))["ranks"]
        self.program = json.loads((folder / "program.json").read_text(encoding="utf-8"))

    def trace(self, name) -> Trace:
        return READERS[name](self.folder / name)

    def slices(self) -> Counter:
        """(rank, stream, name, begin, end) of every instruction."""
        found = Counter()
        for rank, lane in enumerate(self.ranks):
            labels = [stream["label"] or stream["role"] for stream in lane["streams"]]
            for stream, kind, op, begin, end, _ in lane["instructions"]:
                found[rank, labels[stream], shown(kind, op), begin, end] += 1
        return found

    def messages(self) -> Counter:
        """(rank and index of the instruction that sends, and of the one that receives) of each."""
        columns = self.program["columns"]
        instruction = {name: i for i, name in enumerate(columns["instructions"])}
        transfer = {name: i for i, name in enumerate(columns["transfers"])}
        ends = {}
        for rank, entry in enumerate(self.program["ranks"]):
            for index, row in enumerate(entry["instructions"]):
                if row[instruction["kind"]] != "transfer":
                    continue
                first, count = row[instruction["body"]], row[instruction["body_count"]]
                for end in entry["transfers"][first : first + count]:
                    peer, is_send = end[transfer["peer"]], end[transfer["is_send"]] == 1
                    channel = (rank, peer) if is_send else (peer, rank)
                    key = (row[instruction["communicator"]], channel, end[transfer["sequence"]])
                    ends.setdefault(key, {})[is_send] = (rank, index)
        return Counter((self.identity(*end[True]), self.identity(*end[False]))
                       for end in ends.values())

    def identity(self, rank, index):
        _, kind, op, begin, end, _ = self.ranks[rank]["instructions"][index]
        return rank, shown(kind, op), begin, end


def shown(kind: int, ops: str) -> str:
    names = ops.split(";")
    if kind == 1 and len(names) > 1:
        return f"{names[0]} and {len(names) - 1} more"
    return "&".join(names)


def stream_of(track: str) -> str:
    """The name of a stream's second track and on is its own with a number."""
    return track[: track.rindex(" (")] if track.endswith(")") else track


@pytest.fixture(params=RUNS, ids=lambda name: name.replace(" ", "-"))
def compiled(request, counterflow, config, tmp_path):
    (tmp_path / "order.csv").write_text(ORDER, encoding="utf-8")
    counterflow("compile", config(RUNS[request.param]), "-o", "out", "-q", "--emit",
                ",".join(["timeline.json", "program.json", *READERS]), code=0)
    return Compiled(tmp_path / "out")


@pytest.mark.parametrize("name", READERS)
def test_every_instruction_is_one_slice_at_its_time(compiled, name):
    slices = compiled.trace(name).slices
    found = Counter((one.rank, stream_of(one.track), one.name, one.begin, one.end)
                    for one in slices)
    assert found == compiled.slices()


@pytest.mark.parametrize("name", READERS)
def test_slices_nest_and_only_what_overlaps_has_a_track_of_its_own(compiled, name):
    trace = compiled.trace(name)  # the readers complain about slices that cross
    for rank, lane in enumerate(compiled.ranks):
        labels = [stream["label"] or stream["role"] for stream in lane["streams"]]
        assert [track for track in trace.tracks[rank] if not track.endswith(")")] == labels
        assert len(trace.tracks[rank]) == len(set(trace.tracks[rank]))
        for stream, label in enumerate(labels):
            tracks = sum(stream_of(track) == label for track in trace.tracks[rank])
            assert tracks == max(most_at_once(lane, stream), 1), label


def most_at_once(lane, stream) -> int:
    steps = []
    for which, _, _, begin, end, _ in lane["instructions"]:
        if which == stream and begin < end:
            steps += [(begin, 1), (end, -1)]
    most = now = 0
    for _, step in sorted(steps):
        now += step
        most = max(most, now)
    return most


@pytest.mark.parametrize("name", READERS)
def test_a_flow_leads_from_each_send_to_its_receive(compiled, name):
    found = Counter()
    for ends in compiled.trace(name).flows.values():
        (left, sender, is_last), (arrived, receiver, is_end) = ends
        assert not is_last and is_end
        assert sender is not None and receiver is not None
        assert sender.begin == left <= arrived <= max(receiver.end, left)
        assert receiver.begin <= arrived
        found[tuple((one.rank, one.name, one.begin, one.end) for one in (sender, receiver))] += 1
    assert found == compiled.messages()


@pytest.mark.parametrize("name", READERS)
def test_the_memory_counter_is_the_timelines(compiled, name):
    memory = compiled.trace(name).memory
    for rank, lane in enumerate(compiled.ranks):
        assert memory[rank] == [(max(at, 0), held) for at, held in lane["memory"]], rank


def test_both_formats_say_the_same(compiled):
    chrome, perfetto = (compiled.trace(name) for name in READERS)
    assert Counter(chrome.slices) == Counter(perfetto.slices)
    assert chrome.tracks == perfetto.tracks
    assert chrome.memory == perfetto.memory


@pytest.mark.parametrize(
    ("ranks", "schedule", "execution"),
    [(8, "zb-h1", "ideal"), (8, "1f1b", "nccl"), (64, "zb-h1", "nccl"), (64, "1f1b", "ideal")],
)
def test_an_event_takes_120_bytes_at_most(
    counterflow, config, tmp_path, ranks, schedule, execution
):
    text = CONFIG % (ranks, 3 * ranks, schedule, "601237ns", "", execution)
    counterflow("compile", config(text), "-o", "out", "-q", "--emit", ",".join(READERS), code=0)
    for name, reader in READERS.items():
        path = tmp_path / "out" / name
        events = count_events(path)
        assert ranks > 8 or events == reader(path).events
        assert events > 9 * ranks * ranks
        assert path.stat().st_size <= 120 * events, name


def test_gzip_holds_the_same_bytes(counterflow, tmp_path):
    names = [name + suffix for name in READERS for suffix in ("", ".gz")]
    counterflow("compile", EXAMPLES / "dualpipe_p8_m20.yaml", "-o", "out", "-q",
                "--emit", ",".join(names), code=0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(names)
    for name in READERS:
        plain, packed = ((tmp_path / "out" / (name + end)).read_bytes() for end in ("", ".gz"))
        assert gzip.decompress(packed) == plain
        assert len(packed) < len(plain) / 3


def test_only_trace_json_is_written_unasked(counterflow, config, tmp_path):
    counterflow("compile", config(), "-o", "out", "-q", "--emit", "trace", code=0)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trace.json"]
