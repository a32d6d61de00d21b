"""Reads traces the way viewers do: Chrome's JSON events, and Perfetto's packets from their bytes.

Both come out as one value, Trace. Nothing here knows how counterflow writes them: the field numbers
are those of perfetto/protos/perfetto/trace, and events are taken by ascending time, those of one
time in the order of the file, as Perfetto's importer does.
"""

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Slice:
    rank: int
    track: str
    name: str
    begin: int  # ns
    end: int
    category: str
    arguments: tuple  # (key, value) pairs


@dataclass
class Trace:
    slices: list[Slice] = field(default_factory=list)
    tracks: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))  # by rank
    memory: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    # id -> ends in the order they are met: (time, slice it is bound to, whether it says "the end")
    flows: dict[int, list[tuple]] = field(default_factory=lambda: defaultdict(list))
    events: int = 0


class Track:
    """The stack of open slices of a track; complains where they do not nest."""

    def __init__(self):
        self.open: list[Slice] = []

    def close_until(self, time: int):
        while self.open and self.open[-1].end <= time:
            self.open.pop()

    def push(self, one: Slice):
        self.close_until(one.begin)
        assert not self.open or one.end <= self.open[-1].end, f"{one} overlaps {self.open[-1]}"
        self.open.append(one)


def contents(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def nanoseconds(text: str) -> int:
    whole, _, part = text.partition(".")
    assert len(part) <= 3, f"{text} us is no whole number of ns"
    return int(whole) * 1000 + int(part.ljust(3, "0"))


# ---- Chrome -----------------------------------------------------------------------------------


def read_chrome(path: Path) -> Trace:
    # Numbers as written: a double would round nanoseconds.
    document = json.loads(contents(path), parse_float=str, parse_int=str)
    events = document["traceEvents"]
    trace = Trace(events=len(events))
    names = {}
    for event in events:
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["pid"], event["tid"]] = event["args"]["name"]
            trace.tracks[int(event["pid"])].append(event["args"]["name"])
    tracks = defaultdict(Track)
    timed = [event for event in events if event["ph"] != "M"]
    for event in sorted(timed, key=lambda each: nanoseconds(each["ts"])):
        time, where = nanoseconds(event["ts"]), (event["pid"], event.get("tid"))
        if event["ph"] == "X":
            one = Slice(int(event["pid"]), names[where], event["name"], time,
                        time + nanoseconds(event["dur"]), event["cat"],
                        tuple((key, int(value)) for key, value in event.get("args", {}).items()))
            tracks[where].push(one)
            trace.slices.append(one)
        elif event["ph"] == "C":
            trace.memory[int(event["pid"])].append((time, int(event["args"]["bytes"])))
        else:
            assert event["ph"] in "sf", event
            assert event["ph"] == "s" or event["bp"] == "e", event
            bound = tracks[where].open[-1] if tracks[where].open else None
            trace.flows[int(event["id"])].append((time, bound, event["ph"] == "f"))
    return trace


# ---- Perfetto ---------------------------------------------------------------------------------


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def message(data: bytes) -> dict[int, list]:
    """field number -> its values, in order: int of a varint or fixed64, bytes of the rest."""
    fields = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        else:
            assert wire == 2, f"wire type {wire}"
            size, at = varint(data, at)
            assert at + size <= len(data), "a field reaches past its message"
            value, at = data[at : at + size], at + size
        fields[key >> 3].append(value)
    return fields


def one(fields: dict[int, list], number: int, default=None):
    values = fields.get(number, [default])
    assert len(values) == 1, f"field {number}: {values}"
    return values[0]


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


class PerfettoReader:
    def __init__(self):
        self.trace = Trace()
        self.categories: dict[int, str] = {}
        self.keys: dict[int, str] = {}
        self.ranks: dict[int, int] = {}  # uuid of a process's track -> rank
        self.owners: dict[int, tuple[int, str]] = {}  # uuid of a track -> rank, name
        self.counters: set[int] = set()
        self.open = defaultdict(list)  # uuid -> slices
        self.last = {}  # uuid -> the slice that ended last
        self.flows = []

    def read(self, data: bytes) -> Trace:
        timed = []
        fields = message(data)
        assert list(fields) == [1], "a trace is a list of packets"
        for index, raw in enumerate(fields[1]):
            packet = message(raw)
            assert one(packet, 10) == 1, "every packet belongs to the sequence"
            # Without it a reader discards the events of the sequence.
            assert (one(packet, 13, 0) == 1) == (index == 0), "state is cleared once, at first"
            for interned in packet.get(12, []):
                self.intern(message(interned))
            for descriptor in packet.get(60, []):
                self.describe(message(descriptor))
            for event in packet.get(11, []):
                event = message(event)
                uses_interned = 3 in event or 4 in event
                assert not uses_interned or one(packet, 13) & 2, "it needs the interned data"
                timed.append((one(packet, 8), event, self.labels(event)))
        for time, event, labels in sorted(timed, key=lambda each: each[0]):
            self.take(time, event, *labels)
        assert not any(self.open.values()), "a slice never ends"
        for flow, time, bound, is_end in self.flows:
            self.trace.flows[flow].append((time, bound.slice(), is_end))
        self.trace.events = len(timed) - sum(one(event, 9) == END for _, event, _ in timed)
        return self.trace

    def intern(self, data):
        for number, table in ((1, self.categories), (3, self.keys)):
            for entry in map(message, data.get(number, [])):
                assert one(entry, 1) not in table, "an entry may not be replaced"
                assert one(entry, 1) != 0, "0 is no entry"
                table[one(entry, 1)] = one(entry, 2).decode()

    def describe(self, track):
        uuid = one(track, 1)
        assert uuid != 0 and uuid not in self.owners and uuid not in self.ranks
        if 3 in track:
            process = message(one(track, 3))
            assert one(process, 1) != 0, "process 0 is the kernel's"
            name = one(process, 6).decode()
            assert name.startswith("rank ")
            self.ranks[uuid] = int(name.removeprefix("rank "))
            return
        rank, name = self.ranks[one(track, 5)], one(track, 2).decode()
        self.owners[uuid] = rank, name
        if 8 in track:
            assert name == "memory" and one(message(one(track, 8)), 3) == 3, "bytes"
            self.counters.add(uuid)
        else:
            self.trace.tracks[rank].append(name)

    def labels(self, event) -> tuple[str, tuple]:
        """What is interned is looked up as the packets come, not after sorting."""
        arguments = []
        for annotation in map(message, event.get(4, [])):
            arguments.append((self.keys[one(annotation, 1)], one(annotation, 4)))
        category = self.categories[one(event, 3)] if 3 in event else ""
        return category, tuple(arguments)

    def take(self, time, event, category, arguments):
        kind, uuid = one(event, 9), one(event, 11)
        rank, track = self.owners[uuid]
        assert (uuid in self.counters) == (kind == COUNTER)
        stack = self.open[uuid]
        if kind == COUNTER:
            self.trace.memory[rank].append((time, one(event, 30)))
            return
        if kind == END:
            done = stack.pop()
            done.end = time
            self.last[uuid] = done
            self.trace.slices.append(done.slice())
            return
        if kind == BEGIN:
            name = one(event, 23).decode()
            bound = OpenSlice(rank, track, name, time, category, arguments)
            stack.append(bound)
        else:
            assert kind == INSTANT
            # A mark on the slice that is open around it, or ended at this moment.
            bound = stack[-1] if stack else self.last[uuid]
            assert bound.end in (None, time)
        for number in (47, 48):
            for flow in event.get(number, []):
                assert flow != 0, "0 is no flow"
                self.flows.append((flow, time, bound, number == 48))


@dataclass
class OpenSlice:
    rank: int
    track: str
    name: str
    begin: int
    category: str
    arguments: tuple
    end: int | None = None

    def slice(self) -> Slice:
        return Slice(self.rank, self.track, self.name, self.begin, self.end, self.category,
                     self.arguments)


def read_perfetto(path: Path) -> Trace:
    return PerfettoReader().read(contents(path))


def count_events(path: Path) -> int:
    """As the readers count them, but without a look inside: for large files."""
    data = contents(path)
    if path.name.startswith("trace.json"):
        return data.count(b'"ph":"')
    count = 0
    for raw in message(data)[1]:
        for event in message(raw).get(11, []):
            count += one(message(event), 9) != END
    return count
