"""Programs in virtual time, once or many times over, undisturbed or not; orders that stand it.

What varies is a *jitter*: that of a config (``plan.config.jitter``), or a mapping of the same keys
(``{"compute": 0.05}``). What goes wrong is a *scenario*: the path of its YAML file, its text, or a
mapping of the same keys (``{"slow": [{"rank": 2, "factor": 1.5}]}``). docs/report.md has the keys.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias, overload

from counterflow import _core
from counterflow._core import (
    ExecutionModel,
    Jitter,
    Plan,
    Problem,
    Program,
    Scenario,
    Schedule,
    SearchResult,
    Timeline,
    Trials,
)
from counterflow.errors import InputError
from counterflow.planning import read_text

JitterLike: TypeAlias = "Jitter | Mapping[str, object]"
ScenarioLike: TypeAlias = "Scenario | str | os.PathLike[str] | Mapping[str, object]"
Goal: TypeAlias = Literal["makespan", "span", "mean", "p95"]

_NO_JITTER = (
    "there is no jitter to draw from; give jitter={'compute': 0.05} or the config's own, "
    "plan.config.jitter"
)


def _as_jitter(jitter: JitterLike | None, problem: Problem) -> Jitter | None:
    if not isinstance(jitter, Mapping):
        return jitter
    return _core.parse_jitter(problem, json.dumps(jitter, ensure_ascii=False, indent=1), "jitter")


def _as_scenario(scenario: ScenarioLike | None, problem: Problem) -> Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    if scenario is None:
        return _core.parse_scenario(problem, "{}", "scenario")
    if isinstance(scenario, Mapping):
        text = json.dumps(scenario, ensure_ascii=False, indent=1)
        return _core.parse_scenario(problem, text, "scenario")
    given = os.fspath(scenario)
    if "\n" in given:
        return _core.parse_scenario(problem, given, "scenario")
    return _core.parse_scenario(problem, read_text(given), given)


def _as_rules(execution: str | ExecutionModel) -> ExecutionModel:
    return ExecutionModel.preset(execution) if isinstance(execution, str) else execution


@overload
def simulate(
    program: Program,
    problem: Problem,
    execution: str | ExecutionModel = "ideal",
    *,
    trials: None = None,
    scenario: ScenarioLike | None = None,
) -> Timeline: ...
@overload
def simulate(
    program: Program,
    problem: Problem,
    execution: str | ExecutionModel = "ideal",
    *,
    trials: int,
    jitter: JitterLike | None = None,
    scenario: ScenarioLike | None = None,
    seed: int | None = None,
    threads: int = 0,
    sensitivity: bool = True,
) -> Trials: ...
def simulate(
    program: Program,
    problem: Problem,
    execution: str | ExecutionModel = "ideal",
    *,
    trials: int | None = None,
    jitter: JitterLike | None = None,
    scenario: ScenarioLike | None = None,
    seed: int | None = None,
    threads: int = 0,
    sensitivity: bool = True,
) -> Timeline | Trials:
    """Runs a program in virtual time over the problem's links, under a machine's rules.

    With ``trials`` that many times under ``jitter``: quantiles and, unless ``sensitivity`` is
    false, how much each rank and link is felt. ``seed`` overrides the jitter's own; ``threads`` (0:
    one a core) change nothing but the time. Raises InfeasibleError, with the cycle or the trial,
    where a run does not come to its end.
    """
    rules = _as_rules(execution)
    wrong = _as_scenario(scenario, problem)
    if trials is None:
        return _core.simulate(program, problem, rules, wrong)
    drawn = _as_jitter(jitter, problem)
    if drawn is None:
        raise InputError(f"trials={trials}: {_NO_JITTER}")
    return _core.run_trials(
        program, problem, rules, drawn, wrong, trials, seed, threads, sensitivity
    )


def search(
    problem: Problem | Plan,
    *,
    seeds: Iterable[Schedule] = (),
    iterations: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    goal: Goal = "makespan",
    objective: Callable[[Schedule], float] | None = None,
    trials: int | None = None,
    jitter: JitterLike | None = None,
    scenario: ScenarioLike | None = None,
    execution: str | ExecutionModel | None = None,
    draws: int | None = None,
    threads: int = 0,
) -> SearchResult:
    """The best order found for a problem's costs, placement and limits.

    Never worse at the goal than a published family that fits, or than one of ``seeds``. The budget
    is ``iterations`` (default, as many as suit; the same result every time) or ``seconds``.

    ``goal``: ``makespan``; ``span``, the longest of a rank; or ``mean`` or ``p95`` of the makespans
    under ``jitter`` and a ``scenario`` (see :func:`simulate`), over ``trials`` draws of the seed
    ``draws``. A :class:`Plan` gives its schedule as a seed, and its config's execution model and
    jitter where none are given. ``objective`` is a goal of your own, in nanoseconds, called for
    some dozens of the best orders and for each seed; ``math.inf`` for an order that will not do.

    Raises InputError, and InfeasibleError where no order fits the memory.
    """
    if isinstance(problem, Plan):
        seeds = [problem.schedule, *seeds]
        execution = problem.config.execution if execution is None else execution
        jitter = problem.config.jitter if jitter is None else jitter
        problem = problem.problem
    orders = list(seeds)
    if goal in ("makespan", "span"):
        return _core.search(problem, orders, iterations, seconds, seed, goal == "span", objective)
    if goal not in ("mean", "p95"):
        raise InputError(f"unknown goal '{goal}'; there are makespan, span, mean and p95")
    if objective is not None:
        raise InputError(f"objective and goal='{goal}' are two goals; give one of them")
    drawn = _as_jitter(jitter, problem)
    if drawn is None and (scenario is None or trials is not None):
        raise InputError(f"goal='{goal}': {_NO_JITTER}, or a scenario and no trials")
    return _core.search_robust(
        problem,
        orders,
        iterations,
        seconds,
        seed,
        _as_rules("ideal" if execution is None else execution),
        drawn,
        _as_scenario(scenario, problem),
        goal == "p95",
        0 if trials is None else trials,
        draws,
        threads,
    )
