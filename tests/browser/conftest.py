from pathlib import Path

import pytest
from command_line import counterflow

CONFIG = """\
units: {{time: ms}}
pipeline: {{ranks: {ranks}, microbatches: {microbatches}, schedule: {schedule}}}
stages: {{forward: 10, backward_input: 10, backward_weight: 10, activation: 1GiB}}
links: {{latency: 1}}
memory: {{limit: 80GiB, static: 2GiB}}
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The folder `compile` writes for a schedule; each is compiled once."""
    folders = {}

    def compile_(schedule, ranks=4, microbatches=8) -> Path:
        key = (schedule, ranks, microbatches)
        if key not in folders:
            folder = tmp_path_factory.mktemp(schedule)
            config = folder / "config.yaml"
            config.write_text(
                CONFIG.format(schedule=schedule, ranks=ranks, microbatches=microbatches),
                encoding="utf-8",
            )
            counterflow("compile", config, "-o", folder)
            folders[key] = folder
        return folders[key]

    return compile_


@pytest.fixture(scope="session")
def compiled_data_parallel(compiled, tmp_path_factory) -> Path:
    """The folder of three pipelines of 1F1B side by side."""
    folder = tmp_path_factory.mktemp("data_parallel")
    config = compiled("1f1b") / "config.yaml"
    optimizer = "optimizer={data_parallel: 3, gradients: 4MiB, step: 5, global_norm: true}"
    counterflow("compile", config, "--set", optimizer, "-o", folder)
    return folder


@pytest.fixture(scope="session")
def compared(compiled, tmp_path_factory) -> Path:
    """The page of `compare` over two schedules."""
    folder = tmp_path_factory.mktemp("compare")
    config = compiled("1f1b") / "config.yaml"
    counterflow("compare", config, "--schedules", "1f1b,zb-h1", "-o", folder)
    (page,) = folder.glob("*.html")
    return page
