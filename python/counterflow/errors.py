"""What goes wrong, with the same words as on the command line.

:class:`InputError` is input you can mend (exit status 2 of the command), :class:`InfeasibleError` a
well-formed question with the answer no (1), :class:`EnvironmentError` surroundings that failed (4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterflow._core import Diagnostic


@dataclass(frozen=True)
class Location:
    """A place in a file. Line and column count from 1; 0: not known."""

    file: str
    line: int = 0
    column: int = 0


class Error(Exception):
    """Everything counterflow raises on purpose."""


class InputError(Error, ValueError):
    """Input that can be mended: the message says the place, the value, the rule and a fix.

    ``location`` is where it stands, ``None`` where it stands in no file.
    """

    def __init__(self, message: str, file: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.location = Location(file, line, column) if file else None

    def __reduce__(self) -> tuple[Any, ...]:
        where = self.location or Location("")
        return type(self), (str(self), where.file, where.line, where.column)


class InfeasibleError(Error):
    """The answer is no: a deadlock, exceeded memory, a faulty schedule.

    ``diagnostics`` are the faults, one :class:`counterflow.Diagnostic` each, where there is a list.
    """

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics)


class EnvironmentError(Error, OSError):  # noqa: A001 (the name of the command line's exit status 4)
    """The surroundings failed: a file that cannot be written, a missing tool."""
