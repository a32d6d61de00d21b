"""Counterflow: pipeline-parallel schedules, compiled, proven and simulated.

>>> import counterflow as cf
>>> run = cf.run("config.yaml", schedule="zb-h1", microbatches=32)
>>> run.report.bubble_fraction, run.report.makespan_ns
>>> cf.save(run, "timeline.html")

:func:`plan` reads a config and chooses a schedule, :func:`verify` lists its faults, :func:`compile`
lowers it to a program, :func:`simulate` runs that in virtual time, :func:`measure` makes figures of
the timeline; :func:`run` does all of it. :func:`search` finds a schedule of its own. Values are
immutable; arrays are views into them.
"""

from __future__ import annotations

from counterflow._core import (
    DATA_TYPES,
    INSTRUCTION_KINDS,
    OP_KINDS,
    PAYLOAD_KINDS,
    STREAM_ROLES,
    Comparison,
    Config,
    ConsecutiveSteps,
    Diagnostic,
    DisturbedFigures,
    ExecutionModel,
    Family,
    Jitter,
    NamedRun,
    Op,
    Plan,
    Problem,
    Program,
    RankProgram,
    RankReport,
    Report,
    Robustness,
    Run,
    Scenario,
    Schedule,
    ScheduleFile,
    SearchResult,
    Slot,
    Stream,
    Timeline,
    Trials,
    Verdict,
    __version__,
    compile,  # noqa: A004 (the compiler's word)
    families,
    family,
    generate,
    makespan_ns,
    measure,
    repair,
)
from counterflow.errors import (
    EnvironmentError,  # noqa: A004 (the word of the command line)
    Error,
    InfeasibleError,
    InputError,
    Location,
)
from counterflow.files import load_program, load_report, load_schedule, save
from counterflow.planning import (
    Recipe,
    Rows,
    compare,
    plan,
    read_config,
    recipe,
    run,
    verify,
)
from counterflow.running import search, simulate
from counterflow.tables import columns

__all__ = [
    "DATA_TYPES",
    "INSTRUCTION_KINDS",
    "OP_KINDS",
    "PAYLOAD_KINDS",
    "STREAM_ROLES",
    "Comparison",
    "Config",
    "ConsecutiveSteps",
    "Diagnostic",
    "DisturbedFigures",
    "EnvironmentError",
    "Error",
    "ExecutionModel",
    "Family",
    "InfeasibleError",
    "InputError",
    "Jitter",
    "Location",
    "NamedRun",
    "Op",
    "Plan",
    "Problem",
    "Program",
    "RankProgram",
    "RankReport",
    "Recipe",
    "Report",
    "Robustness",
    "Rows",
    "Run",
    "Scenario",
    "Schedule",
    "ScheduleFile",
    "SearchResult",
    "Slot",
    "Stream",
    "Timeline",
    "Trials",
    "Verdict",
    "__version__",
    "columns",
    "compare",
    "compile",
    "families",
    "family",
    "generate",
    "load_program",
    "load_report",
    "load_schedule",
    "makespan_ns",
    "measure",
    "plan",
    "read_config",
    "recipe",
    "repair",
    "run",
    "save",
    "search",
    "simulate",
    "verify",
]
