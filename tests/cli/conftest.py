import subprocess
from pathlib import Path

import pytest
from harness import BASIC, TIMEOUT_S, Result, binary


@pytest.fixture
def counterflow(tmp_path):
    """Runs the command line in the test's own folder."""

    def run(*arguments, code=None, **options) -> Result:
        options.setdefault("cwd", tmp_path)
        options.setdefault("stdout", subprocess.PIPE)
        result = Result(
            subprocess.run(
                [binary(), *map(str, arguments)],
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                **options,
            )
        )
        if code is not None:
            assert result.code == code, f"exit {result.code}\n{result.out}\n{result.err}"
        return result

    return run


@pytest.fixture
def config(tmp_path):
    """Writes a config and returns its path."""

    def write(text=BASIC, name="config.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write
