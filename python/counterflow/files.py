"""Values as files: the suffix says the form, and a file is written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import TypeAlias

from counterflow._core import (
    Comparison,
    Program,
    Report,
    Run,
    Schedule,
    ScheduleFile,
    Timeline,
    measure,
)
from counterflow.errors import EnvironmentError, InputError  # noqa: A004
from counterflow.planning import read_text

Value: TypeAlias = "Schedule | ScheduleFile | Program | Report | Timeline | Run | Comparison"
Writers: TypeAlias = "dict[str, Callable[[], str]]"


def _writers(value: Value) -> Writers:
    if isinstance(value, Schedule | ScheduleFile):
        return {".csv": value.to_csv}
    if isinstance(value, Program):
        return {".csv": value.to_csv, ".json": value.to_json}
    if isinstance(value, Report):
        return {".json": value.to_json}
    if isinstance(value, Comparison):
        return {".html": value.html, ".json": value.to_json}
    if isinstance(value, Timeline):
        return _writers(Run(value, measure(value)))
    if isinstance(value, Run):
        return {
            ".html": value.html,
            ".svg": value.svg,
            ".trace.json": value.trace_json,
            ".json": value.timeline_json,
        }
    raise TypeError(f"a {type(value).__name__} has no file form")


def save(value: Value, path: str | os.PathLike[str]) -> None:
    """Writes a value as its suffix says.

    A schedule as ``.csv``; a program as ``.csv`` or ``.json`` (complete); a report as ``.json``;
    a run or a timeline as ``.html`` (the viewer), ``.svg``, ``.json`` or ``.trace.json``
    (Perfetto); a comparison as ``.html`` or ``.json``. Raises InputError for another suffix,
    EnvironmentError where the file cannot be written; then what stood there before stands there
    still.
    """
    name = os.fspath(path)
    writers = _writers(value)
    suffix = next((each for each in writers if name.endswith(each)), None)
    if suffix is None:
        known = ", ".join(writers)
        raise InputError(f"'{name}': a {type(value).__name__} is written as {known}")
    text = writers[suffix]()
    try:
        _write(name, text)
    except OSError as error:
        raise EnvironmentError(f"cannot write '{name}': {error.strerror}") from error


def _write(name: str, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(name) or ".", prefix=".counterflow-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, name)
    except BaseException:
        os.unlink(temporary)
        raise


def load_schedule(path: str | os.PathLike[str]) -> ScheduleFile:
    """Reads a ``.csv`` schedule, with or without communication; ``.compute()`` is its order.

    Raises InputError with row and column.
    """
    return ScheduleFile.from_csv(read_text(path), os.fspath(path))


def load_program(path: str | os.PathLike[str]) -> Program:
    """Reads ``program.json`` exactly; its hash must be its contents'. Raises InputError."""
    return Program.from_json(read_text(path), os.fspath(path))


def load_report(path: str | os.PathLike[str]) -> Report:
    """Reads ``report.json``. Raises InputError."""
    return Report.from_json(read_text(path), os.fspath(path))
