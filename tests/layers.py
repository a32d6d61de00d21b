#!/usr/bin/env python3
"""Checks that includes follow the arrows of docs/architecture.md: a folder sees only those below it.

Usage: layers.py [ROOT]; prints every wrong include and exits 1 if there is one.
"""

import re
import sys
from pathlib import Path

# What each folder may include, besides itself. A new folder gets its line here.
BELOW = {
    "scheduler": set(),
    "schedules": {"scheduler"},
    "simulator": {"scheduler"},
    "executor": {"scheduler"},
    "reference": {"scheduler", "executor"},
    "report": {"scheduler"},
    "driver": {"scheduler", "schedules", "simulator", "report"},
    "tools": {"scheduler", "schedules", "simulator", "executor", "reference", "report", "driver"},
    "python": {"scheduler", "schedules", "simulator", "report", "driver"},
    "tests": {
        "scheduler", "schedules", "simulator", "executor", "reference", "report", "driver",
    },
}
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def faults_of(root: Path, path: Path, folder: str) -> list[str]:
    faults = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        included = match.group(1)
        target = included.split("/")[0]
        where = f"{path.relative_to(root)}:{number}"
        if "/" not in included or target not in BELOW:
            faults.append(f'{where}: "{included}" does not start at the root of the project')
        elif "bench" in path.parts and included.startswith("tests/support/"):
            continue  # benchmarks measure on what tests are made of
        elif target != folder and target not in BELOW[folder]:
            faults.append(f'{where}: {folder}/ must not include "{included}"')
        elif not (root / included).is_file():
            faults.append(f'{where}: "{included}" does not exist')
    return faults


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    checked = 0
    faults = []
    for folder in BELOW:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES:
                checked += 1
                faults += faults_of(root, path, folder)
    print("\n".join(faults + [f"{checked} files, {len(faults)} wrong includes"]))
    if checked == 0:
        print(f"no sources under {root}")
    return 1 if faults or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
