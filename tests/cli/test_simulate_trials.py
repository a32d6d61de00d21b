"""simulate with shared links, jitter, trials and scenarios."""

import pytest

from harness import BASIC, EXAMPLES

JITTER = BASIC + "links: {latency: 10us}\njitter: {seed: 3, compute: 0.1, transfer: 0.1}\n"


def trials(counterflow, path, *options):
    return counterflow("simulate", path, "--json", *options, code=0).json["monte_carlo"]


def test_trials_report_quantiles_and_sensitivities(counterflow, config):
    found = trials(counterflow, config(JITTER), "--trials", 200)
    spread = found["makespan_ns"]
    order = [spread[key] for key in ("min", "p5", "p50", "p95", "max")]
    assert order == sorted(order) and len(set(order)) == 5
    assert spread["min"] < spread["mean"] < spread["max"]
    assert found["trials"] == 200
    assert found["seed"] == 3
    sensitivity = found["sensitivity"]
    assert len(sensitivity["ranks"]) == 4
    assert {(link["from"], link["to"]) for link in sensitivity["links"]} == {
        (0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)
    }
    assert 0.5 < sum(sensitivity["ranks"]) < 1.5


def test_the_seed_decides_and_the_threads_do_not(counterflow, config):
    path = config(JITTER)

    def text(*options):
        return counterflow("simulate", path, "--json", "--trials", 50, *options, code=0).out

    assert text("--threads", 1) == text("--threads", 2) == text("--seed", 3)
    assert text("--seed", 4) != text()


def test_without_trials_jitter_changes_nothing(counterflow, config):
    plain = JITTER[: JITTER.index("jitter")]
    with_jitter = counterflow("simulate", config(JITTER), "--json", code=0).out
    assert with_jitter == counterflow("simulate", config(plain), "--json", code=0).out


def test_trials_without_jitter_say_what_to_add(counterflow, config):
    result = counterflow("simulate", config(), "--trials", 5, code=2)
    assert "no jitter" in result.err and "add for example" in result.err


@pytest.mark.parametrize("option", [("--trials", 0), ("--trials", -1), ("--threads", 0)])
def test_counts_out_of_range_are_refused(counterflow, config, option):
    assert counterflow("simulate", config(JITTER), *option, code=2).out == ""


def test_threads_without_trials_are_refused(counterflow, config):
    assert "--trials" in counterflow("simulate", config(JITTER), "--threads", 2, code=2).err


def test_the_summary_shows_the_spread(counterflow, config):
    out = counterflow("simulate", config(JITTER), "--trials", 20, code=0).out
    assert "under jitter" in out and "p5 to p95" in out and "most felt" in out


@pytest.mark.parametrize("name", ["shared_nics", "jitter_stragglers"])
def test_examples(counterflow, name):
    counterflow("simulate", EXAMPLES / f"{name}.yaml", "--json", code=0)


def test_contention_costs_time(counterflow):
    example = EXAMPLES / "shared_nics.yaml"
    shared = counterflow("simulate", example, "--json", code=0).json["makespan_ns"]
    wide = counterflow(
        "simulate", example, "--json", "--set", "topology.nic.bandwidth=5000GB/s",
        code=0
    ).json["makespan_ns"]
    assert wide < shared


def test_a_slow_rank_is_slower(counterflow, config):
    scenario = config("slow: [{rank: 2, factor: 2}]\n", "slow.yaml")
    plain = counterflow("simulate", config(), "--json", code=0).json
    slow = counterflow("simulate", config(), "--scenario", scenario, "--json", code=0).json
    assert slow["per_rank"][2]["busy_ns"] == 2 * plain["per_rank"][2]["busy_ns"]
    assert slow["makespan_ns"] > plain["makespan_ns"]


def test_a_failed_rank_is_a_no(counterflow, config):
    scenario = config("failures: [{rank: 2, at: 5ms}]\n", "failure.yaml")
    result = counterflow("simulate", config(), "--scenario", scenario, "--json", code=1)
    stop = result.json
    assert stop["completed"] is False
    assert stop["first_blocked"]["rank"] == 2
    assert "failed at 5000000 ns" in stop["first_blocked"]["reason"]
    assert len(stop["per_rank"]) == 4
    for rank in stop["per_rank"]:
        assert 0 < rank["finished"] < rank["instructions"]
        assert rank["blocked"]["reason"]
    assert "the run stops at" in result.err
    text = counterflow("simulate", config(), "--scenario", scenario, code=1)
    assert text.out == "" and "rank 2" in text.err


@pytest.mark.parametrize(
    ("link", "rank", "op", "sent_by", "since"),
    [((1, 2), 2, "2RECV_F0", "1SEND_F0", 2_000_000), ((2, 1), 1, "1RECV_B0", "2SEND_B0", 8_000_000)],
    ids=["forwards", "backwards"],
)
def test_a_dead_link_is_the_cause_and_named_with_its_direction(
    counterflow, config, link, rank, op, sent_by, since
):
    """A send that is buffered has ended: its message still stands on the link."""
    scenario = config(f"outages: [{{link: {list(link)}}}]\n", "outage.yaml")
    result = counterflow("simulate", config(), "--scenario", scenario, "--json", code=1)
    first = result.json["first_blocked"]
    assert (first["rank"], first["op"], first["since_ns"]) == (rank, op, since)
    assert first["reason"] == (f"waits for the message of {sent_by}, which stands still on the link "
                               f"from rank {link[0]} to rank {link[1]}")
    assert f"the first that could not proceed is {op} of rank {rank}" in result.err
    # The others wait too, some of them for longer, but only for ranks that have not come.
    for other in result.json["per_rank"]:
        if other["blocked"] and other["blocked"]["rank"] != rank:
            assert "has not come to it" in other["blocked"]["reason"]


def test_a_bad_scenario_names_its_line(counterflow, config):
    scenario = config("slow:\n  - {rank: 9, factor: 2}\n", "bad.yaml")
    result = counterflow("simulate", config(), "--scenario", scenario, code=2)
    assert "bad.yaml:2" in result.err and "from 0 to 3" in result.err
    missing = counterflow("simulate", config(), "--scenario", "no.yaml", code=2)
    assert "no.yaml" in missing.err and "a YAML scenario" in missing.err


def test_a_scenario_says_that_the_bound_is_of_the_costs_as_given(counterflow, config):
    scenario = config("slow: [{rank: 2, factor: 2}]\n", "slow.yaml")
    plain = counterflow("simulate", config(), "--json", code=0).json
    slow = counterflow("simulate", config(), "--scenario", scenario, "--json", code=0).json
    assert slow["lower_bound_ns"] == plain["lower_bound_ns"]
    assert slow["gap"] == pytest.approx(slow["makespan_ns"] / slow["lower_bound_ns"] - 1)
    assert not any("costs as given" in each for each in plain["warnings"])
    assert any("costs as given" in each for each in slow["warnings"])
    text = counterflow("simulate", config(), "--scenario", scenario, code=0).out
    assert "the costs as given, without the scenario" in text
