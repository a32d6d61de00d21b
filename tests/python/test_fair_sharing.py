"""Contention on shared links against an independent solver.

The command line simulates messages that set out together over random named links. Here the same
fluid is followed by linear programming: at every instant the rates are the max-min fair ones, found
by raising the least rate as far as it goes, fixing the flows that cannot go further, and so on.
"""

import json
import os
import random

import pytest

try:
    import numpy
    from scipy import optimize
except ImportError as error:
    if os.environ.get("COUNTERFLOW_REQUIRE_TORCH") == "1":
        raise
    pytest.skip(f"not compared with SciPy: {error}", allow_module_level=True)

START_NS = 1_000_000  # every source computes for 1 ms, then sends


def greatest(objective, rows, limits, size):
    """The most of `objective` over flow rates and the common rate t, with rows @ x <= limits."""
    done = optimize.linprog(-objective, A_ub=rows, b_ub=limits, bounds=[(0, None)] * size)
    assert done.success, done.message
    return -done.fun


def fair_rates(capacities, routes):
    """Max-min fair rates by a linear program a level, and one a flow to see who is held there."""
    flows = len(routes)
    fixed = {}
    while len(fixed) < flows:
        rows, limits = [], []
        for link, capacity in enumerate(capacities):
            rows.append([1.0 * (link in route) for route in routes] + [0.0])
            limits.append(capacity)
        for flow in range(flows):
            unit = [1.0 * (k == flow) for k in range(flows)]
            if flow in fixed:
                rows.append(unit + [0.0])
                limits.append(fixed[flow])
            rows.append([-u for u in unit] + [0.0 if flow in fixed else 1.0])
            limits.append(-fixed.get(flow, 0.0))
        rows, limits = numpy.array(rows), numpy.array(limits)
        level = greatest(numpy.array([0.0] * flows + [1.0]), rows, limits, flows + 1)
        # With everyone else at the level or above, who can be above it?
        rows = numpy.vstack([rows, [0.0] * flows + [-1.0]])
        limits = numpy.append(limits, -level * (1 - 1e-9))
        for flow in [f for f in range(flows) if f not in fixed]:
            objective = numpy.array([1.0 * (k == flow) for k in range(flows)] + [0.0])
            if greatest(objective, rows, limits, flows + 1) <= level * (1 + 1e-6):
                fixed[flow] = level
    return [fixed[flow] for flow in range(flows)]


def fluid_ends(capacities, routes, sizes):
    """When each flow has had its bytes, all starting at 0, in ns."""
    left = dict(enumerate(map(float, sizes)))
    ends, now = {}, 0.0
    while left:
        alive = sorted(left)
        rates = dict(zip(alive, fair_rates(capacities, [routes[f] for f in alive])))
        step = min(left[f] / rates[f] for f in alive)
        now += step
        for flow in alive:
            left[flow] -= rates[flow] * step
            if left[flow] <= 1e-6 * sizes[flow]:
                ends[flow] = now
                del left[flow]
    return [ends[f] for f in range(len(routes))]


def config(flows, links, sizes):
    """Flow i goes from rank i to rank flows + i; links are (bytes a ns, flows that cross them)."""
    stages = 2 * flows
    lines = [
        f"pipeline: {{ranks: {stages}, microbatches: 1, schedule: forward-only}}",
        "stages:",
        "  forward: 1ms",
        f"  graph: {[[i, flows + i] for i in range(flows)]}",
        "links:",
        f"  message: [{', '.join(f'{size}B' for size in [*sizes, *sizes])}]",
        "topology:",
        "  links:",
    ]
    for number, (capacity, crossing) in enumerate(links):
        pairs = [[f, flows + f] for f in crossing]
        lines.append(
            f"    - {{name: link {number}, bandwidth: {capacity * 1000}MB/s, pairs: {pairs}}}"
        )
    return "\n".join(lines) + "\n"


def simulated_ends(counterflow, flows):
    """The end of each send in the compiled timeline, from when they all set out."""
    config_path = counterflow.folder / "config.yaml"
    counterflow.run(
        "compile", config_path, "--emit", "timeline.json", "-q", "-o", counterflow.folder
    )
    timeline = json.loads((counterflow.folder / "timeline.json").read_text())
    return [end - START_NS for end in send_ends(timeline, flows)]


def send_ends(timeline, flows):
    columns = timeline["columns"]["instructions"]
    op, end = columns.index("op"), columns.index("end_ns")
    ends = []
    for rank in range(flows):
        rows = timeline["ranks"][rank]["instructions"]
        ends += [row[end] for row in rows if "SEND_F" in row[op]]
    assert len(ends) == flows
    return ends


@pytest.mark.parametrize("seed", range(12))
def test_ends_of_random_flows_are_those_of_the_linear_program(counterflow, seed):
    draw = random.Random(seed)
    flows = draw.randint(2, 6)
    links = []
    for _ in range(draw.randint(1, 5)):
        crossing = [f for f in range(flows) if draw.random() < 0.6]
        links.append((draw.randint(1, 40), crossing or [0]))
    crossed = {f for _, crossing in links for f in crossing}
    links.append((25, sorted(crossed | set(range(flows)))))  # nobody is unlimited
    sizes = [draw.randint(1_000_000, 9_000_000) for _ in range(flows)]
    (counterflow.folder / "config.yaml").write_text(config(flows, links, sizes))

    capacities = [float(capacity) for capacity, _ in links]
    routes = [{n for n, (_, crossing) in enumerate(links) if f in crossing} for f in range(flows)]
    expected = fluid_ends(capacities, routes, sizes)
    measured = simulated_ends(counterflow, flows)
    # Half a nanosecond for each end that moved a rate.
    assert measured == pytest.approx(expected, rel=1e-9, abs=flows)


def test_the_linear_program_knows_the_textbook_case():
    assert fair_rates([4.0, 10.0], [{0}, {0, 1}, {1}]) == pytest.approx([2, 2, 8])
