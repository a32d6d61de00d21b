"""Many runs under jitter, runs in which something is slow, and orders found to stand it."""

import json
import math

import numpy as np
import pytest
from package import BASIC, EXAMPLES, load
from test_planning import command

cf = load()

JITTER = {"seed": 3, "compute": 0.1, "transfer": 0.1}
CONFIG = {**BASIC, "links": {"latency": "10us"}, "jitter": JITTER}


@pytest.fixture(scope="module")
def plan():
    return cf.plan(CONFIG)


@pytest.fixture(scope="module")
def program(plan):
    return plan.compile()


def test_trials_are_the_command_lines():
    example = EXAMPLES / "jitter_stragglers.yaml"
    plan = cf.plan(example)
    found = cf.simulate(plan.compile(), plan.problem, trials=50, jitter=plan.config.jitter)
    out = command("simulate", example, "--trials", 50, "--json")
    told = json.loads(out)["monte_carlo"]
    spread = told["makespan_ns"]
    assert spread["mean"] == pytest.approx(found.mean_ns)
    assert [spread[key] for key in ("min", "p5", "p50", "p95", "max")] == [
        found.min_ns,
        found.p5_ns,
        found.p50_ns,
        found.p95_ns,
        found.max_ns,
    ]
    assert told["sensitivity"]["ranks"] == pytest.approx(found.rank_sensitivities)
    assert len(told["sensitivity"]["links"]) == len(found.link_sensitivities)


def test_makespans_are_a_view(plan, program):
    trials = cf.simulate(program, plan.problem, trials=80, jitter=JITTER, sensitivity=False)
    makespans = trials.makespans_ns
    assert makespans.dtype == np.int64
    assert makespans.shape == (80,) == (len(trials),)
    assert not makespans.flags.writeable
    assert makespans.base is not None
    assert np.shares_memory(makespans, trials.makespans_ns)
    assert makespans.min() == trials.min_ns
    assert makespans.max() == trials.max_ns
    assert trials.quantile_ns(0.5) == trials.p50_ns == np.sort(makespans)[39]
    assert trials.mean_ns == pytest.approx(makespans.mean())
    assert trials.rank_sensitivities == []
    assert trials.link_sensitivities == {}
    del trials
    assert makespans.sum() > 0  # kept alive by the view


def test_the_seed_decides_and_the_threads_do_not(plan, program):
    def makespans(**arguments):
        return cf.simulate(
            program, plan.problem, trials=40, jitter=plan.config.jitter, **arguments
        ).makespans_ns

    assert (makespans(threads=1) == makespans(threads=2)).all()
    assert (makespans() == makespans(seed=3)).all()
    assert (makespans(seed=4) != makespans()).any()


def test_trials_without_jitter_say_what_to_add(plan, program):
    with pytest.raises(cf.InputError, match="no jitter to draw from"):
        cf.simulate(program, plan.problem, trials=5)
    with pytest.raises(cf.InputError, match="compute"):
        cf.simulate(program, plan.problem, trials=5, jitter={"comptue": 0.1})
    with pytest.raises(cf.InputError, match="trials 0"):
        cf.simulate(program, plan.problem, trials=0, jitter=JITTER)
    with pytest.raises(cf.InputError, match="quantile"):
        cf.simulate(program, plan.problem, trials=1, jitter=JITTER).quantile_ns(2)


@pytest.mark.parametrize("form", ["mapping", "text", "path"])
def test_a_scenario_slows_its_rank(plan, program, form, tmp_path):
    text = "slow:\n - {rank: 2, factor: 2}\n"
    path = tmp_path / "slow.yaml"
    path.write_text(text)
    scenario = {"mapping": {"slow": [{"rank": 2, "factor": 2}]}, "text": text, "path": path}[form]
    plain = cf.measure(cf.simulate(program, plan.problem))
    slow = cf.measure(cf.simulate(program, plan.problem, scenario=scenario))
    assert slow.per_rank[2].busy_ns == 2 * plain.per_rank[2].busy_ns
    assert slow.makespan_ns > plain.makespan_ns


def test_a_run_that_ends_nowhere_is_a_no(plan, program):
    with pytest.raises(cf.InfeasibleError):
        cf.simulate(program, plan.problem, scenario={"failures": [{"rank": 1, "at": "1ms"}]})
    with pytest.raises(cf.InputError, match="from 0 to 3"):
        cf.simulate(program, plan.problem, scenario={"slow": [{"rank": 9, "factor": 2}]})


def test_search_finds_what_the_command_finds(tmp_path, plan):
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(CONFIG, indent=1))
    found = cf.search(plan, iterations=200)
    told = json.loads(command("search", path, "--iterations", 200, "--json"))
    assert found.makespan_ns == told["makespan_ns"] == cf.makespan_ns(plan.problem, found.schedule)
    assert found.lower_bound_ns <= found.makespan_ns <= cf.makespan_ns(plan.problem, plan.schedule)
    assert found.objective_ns is None
    assert found.robustness is None
    assert found.fastest == found.schedule
    robust = cf.search(plan, iterations=50, goal="p95", trials=30)
    told = json.loads(
        command("search", path, "--iterations", 50, "--goal", "p95", "--trials", 30, "--json")
    )["robustness"]
    assert robust.robustness.chosen.p95_ns == told["chosen"]["p95_ns"]
    assert robust.robustness.price_ns == told["price_ns"]
    assert robust.robustness.gain_ns == told["gain_ns"] >= 0


def test_a_robust_order_shows_what_the_trials_show(plan):
    found = cf.search(plan, iterations=50, goal="mean", trials=30)
    program = cf.compile(plan.problem, found.schedule)
    trials = cf.simulate(program, plan.problem, trials=30, jitter=plan.config.jitter)
    assert round(trials.mean_ns) == pytest.approx(found.robustness.chosen.mean_ns, abs=1)
    assert trials.p95_ns == found.robustness.chosen.p95_ns
    assert found.robustness.chosen.makespan_ns == found.makespan_ns
    assert "p95" in found._repr_html_()
    assert "trials" in trials._repr_html_()


def test_an_objective_of_your_own_is_honoured(plan):
    seen = []

    def last_begin_of_rank_0(schedule):
        """How soon rank 0 has begun all its forwards: not what a makespan asks for."""
        ops = [slot.first.kind for slot in schedule.slots(0)]
        seen.append(schedule)
        return float(len(ops) - ops[::-1].index("F"))

    found = cf.search(plan, iterations=100, objective=last_begin_of_rank_0)
    assert len(seen) > 1
    assert found.objective_ns == last_begin_of_rank_0(found.schedule)
    assert found.objective_ns == min(last_begin_of_rank_0(each) for each in list(seen))
    assert found.objective_ns <= last_begin_of_rank_0(plan.schedule)
    assert found.best_makespan_ns <= found.makespan_ns
    none = cf.search(plan, iterations=20, objective=lambda _: math.inf)
    assert none.schedule == none.fastest


STAGES = {"forward": "2ms", "backward_input": "2ms", "backward_weight": "2ms", "activation": "100B"}
ALL_KEPT = {
    "pipeline": {"ranks": 4, "microbatches": 8, "schedule": "auto", "placement": "loop"},
    "stages": STAGES,
    "memory": {"limit": "150B"},
    "jitter": {"compute": 0.1},
}
TIGHT = ALL_KEPT | {
    "stages": STAGES
    | {
        "recompute": {"activation": "10B"},
        "offload": {"activation": "20B", "time": "1ms"},
    }
}


def test_what_stages_keep_is_chosen_and_carried():
    problem = cf.plan(TIGHT).problem
    assert problem.duration_ns(cf.Op("RECOMPUTE", 0, 3)) == 2_000_000
    assert problem.duration_ns(cf.Op("OFFLOAD", 0, 3)) == 1_000_000
    assert problem.duration_ns(cf.Op("RELOAD", 0, 3)) == 1_000_000
    with pytest.raises(cf.InputError, match=r"stage 1 has no RELOAD; give stages\.offload"):
        cf.plan(BASIC).problem.duration_ns(cf.Op("RELOAD", 1))
    kept = cf.search(cf.plan(ALL_KEPT), iterations=200)
    for asked in ({}, {"goal": "p95", "trials": 20}, {"objective": lambda _: 1.0}):
        found = cf.search(cf.plan(TIGHT), iterations=200, **asked)
        kinds = {slot.first.kind for rank in range(4) for slot in found.schedule.slots(rank)}
        assert found.makespan_ns == cf.makespan_ns(problem, found.schedule)
        assert cf.verify(problem, found.schedule).ok
        run = cf.run(cf.plan(TIGHT, schedule=found.schedule))
        assert run.report.makespan_ns == found.makespan_ns
        assert max(rank.peak_memory_bytes for rank in run.report.per_rank) <= 150
        if not asked:
            assert kinds & {"RECOMPUTE", "RELOAD"}
            assert found.makespan_ns < kept.makespan_ns


def test_what_an_objective_raises_comes_out(plan):
    def refuse(_):
        raise LookupError("no such order")

    with pytest.raises(LookupError, match="no such order"):
        cf.search(plan, iterations=20, objective=refuse)
    with pytest.raises(cf.InputError, match="not a number"):
        cf.search(plan, iterations=20, objective=lambda _: math.nan)


def test_wrong_goals_and_budgets(plan):
    plain = cf.plan(BASIC)
    with pytest.raises(cf.InputError, match="no jitter"):
        cf.search(plain, goal="p95")
    with pytest.raises(cf.InputError, match="unknown goal"):
        cf.search(plain, goal="median")
    with pytest.raises(cf.InputError, match="two goals"):
        cf.search(plan, goal="mean", objective=lambda _: 0.0)
    with pytest.raises(cf.InputError, match="two budgets"):
        cf.search(plan, iterations=5, seconds=1.0)
    with pytest.raises(cf.InputError, match="rank 1 fails"):
        cf.search(plan, goal="mean", scenario={"failures": [{"rank": 1, "at": "1ms"}]})
    for wrong in ({"iterations": 0}, {"seconds": 0.0}, {"seconds": math.inf}):
        with pytest.raises(cf.InputError):
            cf.search(plan, **wrong)


def test_pipelines_side_by_side():
    optimizer = {"gradients": "4MiB", "step": "1ms", "data_parallel": 3}
    plan = cf.plan({**CONFIG, "optimizer": optimizer})
    assert (plan.problem.ranks, plan.problem.data_parallel) == (4, 3)
    program = plan.compile()
    assert program.ranks == 12
    assert program.microbatches == 24
    timeline = cf.simulate(program, plan.problem)
    one = cf.plan(CONFIG)
    alone = cf.simulate(one.compile(), one.problem)
    # What a pipeline computes takes as long as alone; then come reductions and steps.
    ends = [max(timeline.intervals(r)["end_ns"]) for r in range(12)]
    assert ends[:4] == ends[4:8] == ends[8:]
    assert max(ends) > max(max(alone.intervals(r)["end_ns"]) for r in range(4))
    trials = cf.simulate(program, plan.problem, trials=5, jitter={"compute": 0.1})
    assert len(trials.rank_sensitivities) == 12
