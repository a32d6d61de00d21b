"""What PyTorch lowers itself, judged under each of the three transfer rules.

By default its sends and receives never hang. With `defer_pp_recv=True`, which puts a receive right
before the compute that needs it, two ranks come to face each other with a send, and only buffered
sends get past that; some of them carry a gradient to where an activation is expected.
"""

import json

import pytest
from torch_orders import grid, stages_of_rank_0

CASES = [case for case in grid(ranks=(2, 4), microbatches=(4, 8)) if case.chunks > 1]
SAFE = dict.fromkeys(("buffered", "posted", "rendezvous"), "ok")


def lowered(schedules, counterflow, case, **options):
    """A config for the file PyTorch writes, communication included."""
    schedule_class = schedules.get_schedule_class(case.name)
    schedule = schedule_class(
        stages_of_rank_0(case.ranks, case.chunks), case.microbatches, **options
    )
    schedule._dump_csv(counterflow.folder / "torch.csv", "compute_comms")
    return counterflow.write_config(
        schedule="torch.csv",
        ranks=case.ranks,
        microbatches=case.microbatches,
        chunks=case.chunks,
        placement=case.placement,
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_default_lowering_never_hangs(case, schedules, counterflow):
    config = lowered(schedules, counterflow, case)
    verdict = json.loads(counterflow.run("verify", config, "--json"))
    assert verdict["ok"] and verdict["semantics"] == SAFE


@pytest.mark.parametrize("case", CASES, ids=str)
def test_deferred_receives_hang_unless_sends_are_buffered(case, schedules, counterflow):
    config = lowered(schedules, counterflow, case, defer_pp_recv=True)
    verdict = counterflow.verdict(config, "--semantics", "buffered")
    # A rank's next and previous rank may be the same, and then gradients and activations share a
    # channel without tags: even buffered sends are no rescue, what arrives is the wrong one.
    assert {fault["rule"] for fault in verdict["diagnostics"]} <= {"crossing", "payload"}
    assert verdict["ok"] == (not verdict["diagnostics"])
    assert verdict["semantics"] == {**SAFE, "posted": "deadlock", "rendezvous": "deadlock"}
    # Moved to other places, the same transfers are safe.
    repaired = json.loads(counterflow.run("verify", config, "--repair", "--json"))
    assert repaired["ok"] and repaired["semantics"] == SAFE
