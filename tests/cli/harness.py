"""The built command line, run as a user runs it.

The binary is $COUNTERFLOW_BIN, else build/dev/counterflow.
"""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
EXAMPLES = ROOT / "examples"

# No command of these tests takes longer; one that does hangs.
TIMEOUT_S = 120

BASIC = """\
pipeline: {ranks: 4, microbatches: 8, schedule: 1f1b}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms}
"""
# Searched for in many tests.
H34 = """\
pipeline: {ranks: 4, microbatches: 8, schedule: auto, placement: loop}
stages: {forward: 1ms, backward_input: 1ms, backward_weight: 1ms, activation: 1B}
"""
UNEVEN = """\
pipeline: {ranks: 3, microbatches: 6, schedule: auto, placement: v}
stages:
  forward: [3ms, 5ms, 4ms, 6ms, 2ms, 7ms]
  backward_input: [4ms, 5ms, 6ms, 3ms, 4ms, 6ms]
  backward_weight: [3ms, 2ms, 4ms, 5ms, 3ms, 6ms]
  activation: 1B
links: {latency: 1ms}
memory: {limit_activations: 5}
"""
JITTER = "jitter: {seed: 3, compute: {distribution: lognormal, sigma: 0.2}}\n"


def binary() -> Path:
    path = Path(os.environ.get("COUNTERFLOW_BIN", ROOT / "build" / "dev" / "counterflow"))
    assert path.is_file(), f"{path} is not built; build it or set COUNTERFLOW_BIN"
    return path.resolve()


class Result:
    def __init__(self, process: subprocess.CompletedProcess):
        self.code = process.returncode
        self.out = process.stdout or ""
        self.err = process.stderr or ""

    @property
    def json(self) -> dict:
        """stdout, which must be one JSON object and nothing else."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value
