"""From a config to a schedule, a proof and figures.

A *config* is the path of a YAML file, YAML text (anything with a line break), or a mapping of the
same keys. Times are nanoseconds and sizes bytes wherever a figure comes out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from counterflow import _core
from counterflow._core import (
    Comparison,
    Config,
    ExecutionModel,
    NamedRun,
    Op,
    Plan,
    Problem,
    Run,
    Schedule,
    ScheduleFile,
    Slot,
    Verdict,
)

ConfigLike: TypeAlias = "str | os.PathLike[str] | Mapping[str, object]"
Cell: TypeAlias = "Op | Slot | str | tuple[Op | str, Op | str]"
Rows: TypeAlias = "Iterable[Iterable[Cell]]"
Asked: TypeAlias = Literal["all", "buffered", "posted", "rendezvous"]


@dataclass(frozen=True)
class Recipe:
    """A schedule family of your own: from a problem to one row of cells a rank.

    ``placement`` (loop, v, wave, bidirectional) and ``chunks`` (stages a rank) count where the
    config leaves them open. A cell is an :class:`Op`, a :class:`Slot`, a pair of ops, or text such
    as ``"0F3"``; ``B`` is the full backward, ``I`` then ``W`` its two parts.
    """

    name: str
    make: Callable[[Problem], Rows]
    placement: str = "loop"
    chunks: int = 1
    forward_only: bool = False

    def __call__(self, problem: Problem) -> Schedule:
        """The order for this problem; not verified yet."""
        return Schedule(self.name, self.make(problem))


def recipe(
    name: str, *, placement: str = "loop", chunks: int = 1, forward_only: bool = False
) -> Callable[[Callable[[Problem], Rows]], Recipe]:
    """Makes a :class:`Recipe` of the function below it."""

    def decorate(make: Callable[[Problem], Rows]) -> Recipe:
        return Recipe(name, make, placement, chunks, forward_only)

    return decorate


ScheduleLike: TypeAlias = "str | os.PathLike[str] | Schedule | Recipe | Callable[[Problem], Rows]"


def _as_yaml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _assignments(
    overrides: Mapping[str, object] | None, shortcuts: Mapping[str, object | None]
) -> list[str]:
    pairs = list((overrides or {}).items())
    pairs += [(key, value) for key, value in shortcuts.items() if value is not None]
    return [f"{key}={_as_yaml(value)}" for key, value in pairs]


def read_config(config: ConfigLike, overrides: Sequence[str] = ()) -> Config:
    """Reads and checks a config; overrides are ``key.path=value``. Raises InputError."""
    assignments = list(overrides)
    if isinstance(config, Mapping):
        return _core.parse_config(
            json.dumps(config, ensure_ascii=False, indent=1), "config", assignments
        )
    text = os.fspath(config)
    if "\n" in text:
        return _core.parse_config(text, "config", assignments)
    return _core.read_config(text, assignments)


def _as_recipe(schedule: ScheduleLike | None) -> Recipe | None:
    if isinstance(schedule, Recipe):
        return schedule
    if callable(schedule):
        return Recipe(getattr(schedule, "__name__", "schedule"), schedule)
    return None


def _stages_a_rank(schedule: Schedule, ranks: int) -> int:
    stages = 1
    for rank in range(schedule.ranks):
        slots = schedule.array(rank)
        for side in ("first", "second"):
            stages = max(stages, 1 + int(slots[side]["stage"].max(initial=0)))
    return max(1, -(-stages // ranks))


def plan(
    config: ConfigLike,
    *,
    schedule: ScheduleLike | None = None,
    execution: str | ExecutionModel | None = None,
    ranks: int | None = None,
    microbatches: int | None = None,
    chunks: int | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Plan:
    """The problem a config describes and the schedule chosen for it; not verified yet.

    ``schedule`` is a family's name, ``"auto"``, the path of a ``.csv`` file, a :class:`Schedule`,
    or a :class:`Recipe` (any function from a problem to rows). The other arguments override the
    config's keys of the same name, ``overrides`` any key by its path: ``{"links.latency": "1ms"}``.
    Raises InputError, and InfeasibleError where ``auto`` finds none within the memory limits.
    """
    own = _as_recipe(schedule)
    named = schedule.name if isinstance(schedule, Schedule) else own.name if own else None
    if named is None and schedule is not None:
        named = os.fspath(schedule)  # type: ignore[arg-type]
    shortcuts = {
        "pipeline.schedule": named,
        "pipeline.ranks": ranks,
        "pipeline.microbatches": microbatches,
        "pipeline.chunks": chunks,
        "execution": _rules(execution),
    }
    read = read_config(config, _assignments(overrides, shortcuts))
    if isinstance(schedule, Schedule):
        of_schedule = _core.make_problem(read, "loop", _stages_a_rank(schedule, read.ranks), False)
        return Plan(read, of_schedule, schedule)
    if own is not None:
        problem = _core.make_problem(read, own.placement, own.chunks, own.forward_only)
        return Plan(read, problem, own(problem))
    # A path in a config is relative to it, one from the caller to the working directory.
    from_file = schedule is None and not isinstance(config, Mapping) and os.path.exists(read.file)
    return _core.make_plan(read, os.path.dirname(read.file) if from_file else "")


def _rules(execution: str | ExecutionModel | None) -> object:
    if not isinstance(execution, ExecutionModel):
        return execution
    return {
        "semantics": execution.semantics,
        "independent_transfers": execution.independent_transfers,
        "serial_communicators": execution.serial_communicators,
        "launch_order": execution.launch_order,
        "hardware_queues": execution.hardware_queues,
    }


def run(config: ConfigLike | Plan, *, steps: int = 1, **arguments: object) -> Run:
    """Plans (see :func:`plan` for the arguments), verifies, compiles, simulates and measures.

    With ``steps`` also that many, up to 1000, one behind the other without a barrier: the report's
    ``consecutive_steps`` has the steady time of one. Program, timeline and all other figures are of
    a single step.

    Raises InputError; InfeasibleError, with the faults as ``diagnostics``, where the schedule is
    faulty, can deadlock under any of the three transfer rules or exceeds the memory limits.
    """
    if isinstance(config, Plan):
        return config.run(steps)
    return plan(config, **arguments).run(steps)  # type: ignore[arg-type]


def verify(
    problem: Problem, schedule: Schedule | ScheduleFile, semantics: Asked = "all"
) -> Verdict:
    """Every fault of an order, and of the program it is lowered to.

    ``semantics``: the transfer rules whose deadlocks count as faults. A faulty schedule is data,
    not an exception.
    """
    if isinstance(schedule, ScheduleFile):
        return _core.verify_file(problem, schedule, semantics)
    return _core.verify(problem, schedule, semantics)


def compare(runs: Mapping[str, Run] | Iterable[Run | str | os.PathLike[str]]) -> Comparison:
    """Several runs side by side: runs under their schedules' names, a mapping of names to runs, or
    paths of ``timeline.json`` files. Raises InputError."""
    if isinstance(runs, Mapping):
        return Comparison([NamedRun(name, each) for name, each in runs.items()])
    named = []
    for each in runs:
        if isinstance(each, Run):
            named.append(NamedRun(each.report.schedule, each))
        else:
            named.append(NamedRun.from_json(read_text(each), os.fspath(each)))
    return Comparison(named)


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file you named. Raises InputError with the system's reason."""
    from counterflow.errors import InputError

    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read '{os.fspath(path)}': {error}", os.fspath(path)) from error
