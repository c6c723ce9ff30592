"""One door to every format: by its suffix, or by the name that the caller gives."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ._errors import DataError
from ._table import Codes, Matrix, Table, check_target_cells, listed
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
    like: Table | None = None,
    *,
    ignore: Sequence[str] = (),
    plain: bool = False,
) -> Table:
    """Features and targets of a file of any known format.

    Args:
        path: a CSV, LIBSVM multi-label or ARFF file, plain or compressed.
        targets: target columns; CSV files need them, ARFF files may say it themselves.
        format: ``"csv"``, ``"libsvm"`` or ``"arff"``; by default what the suffix says.
        like: a table whose features are read, by name and in its order, and no others; not every
            class of it need occur here.
        ignore: columns that are neither features nor targets.
        plain: whether targets are numbers as they are, such as counts.
    """
    features, codes = (None, None) if like is None else (like.feature_names, like.codes)
    ignore = ignore if like is None else ()
    match format or format_of(path):
        case "libsvm":
            if targets or ignore:
                problem = "LIBSVM files have no named columns; leave --targets and --ignore out"
                raise DataError(problem, path)
            _refuse_codes(codes, path)
            table = read_libsvm(path, n_features=None if like is None else like.X.shape[1])
        case "arff":
            table = read_arff(path, targets, features, codes=codes, ignore=ignore, plain=plain)
        case "csv":
            if not targets:
                columns = listed(read_header(path))
                problem = f"name the target columns with --targets; the columns are {columns}"
                raise DataError(problem, path, 1)
            table = read_csv(path, targets, features, codes=codes, ignore=ignore, plain=plain)
        case other:
            raise _unknown(other, path)
    return table if like is None else replace(_as_in(like, table, path), codes=like.codes)


def read_features(
    path: Path,
    names: Sequence[str],
    codes: Codes,
    format: str | None = None,  # noqa: A002  (the option is called --format)
) -> Matrix:
    """The named columns of a file, in that order; in LIBSVM files, the first ``len(names)``.

    Args:
        path: the file.
        names: of the features.
        codes: the numbers of words, for the features that hold such, as in the training table.
        format: as in :func:`read_table`.
    """
    match format or format_of(path):
        case "libsvm":
            _refuse_codes(codes, path)
            return read_libsvm(path, n_features=len(names), need_labels=False).X
        case "arff":
            return read_arff(path, targets=(), features=names, codes=codes).X
        case "csv":
            return read_csv(path, targets=None, features=names, codes=codes).X
        case other:
            raise _unknown(other, path)


def _refuse_codes(codes: Codes | None, path: Path) -> None:
    for name, values in (codes or {}).items():
        problem = f"LIBSVM files hold numbers; the values of {name!r} in the training file are"
        raise DataError(f"{problem} {listed(values)}", path)


def _unknown(name: str, path: Path) -> DataError:
    return DataError(f"format {name!r} is not one of {', '.join(FORMATS)}", path)


def _as_in(like: Table, table: Table, path: Path) -> Table:
    """The table with the classes of another one."""
    if table.target_names == like.target_names:
        return table
    position = {name: i for i, name in enumerate(like.target_names)}
    foreign = [name for name in table.target_names if name not in position]
    if foreign or table.kind == "proportions":
        what = f"class {foreign[0]!r}" if foreign else "its target columns"
        raise DataError(f"{what}: not among those of the training file", path)
    check_target_cells(table.Y.shape[0], len(position), path)
    Y = np.zeros((table.Y.shape[0], len(position)), dtype=table.Y.dtype)
    Y[:, [position[name] for name in table.target_names]] = table.Y
    return replace(table, Y=Y, target_names=like.target_names)
