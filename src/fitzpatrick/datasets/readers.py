"""One door to every format: by its suffix, or by the name that the caller gives."""

from collections.abc import Sequence
from pathlib import Path

from ._errors import DataError
from ._table import Table
from ._text import plain_suffix
from .arff import read_arff
from .csv_table import read_csv, read_header
from .libsvm import read_libsvm

FORMATS = ("csv", "libsvm", "arff")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".arff": "arff",
}


def format_of(path: Path) -> str:
    """The format that a file's suffix stands for.

    Example:
        >>> format_of(Path("yeast_train.svm.gz"))
        'libsvm'
    """
    suffix = plain_suffix(path)
    if suffix not in _SUFFIXES:
        known = ", ".join(_SUFFIXES)
        problem = f"the format of a {suffix or 'suffix-less'} file is not known; expected {known}"
        raise DataError(f"{problem}, or name it with --format", path)
    return _SUFFIXES[suffix]


def read_table(
    path: Path,
    targets: Sequence[str] | None = None,
    format: str | None = None,  # noqa: A002  (the option is called --format)
    n_features: int | None = None,
) -> Table:
    """Features and targets of a file of any known format.

    Args:
        path: a CSV, LIBSVM multi-label or ARFF file, plain or compressed.
        targets: target columns; CSV files need them, ARFF files may say it themselves.
        format: ``"csv"``, ``"libsvm"`` or ``"arff"``; by default what the suffix says.
        n_features: for LIBSVM files, whose last features need not occur.
    """
    match format or format_of(path):
        case "libsvm":
            if targets:
                raise DataError("LIBSVM files have no named columns; leave --targets out", path)
            return read_libsvm(path, n_features=n_features)
        case "arff":
            return read_arff(path, targets)
        case "csv":
            if not targets:
                names = read_header(path)
                shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
                problem = f"name the target columns with --targets; the columns are {shown}"
                raise DataError(problem, path, 1)
            return read_csv(path, targets)
        case other:
            raise DataError(f"format {other!r} is not one of {', '.join(FORMATS)}", path)
