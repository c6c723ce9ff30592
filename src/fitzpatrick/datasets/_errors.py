"""The one error of the readers: which file, which line, what was wrong, what was expected."""

from pathlib import Path


class DataError(ValueError):
    """A file that cannot be used, with the place of the fault in the message.

    Example:
        >>> print(DataError("no label column", Path("a.csv"), 3))
        a.csv, line 3: no label column
    """

    def __init__(self, problem: str, path: Path, line: int | None = None) -> None:
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {problem}")
        self.problem = problem
        self.path = path
        self.line = line

    def __reduce__(self) -> tuple[type["DataError"], tuple[str, Path, int | None]]:
        """Worker processes send it to the one that started them."""
        return DataError, (self.problem, self.path, self.line)


class UnavailableError(RuntimeError):
    """A data set that is neither on this machine nor to be had, with the reason."""
