"""A schedule family of one's own: 1F1B with a warm-up of a chosen depth, proven and simulated.

Usage: my_family.py [CONFIG]
"""

import sys
from pathlib import Path

import counterflow as cf


@cf.recipe("deep-1f1b", placement="loop", chunks=1)
def deep_1f1b(problem: cf.Problem) -> cf.Rows:
    """One more forward ahead than 1F1B needs, on every rank but the last: it hides latency."""
    p, m = problem.ranks, problem.microbatches
    for rank in range(p):
        ahead = min(m, p - rank + (1 if rank < p - 1 else 0))
        cells = [f"{rank}F{i}" for i in range(ahead)]
        for i in range(m):
            cells.append(f"{rank}B{i}")
            if ahead + i < m:
                cells.append(f"{rank}F{ahead + i}")
        yield cells


def main() -> None:
    default = Path(__file__).parents[1] / "a100_zero_bubble_1.5b.yaml"
    config = sys.argv[1] if len(sys.argv) > 1 else default
    runs = [cf.run(config, schedule=each) for each in ("1f1b", "eager-1f1b", deep_1f1b)]
    print(cf.compare(runs).table())


if __name__ == "__main__":
    main()
