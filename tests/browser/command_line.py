"""The command line under test."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def counterflow(*arguments):
    binary = Path(os.environ.get("COUNTERFLOW_BIN", ROOT / "build" / "dev" / "counterflow"))
    assert binary.is_file(), f"{binary} is not built; build it or set COUNTERFLOW_BIN"
    command = [binary.resolve(), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
