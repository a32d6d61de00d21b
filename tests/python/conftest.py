import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def schedules():
    """PyTorch's schedule module. Its absence is told, or an error where it is required."""
    try:
        from torch.distributed.pipelining import schedules
    except ImportError as error:
        reason = f"not compared with PyTorch, which cannot be imported: {error}"
        if os.environ.get("COUNTERFLOW_REQUIRE_TORCH") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return schedules


class Command:
    """The command line, working in a folder of its own."""

    def __init__(self, binary, folder):
        self.binary = binary
        self.folder = folder

    def write_config(self, **pipeline):
        """A config with these pipeline keys and costs that differ for F, I and W."""
        lines = ["units: {time: us}", "pipeline:"]
        lines += [f"  {key}: {value}" for key, value in pipeline.items()]
        lines += ["stages:", "  forward: 10", "  backward_input: 11", "  backward_weight: 7"]
        lines += ["links:", "  latency: 1", ""]
        path = self.folder / "config.yaml"
        path.write_text("\n".join(lines))
        return path

    def run(self, *arguments):
        """The standard output of a run that succeeds."""
        done = subprocess.run(
            [self.binary, *map(str, arguments)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{arguments} exited {done.returncode}: {done.stderr}"
        return done.stdout

    def verdict(self, config, *options):
        """What `verify` says, be it yes or no."""
        done = subprocess.run(
            [self.binary, "verify", config, "--json", *options],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def compile(self, *names, **pipeline):
        """The texts of these outputs of `compile`."""
        config = self.write_config(**pipeline)
        self.run("compile", config, "--emit", ",".join(names), "-q", "-o", self.folder)
        return [(self.folder / name).read_text() for name in names]


@pytest.fixture
def counterflow(tmp_path):
    binary = Path(os.environ.get("COUNTERFLOW_BIN", ROOT / "build/dev/counterflow"))
    if not binary.is_file():
        pytest.fail(f"no command at {binary}: build it, or name it in COUNTERFLOW_BIN")
    return Command(binary, tmp_path)
