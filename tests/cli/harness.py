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
