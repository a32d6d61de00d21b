#!/usr/bin/env python3
"""The tables of docs/search.md, as Markdown on stdout.

Usage: search_tables.py COUNTERFLOW [families|table5] [--iterations N]

families: for each published family at p=8, m=32 and three sets of costs, what the search finds on the
same placement with the memory that the family holds.
table5: the zero-bubble paper's Table 5 (tests/data/zero_bubble_table5.csv); its ZB-1p and ZB-2p columns
are what that paper's own search found within p and 2p activations. "proven": no order has less.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COSTS = {"unit": (1, 1, 1, 0), "comm": (2, 2, 2, 0.2), "real": (1000, 1035, 788, 30)}
FAMILIES = [  # name, stages a rank, pairs fused at max(F, B)
    ("gpipe", 1, False), ("1f1b", 1, False), ("eager-1f1b", 1, False),
    ("interleaved-1f1b", 2, False), ("interleaved-1f1b", 4, False), ("looped-bfs", 2, False),
    ("combined-1f1b", 2, False), ("combined-1f1b", 2, True), ("zb-h1", 1, False),
    ("zb-h2", 1, False), ("interleaved-zb", 2, False), ("zbv", 2, False), ("v-half", 2, False),
    ("v-min", 2, False), ("dualpipe", 1, False), ("dualpipe", 1, True), ("dualpipev", 2, False),
    ("dualpipev", 2, True),
]  # fmt: skip


def report(binary, command, config, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(config)
        done = subprocess.run([binary, command, path, "--json", *map(str, arguments)],
                              check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def family_config(name, chunks, fused, costs):
    f, i, w, latency = costs
    pair = f"  overlapped: {max(f, i + w) / chunks}ms\n" if fused else ""
    given = f", chunks: {chunks}" if name in ("interleaved-1f1b", "looped-bfs", "combined-1f1b",
                                              "interleaved-zb") else ""
    return (
        f"pipeline: {{ranks: 8, microbatches: 32, schedule: {name}{given}}}\n"
        f"stages:\n  forward: {f / chunks}ms\n  backward_input: {i / chunks}ms\n"
        f"  backward_weight: {w / chunks}ms\n{pair}"
        f"links: {{latency: {latency}ms}}\n"
    )


def families(binary, budget):
    print("| family | v | costs | held | family | found | gap to the bound |\n|---|---|---|---|---|---|---|")
    for name, chunks, fused in FAMILIES:
        for label, costs in COSTS.items():
            config = family_config(name, chunks, fused, costs)
            own = report(binary, "simulate", config)
            held = max(rank["peak_activations"] for rank in own["per_rank"])
            limit = ("--set", f"memory.limit_activations={held}")
            found = report(binary, "search", config, *limit, *budget)
            assert found["makespan_ns"] <= own["makespan_ns"], (name, label)
            pairs = ", F&B = max(F,B)" if fused else ""
            gap = "proven" if found["gap"] == 0 else f"{100 * found['gap']:.2f} %"
            print(f"| {name}{pairs} | {chunks} | {label} | {held / chunks:g} | "
                  f"{own['makespan_ns'] / 1e6:g} | {found['makespan_ns'] / 1e6:g} | {gap} |", flush=True)


def table5_config(row, times):
    layer = 34 * int(row["hidden"]) + 5 * int(row["heads"]) * 1024
    return (
        f"pipeline: {{ranks: {row['p']}, microbatches: {row['m']}, schedule: auto, placement: loop}}\n"
        f"stages: {{forward: {row['F_ms']}ms, backward_input: {row['I_ms']}ms, "
        f"backward_weight: {row['W_ms']}ms, activation: {layer}B, weight_activation: {32 * int(row['hidden'])}B}}\n"
        f"links: {{latency: {row['c_ms']}ms}}\nmemory: {{limit: {times * int(row['p']) * layer}B}}\n"
    )


def table5(binary, budget):
    print("| model | p | m | ZB-1p | found, p | ZB-2p | found, 2p |\n|---|---|---|---|---|---|---|")
    with open(ROOT / "tests" / "data" / "zero_bubble_table5.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cells = []
            for times, column in ((1, "zb_1p"), (2, "zb_2p")):
                found = report(binary, "search", table5_config(row, times), "--goal", "span", *budget)
                proven = ", proven" if any("proven least" in note for note in found["notes"]) else ""
                cells += [row[column], f"{found['span_bubble_fraction']:.4f}{proven}"]
            print(f"| {row['model']} | {row['p']} | {row['m']} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("table", choices=["families", "table5"])
    parser.add_argument("--iterations", type=int)
    options = parser.parse_args()
    budget = ("--iterations", options.iterations) if options.iterations else ()
    (families if options.table == "families" else table5)(options.binary, budget)


if __name__ == "__main__":
    main()
