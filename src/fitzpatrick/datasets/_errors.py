"""The one error of the readers: which file, which line, what was wrong, what to do."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def one_line(text: str) -> str:
    """Text without line breaks and control characters, which names in files may have."""
    return _BREAKS.sub(" ", text)


def option(*names: str) -> str:
    """Names of columns as one word of a command line; one with a comma is in quotes."""
    text = ",".join(f'"{name}"' if "," in name else name for name in names)
    return text if re.fullmatch(r"[\w.,-]+", text) else shlex.quote(text)


@dataclass(eq=False, repr=False)
class DataError(ValueError):
    """A file that cannot be used; the message says where the fault is.

    Attributes:
        problem: what is wrong, and what can be changed in the file.
        path: the file.
        line: its line, counted from 1; None for a fault of the whole file.
        advice: options of the command line that help, or None. Commands without these options
            leave it out, by :meth:`without_advice`.

    Example:
        >>> print(DataError("no value", Path("a.csv"), 3, "--missing drop leaves such rows out"))
        a.csv, line 3: no value; --missing drop leaves such rows out
    """

    problem: str
    path: Path
    line: int | None = None
    advice: str | None = None

    def __post_init__(self) -> None:
        self.problem, self.advice = one_line(self.problem), one_line(self.advice or "") or None
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields, however they were given: worker processes send errors."""
        return DataError, (self.problem, self.path, self.line, self.advice), vars(self)

    def __str__(self) -> str:
        where = f"{self.path}, line {self.line}" if self.line is not None else f"{self.path}"
        return f"{where}: {self.problem}{f'; {self.advice}' if self.advice else ''}"

    def without_advice(self) -> "DataError":
        """This error, for callers that do not have the reader's options."""
        return DataError(self.problem, self.path, self.line)


class UnavailableError(RuntimeError):
    """A data set that is not on this machine and cannot be downloaded; the message says why."""
