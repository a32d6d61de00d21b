"""The installed package, for tests of it. Its absence is told, or an error where it is required."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

BASIC = {
    "pipeline": {"ranks": 4, "microbatches": 8, "schedule": "1f1b"},
    "stages": {"forward": "1ms", "backward_input": "1ms", "backward_weight": "1ms"},
}


def missing(reason: str, **options) -> None:
    if os.environ.get("COUNTERFLOW_REQUIRE_PACKAGE") == "1":
        pytest.fail(reason)
    pytest.skip(reason, **options)


def load():
    """The module counterflow."""
    try:
        import counterflow
    except ImportError as error:
        reason = f"the package is not tested, it cannot be imported: {error}; pip install ."
        missing(reason, allow_module_level=True)
    return counterflow


def need(tool: str) -> None:
    """A Python tool that checks sources."""
    if importlib.util.find_spec(tool) is None:
        missing(f"not checked, {tool} is not installed; tools/setup.sh test installs it")
