"""search --goal: orders that stand jitter, slow ranks and links."""

import json

import pytest
from harness import H34, JITTER, UNEVEN

SLOW = "slow: [{rank: 1, factor: 2}]\n"


def robustness(counterflow, path, *options):
    found = counterflow("search", path, "--iterations", "200", "--json", *options, code=0).json
    return found, found["robustness"]


@pytest.mark.parametrize("goal", ["mean", "p95"])
def test_a_robust_order_says_what_it_stands_and_costs(counterflow, config, tmp_path, goal):
    path = config(UNEVEN + JITTER)
    found, stands = robustness(counterflow, path, "--goal", goal, "--trials", 40, "-o", tmp_path)
    assert (stands["goal"], stands["trials"], stands["seed"]) == (goal, 40, 3)
    chosen, fastest = stands["chosen"], stands["fastest"]
    assert chosen["makespan_ns"] == found["makespan_ns"] >= found["lower_bound_ns"]
    plain = counterflow("search", path, "--iterations", "200", "--json", code=0).json
    assert fastest["makespan_ns"] == plain["makespan_ns"]
    assert stands["price_ns"] == chosen["makespan_ns"] - fastest["makespan_ns"]
    assert stands["gain_ns"] == fastest[f"{goal}_ns"] - chosen[f"{goal}_ns"] >= 0
    # The same draws as those of simulate.
    trials = counterflow("simulate", path, "--schedule", tmp_path / "schedule.csv", "--trials", 40,
                         "--json", code=0).json["monte_carlo"]["makespan_ns"]
    assert trials["p95"] == chosen["p95_ns"]
    assert trials["mean"] == pytest.approx(chosen["mean_ns"], abs=1)
    assert json.loads((tmp_path / "report.json").read_text()) == found


def test_a_robust_order_depends_on_seeds_and_not_on_threads(counterflow, config):
    path = config(UNEVEN + JITTER)

    def text(*options):
        return counterflow("search", path, "--iterations", 60, "--goal", "p95", "--trials", 10,
                           "--json", *options, code=0).out

    assert text("--threads", 1) == text("--threads", 2) == text()
    assert text("--seed", 4) != text()


def test_a_slow_rank_is_reordered_for(counterflow, config):
    path = config(H34 + "memory: {limit_activations: 4}\n")
    scenario = config(SLOW, "slow.yaml")
    found, stands = robustness(counterflow, path, "--goal", "mean", "--scenario", scenario)
    assert stands["trials"] == 1
    assert stands["scenario"].endswith("slow.yaml")
    assert max(rank["peak_activations"] for rank in found["per_rank"]) <= 4
    # As good as a search that is told the costs of the slow rank.
    told = config(
        H34.replace("1ms", "[1ms, 2ms, 1ms, 1ms]") + "memory: {limit_activations: 4}\n", "told.yaml"
    )
    best = counterflow("search", told, "--iterations", "200", "--json", code=0).json
    assert stands["chosen"]["mean_ns"] == best["makespan_ns"]
    assert stands["gain_ns"] >= 0


@pytest.mark.parametrize("cap", [4, 8])
def test_limits_hold_under_jitter_too(counterflow, config, cap):
    path = config(H34 + JITTER)
    found, stands = robustness(counterflow, path, "--goal", "p95", "--trials", 30, "--set",
                               f"memory.limit=[{cap}B, {cap}B, {cap}B, {cap}B]")
    assert max(rank["peak_activations"] for rank in found["per_rank"]) <= cap
    assert found["lower_bound_ns"] == stands["fastest"]["makespan_ns"] == 27_000_000


def test_more_memory_is_never_worse_at_the_goal(counterflow, config, tmp_path):
    path = config(H34 + JITTER)
    options = ("--goal", "p95", "--trials", 30)
    _, small = robustness(counterflow, path, *options, "-o", tmp_path, "--set",
                          "memory.limit=[4B, 4B, 4B, 4B]")
    _, large = robustness(counterflow, path, *options, "--set", "memory.limit=[8B, 8B, 8B, 8B]",
                          "--schedule", tmp_path / "schedule.csv")
    assert large["chosen"]["p95_ns"] <= small["chosen"]["p95_ns"]


def test_the_summary_shows_the_price(counterflow, config):
    out = counterflow("search", config(UNEVEN + JITTER), "--iterations", 60, "--goal", "p95",
                      "--trials", 10, code=0).out
    assert "the price" in out
    assert "p95" in out and "the goal" in out
    assert "10 trials, seed 3" in out
    assert "no bound on it" in out


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (H34, ["--goal", "p95"], ["--goal p95", "no jitter", "jitter: {compute", "--scenario"]),
        (H34, ["--goal", "mean", "--trials", "5"], ["--trials 5", "no jitter"]),
        (H34 + JITTER, ["--trials", "5"], ["--trials 5", "--goal mean"]),
        (H34 + JITTER, ["--threads", "2"], ["--threads 2", "--goal mean"]),
        (H34 + JITTER, ["--goal", "p96"], ["p96"]),
        (H34 + JITTER, ["--goal", "p95", "--trials", "0"], ["--trials"]),
        (H34 + JITTER, ["--goal", "p95", "--scenario", "no.yaml"], ["no.yaml"]),
    ],
)
def test_wrong_robust_goals(counterflow, config, text, arguments, words):
    result = counterflow("search", config(text), *arguments, code=2)
    for word in words:
        assert word in result.err
    assert result.out == ""


def test_the_advice_on_a_goal_without_jitter_works(counterflow, config):
    text = H34 + "jitter: {compute: 0.05}\n"
    counterflow("search", config(text), "--goal", "p95", "--iterations", 20, "--trials", 5, code=0)


def test_scenarios_that_no_order_stands(counterflow, config):
    failure = config("failures: [{rank: 2, at: 5ms}]\n", "failure.yaml")
    arguments = ("search", config(H34), "--iterations", 20, "--goal", "mean", "--scenario")
    result = counterflow(*arguments, failure, code=2)
    assert "rank 2 fails" in result.err and "leave failures out" in result.err
    outage = config("outages: [{link: [1, 2]}]\n", "outage.yaml")
    assert "no order comes to its end" in counterflow(*arguments, outage, code=1).err
    plain = counterflow("search", config(H34), "--scenario", failure, code=2)
    assert "--scenario" in plain.err and "add --goal mean" in plain.err


def test_frontier_has_no_robust_goals(counterflow, config):
    assert "--goal" in counterflow("frontier", config(H34 + JITTER), "--goal", "p95", code=2).err
