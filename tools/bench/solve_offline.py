#!/usr/bin/env python3
"""Draws the small scheduling problems of tests/data/solved_problems.json and solves them with CP-SAT.

Needs OR-tools (`pip install ortools`); no build and no test does. One JSON object a line: the problem,
the best order found as one string a rank, its makespan, and a proven lower bound. Problems already in
the output file are kept, so a run can be stopped and taken up again:

    tools/bench/solve_offline.py out.jsonl --count 300 --seconds 30

Conventions are the Problem's: memory is allocated when F begins and freed when I and W (or B) end, what
is freed at t is usable at t; a hop between ranks is a pure delay, a hop inside a rank is free; an unsplit
backward is one op whose gradient leaves at its end. Microbatches of a direction are equal, so they run in
order on every stage: an order is told by the stage and the kind of each op alone. `F`, `I`, `W`, `B` are
ops of a rank's first chunk, `f`, `i`, `w`, `b` of its second.
"""

import argparse
import json
import pathlib
import random

PLACEMENTS = [("loop", 1), ("loop", 2), ("v", 2), ("bidirectional", 1)]
KINDS = {True: "FIW", False: "FB"}


class Shape:
    """Who is where: copies of stages on ranks, and the microbatches of each copy."""

    def __init__(self, problem):
        self.p, self.m = problem["p"], problem["m"]
        self.stages = self.p * problem["chunks"]
        self.kinds = KINDS[problem["split_backward"]]
        kind = problem["placement"]
        self.replicas = 2 if kind == "bidirectional" else 1
        self.rank_of = {}
        for s in range(self.stages):
            turn = kind == "v" and s >= self.p
            self.rank_of[0, s] = self.stages - 1 - s if turn else s % self.p
            if self.replicas == 2:
                self.rank_of[1, s] = self.p - 1 - s
        self.count = [self.m] if self.replicas == 1 else [(self.m + 1) // 2, self.m // 2]

    def chunks_of(self, rank):
        """In the order of Placement::chunks_of: by stage, then by replica."""
        return sorted((s, r) for (r, s), at in self.rank_of.items() if at == rank)

    def ops(self):
        """(replica, stage, kind, number in its replica)."""
        for (r, s) in self.rank_of:
            for j in range(self.count[r]):
                for kind in self.kinds:
                    yield r, s, kind, j


def duration(problem, stage, kind):
    f, i, w = (problem[k][stage] for k in ("forward", "backward_input", "backward_weight"))
    return {"F": f, "I": i, "W": w, "B": i + w}[kind]


def hop(problem, shape, replica, a, b):
    return 0 if shape.rank_of[replica, a] == shape.rank_of[replica, b] else problem["latency"]


def dependencies(problem, shape):
    """(op, op, delay from end to start)."""
    g = shape.kinds[1]
    for (r, s) in shape.rank_of:
        for j in range(shape.count[r]):
            yield (r, s, "F", j), (r, s, g, j), 0
            if g == "I":
                yield (r, s, "I", j), (r, s, "W", j), 0
            if s > 0:
                yield (r, s - 1, "F", j), (r, s, "F", j), hop(problem, shape, r, s - 1, s)
                yield (r, s, g, j), (r, s - 1, g, j), hop(problem, shape, r, s - 1, s)


def draw(rng, index):
    """A problem of at most 160 ops; placements in equal parts, every fourth with B unsplit."""
    placement, chunks = PLACEMENTS[index % 4]
    split = (index // 4) % 4 != 3
    while True:
        p = rng.randint(2, 6)
        if placement == "bidirectional" and p % 2:
            continue
        m = rng.randint(max(1, p // 2), 3 * p)
        if (3 if split else 2) * p * chunks * m <= 160:
            break
    stages = p * chunks
    problem = {"name": f"{placement}{chunks}_p{p}_m{m}_{index:03}{'' if split else '_fused'}", "p": p, "m": m,
               "chunks": chunks, "placement": placement, "split_backward": split, "latency": rng.randint(0, 3)}
    for key in ("forward", "backward_input", "backward_weight"):
        problem[key] = [rng.randint(5, 20) for _ in range(stages)]
    equal = rng.random() < 2 / 3
    problem["activation"] = [1 if equal else rng.randint(1, 4) for _ in range(stages)]
    problem["released_after_input_gradient"] = [
        0 if equal or not split else rng.randint(0, a) for a in problem["activation"]]
    problem["memory_limit"] = limits(rng, problem)
    return problem


def limits(rng, problem):
    """One limit a rank between the least that fits and all there is to hold, small ones more often."""
    if rng.random() < 1 / 10:
        return None
    shape = Shape(problem)
    shared = rng.random() ** 2 if rng.random() < 2 / 3 else None
    result = []
    for rank in range(shape.p):
        held = [problem["activation"][s] for s, _ in shape.chunks_of(rank)]
        # The two directions need not meet on a rank; two stages of one direction do.
        least = max(held) if shape.replicas == 2 else sum(held)
        most = sum(problem["activation"][s] * shape.count[r] for s, r in shape.chunks_of(rank))
        share = rng.random() ** 2 if shared is None else shared
        result.append(max(least, round(least + (most - least) * share)))
    return result


def solve(problem, seconds, workers):
    from ortools.sat.python import cp_model

    shape = Shape(problem)
    model = cp_model.CpModel()
    horizon = sum(duration(problem, s, k) + problem["latency"] for _, s, k, _ in shape.ops())
    start, end, on_rank = {}, {}, {rank: [] for rank in range(shape.p)}
    for op in shape.ops():
        r, s, kind, j = op
        length = duration(problem, s, kind)
        start[op] = model.new_int_var(0, horizon, "")
        end[op] = start[op] + length
        on_rank[shape.rank_of[r, s]].append(model.new_fixed_size_interval_var(start[op], length, ""))
        if j > 0:
            model.add(start[op] >= end[r, s, kind, j - 1])
    for rank in on_rank:
        model.add_no_overlap(on_rank[rank])
    for a, b, delay in dependencies(problem, shape):
        model.add(start[b] >= end[a] + delay)
    if problem["memory_limit"]:
        add_memory(problem, shape, model, start, end, horizon)
    makespan = model.new_int_var(0, horizon, "")
    for (r, s) in shape.rank_of:
        if shape.count[r]:
            for kind in shape.kinds:
                model.add(makespan >= end[r, s, kind, shape.count[r] - 1])
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    times = {op: solver.value(start[op]) for op in start}
    return {"makespan": int(solver.objective_value), "bound": int(round(solver.best_objective_bound)),
            "order": order(shape, times)}


def add_memory(problem, shape, model, start, end, horizon):
    last = shape.kinds[-1]
    for rank in range(shape.p):
        limit = problem["memory_limit"][rank]
        intervals, demands = [], []
        for s, r in shape.chunks_of(rank):
            whole, early = problem["activation"][s], problem["released_after_input_gradient"][s]
            for j in range(shape.count[r]):
                for freed_by, amount in ((last, whole - early), ("I", early)):
                    if amount == 0:
                        continue
                    size = model.new_int_var(0, horizon, "")
                    intervals.append(model.new_interval_var(
                        start[r, s, "F", j], size, end[r, s, freed_by, j], ""))
                    demands.append(amount)
            # Implied: k held at once do not fit, so the j-th F waits for an earlier one's release.
            fits = (limit - early) // (whole - early) if whole > early else shape.count[r]
            for j in range(fits, shape.count[r]):
                model.add(start[r, s, "F", j] >= end[r, s, last, j - fits])
        model.add_cumulative(intervals, demands, limit)


def order(shape, times):
    letters = []
    for rank in range(shape.p):
        chunks = shape.chunks_of(rank)
        ops = sorted((t, op) for op, t in times.items() if shape.rank_of[op[:2]] == rank)
        letters.append("".join(
            kind if chunks.index((s, r)) == 0 else kind.lower() for _, (r, s, kind, _) in ops))
    return letters


def evaluate(problem, letters):
    """The makespan of an order, every op as early as it can; None if it deadlocks or breaks a limit."""
    shape = Shape(problem)
    queues = []
    for rank, text in enumerate(letters):
        chunks, seen, queue = shape.chunks_of(rank), {}, []
        for letter in text:
            s, r = chunks[0 if letter.isupper() else 1]
            key = (r, s, letter.upper())
            seen[key] = seen.get(key, 0) + 1
            queue.append((*key, seen[key] - 1))
        queues.append(queue)
    if sorted(op for queue in queues for op in queue) != sorted(shape.ops()):
        return None
    before = {}
    for a, b, delay in dependencies(problem, shape):
        before.setdefault(b, []).append((a, delay))
    ends, clock, at = {}, [0] * shape.p, [0] * shape.p
    moved = True
    while moved:
        moved = False
        for rank, queue in enumerate(queues):
            while at[rank] < len(queue) and all(a in ends for a, _ in before.get(queue[at[rank]], [])):
                op = queue[at[rank]]
                begin = max([clock[rank]] + [ends[a] + d for a, d in before.get(op, [])])
                ends[op] = clock[rank] = begin + duration(problem, op[1], op[2])
                at[rank] += 1
                moved = True
    if len(ends) != sum(len(queue) for queue in queues) or not fits(problem, queues):
        return None
    return max(ends.values())


def fits(problem, queues):
    """Peak memory follows from the order alone: allocation at begin, release at end, one op at a time."""
    for rank, queue in enumerate(queues):
        held = 0
        for _, s, kind, _ in queue:
            whole, early = problem["activation"][s], problem["released_after_input_gradient"][s]
            if kind == "F":
                held += whole
                if problem["memory_limit"] and held > problem["memory_limit"][rank]:
                    return False
            else:
                held -= {"I": early, "W": whole - early, "B": whole}[kind]
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20240)
    parser.add_argument("--seconds", type=float, default=30, help="for each problem")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="k/n: every n-th problem from the k-th")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    known = set()
    if options.output.exists():
        known = {json.loads(line)["name"] for line in options.output.read_text().splitlines()}
    with options.output.open("a") as output:
        for index in range(part, options.count, parts):
            problem = draw(random.Random(options.seed * 100003 + index), index)
            if problem["name"] in known:
                continue
            found = solve(problem, options.seconds, options.workers)
            if found is None:
                print(f"{problem['name']}: nothing found")
                continue
            found["makespan"] = evaluate(problem, found["order"])
            assert found["makespan"] is not None, problem["name"]
            output.write(json.dumps(problem | found) + "\n")
            output.flush()
            print(problem["name"], found["makespan"], found["bound"], flush=True)


if __name__ == "__main__":
    main()
