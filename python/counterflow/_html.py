"""How values show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from counterflow import _core

_MOST_DRAWN = 20_000  # instructions; a larger picture belongs in a file
_MOST_ROWS = 64
_MOST_CELLS = 24


def _table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    def cells(tag: str, values: Sequence[object]) -> str:
        return "".join(f"<{tag}>{escape(str(value))}</{tag}>" for value in values)

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    heading = f"<thead><tr>{cells('th', head)}</tr></thead>" if head else ""
    return f"<table>{title}{heading}<tbody>{body}</tbody></table>"


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1e6:,.3f} ms"


def _bytes(value: int) -> str:
    return f"{value / 2**20:,.1f} MiB"


def schedule(value: _core.Schedule) -> str:
    """The first cells of every rank."""
    rows = []
    for rank in range(min(value.ranks, _MOST_ROWS)):
        slots = value.slots(rank)
        cells = [str(slot) for slot in slots[:_MOST_CELLS]]
        rows.append([f"rank {rank}", *cells, *(["…"] if len(slots) > _MOST_CELLS else [])])
    left_out = value.ranks - len(rows)
    more = f", {left_out} more ranks" if left_out > 0 else ""
    return _table([], rows, f"{value.name}: {value.ranks} ranks, {len(value)} slots{more}")


def problem(value: _core.Problem) -> str:
    """One row a stage: where it is and what it costs."""
    rows = []
    for stage in range(min(value.stages, _MOST_ROWS)):
        cost = value.costs[stage]
        ranks = ", ".join(str(value.rank_of(stage, replica)) for replica in range(value.replicas))
        rows.append(
            [
                stage,
                ranks,
                _milliseconds(int(cost["forward_ns"])),
                _milliseconds(int(cost["backward_input_ns"])),
                _milliseconds(int(cost["backward_weight_ns"])),
            ]
        )
    caption = (
        f"{value.ranks} ranks, {value.stages} stages ({value.placement}), "
        f"{value.microbatches} microbatches"
    )
    return _table(["stage", "rank", "F", "I", "W"], rows, caption)


def program(value: _core.Program) -> str:
    """One row a rank: how much there is to do on how many streams."""
    rows = []
    for rank in range(min(value.ranks, _MOST_ROWS)):
        part = value.rank(rank)
        rows.append([rank, len(part), len(part.transfers), len(part.streams)])
    head = ["rank", "instructions", "transfers", "streams"]
    return _table(head, rows, f"program of {value.schedule}, hash {value.hash}")


def report(value: _core.Report) -> str:
    """The figures of the run, then one row a rank."""
    figures = [
        ["makespan", _milliseconds(value.makespan_ns)],
        ["lower bound", _milliseconds(value.lower_bound_ns)],
        ["gap", f"{value.gap:.2%}"],
        ["bubble", f"{value.bubble_fraction:.2%}"],
        ["span bubble", f"{value.span_bubble_fraction:.2%}"],
        *[["note", text] for text in value.notes],
        *[["warning", text] for text in value.warnings],
    ]
    ranks = [
        [
            rank,
            _milliseconds(each.busy_ns),
            _milliseconds(each.idle_ns),
            each.peak_activations,
            each.peak_in_flight,
            _bytes(each.peak_memory_bytes),
            _milliseconds(each.comm_exposed_ns),
        ]
        for rank, each in enumerate(value.per_rank[:_MOST_ROWS])
    ]
    head = ["rank", "busy", "idle", "activations", "in flight", "peak memory", "waiting"]
    caption = (
        f"{value.schedule}: {value.ranks} ranks, {value.microbatches} microbatches, "
        f"execution {value.execution or 'ideal'}"
    )
    return _table([], figures, caption) + _table(head, ranks)


def run(value: _core.Run) -> str:
    """The picture and the report."""
    return _picture(value) + report(value.report)


def timeline(value: _core.Timeline) -> str:
    """The picture."""
    return _picture(_core.Run(value, _core.measure(value)))


def _picture(value: _core.Run) -> str:
    count = len(value.program)
    if count > _MOST_DRAWN:
        return f"<p>{count:,} instructions: save(run, 'timeline.html') draws them.</p>"
    svg = value.svg()
    return svg[svg.index("<svg") :]


def trials(value: _core.Trials) -> str:
    """Quantiles, then what is felt most."""
    quantiles = [
        ["mean", _milliseconds(round(value.mean_ns))],
        ["p5", _milliseconds(value.p5_ns)],
        ["p50", _milliseconds(value.p50_ns)],
        ["p95", _milliseconds(value.p95_ns)],
    ]
    felt = [(each, f"rank {rank}") for rank, each in enumerate(value.rank_sensitivities)]
    felt += [(each, f"link {a}-{b}") for (a, b), each in value.link_sensitivities.items()]
    felt.sort(key=lambda each: -each[0])
    most = [[name, f"{each:.2f}"] for each, name in felt[:_MOST_ROWS]]
    caption = f"{len(value)} trials, seed {value.seed}"
    return _table([], quantiles, caption) + (_table(["", "sensitivity"], most) if most else "")


def search_result(value: _core.SearchResult) -> str:
    """The figures, what it stands, the schedule."""
    figures = [
        ["makespan", _milliseconds(value.makespan_ns)],
        ["lower bound", _milliseconds(value.lower_bound_ns)],
        ["gap", f"{value.gap:.2%}"],
        ["found by", value.found_by],
    ]
    stands = value.robustness
    beside = []
    if stands is not None:
        chosen, fastest = stands.chosen, stands.fastest
        beside = [
            ["undisturbed", _milliseconds(chosen.makespan_ns), _milliseconds(fastest.makespan_ns)],
            ["mean", _milliseconds(chosen.mean_ns), _milliseconds(fastest.mean_ns)],
            ["p95", _milliseconds(chosen.p95_ns), _milliseconds(fastest.p95_ns)],
        ]
    tables = _table([], figures)
    if beside:
        tables += _table(["", "chosen", "fastest"], beside)
    return tables + schedule(value.schedule)


def comparison(value: _core.Comparison) -> str:
    """One row a run."""
    rows = [
        [
            name,
            _milliseconds(each.makespan_ns),
            f"{each.bubble_fraction:.2%}",
            max((rank.peak_activations for rank in each.per_rank), default=0),
        ]
        for name, each in zip(value.names, value.reports, strict=True)
    ]
    return _table(["schedule", "makespan", "bubble", "activations"], rows)


def verdict(value: _core.Verdict) -> str:
    """Valid, or one row a fault."""
    semantics = ", ".join(f"{name} {word}" for name, word in value.semantics.items())
    if value.ok:
        return f"<p>valid: {escape(semantics)}</p>"
    rows = [
        [
            fault.rule,
            "" if fault.rank is None else fault.rank,
            "" if fault.index is None else fault.index,
            fault.op or "",
            fault.message,
        ]
        for fault in value.diagnostics[:_MOST_ROWS]
    ]
    return _table(["rule", "rank", "position", "op", "message"], rows, semantics)


def family(value: _core.Family) -> str:
    """What `counterflow schedules` says of it."""
    rows = [
        ["summary", value.summary],
        ["placement", value.placement],
        ["constraints", value.constraints],
        ["idle a rank", value.formula or "none published"],
        ["source", value.source],
    ]
    return _table([], rows, value.name)


def plan(value: _core.Plan) -> str:
    """The problem and the schedule."""
    return problem(value.problem) + schedule(value.schedule)
