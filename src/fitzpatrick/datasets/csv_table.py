"""CSV with named columns: numbers for features; targets as indicators, proportions or class names.

The first line holds the names. Fields are separated by commas, semicolons or tabs, whichever the
first line has most of.
"""

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ._errors import DataError
from ._table import MAX_CLASSES, MAX_FEATURES, Table
from ._text import read_lines

_SUM_TOLERANCE = 1e-6


def read_csv(
    path: Path, targets: Sequence[str] | None, features: Sequence[str] | None = None
) -> Table:
    """Read one file, line by line.

    Args:
        path: the file, plain or compressed.
        targets: names of the target columns. One column: its values are class names. Several:
            0/1 indicators, or proportions that sum to one in each row. ``None``: every column is
            a feature, and Y has no columns.
        features: names of the feature columns; by default all that are not targets.

    Raises:
        DataError: with the line, for ragged rows, text where a number is expected, missing values,
            and targets that are neither indicators nor proportions.
    """
    lines = read_lines(path)
    header = next(lines)[1]
    delimiter = _delimiter(header)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    target_columns, feature_columns = _columns(names, targets, features, path)
    one_class = len(target_columns) == 1
    X, Y, numbers = array("d"), array("d"), array("q")
    classes: list[str] = []
    position = [1]

    def remaining() -> Iterator[str]:
        for number, line in lines:
            position[0] = number
            yield line + "\n"

    reader = csv.reader(remaining(), delimiter=delimiter, strict=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise DataError(f"not CSV ({error})", path, position[0]) from None
        number = position[0]
        if row is None:
            break
        if not row:
            continue
        if len(row) != len(names):
            problem = f"{len(row)} fields, expected {len(names)} as in the first line"
            raise DataError(problem, path, number)
        X.extend(_number(row[i], names[i], path, number) for i in feature_columns)
        if one_class:
            label = row[target_columns[0]].strip()
            if not label:
                raise DataError(f"column {names[target_columns[0]]!r} is empty", path, number)
            classes.append(label)
        else:
            Y.extend(_number(row[i], names[i], path, number) for i in target_columns)
        numbers.append(number)
    if not numbers:
        raise DataError("no sample below the first line", path)
    n = len(numbers)
    values = np.frombuffer(X, dtype=np.float64).reshape(n, len(feature_columns)).copy()
    feature_names = tuple(names[i] for i in feature_columns)
    if one_class:
        return _labelled(values, feature_names, classes, path)
    dense = np.frombuffer(Y, dtype=np.float64) if Y else np.zeros(0)
    targets_array = dense.reshape(n, len(target_columns)).copy()
    kind = _kind(targets_array, numbers, path) if target_columns else "none"
    return Table(
        X=values,
        Y=targets_array,
        kind=kind,
        feature_names=feature_names,
        target_names=tuple(names[i] for i in target_columns),
    )


def read_header(path: Path) -> list[str]:
    """The column names of a CSV file."""
    header = next(read_lines(path))[1]
    return [name.strip() for name in next(csv.reader([header], delimiter=_delimiter(header)))]


def _delimiter(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=bare.count)


def _columns(
    names: list[str],
    targets: Sequence[str] | None,
    features: Sequence[str] | None,
    path: Path,
) -> tuple[list[int], list[int]]:
    """Positions of the targets and of the features."""
    if len(names) > MAX_FEATURES:
        raise DataError(f"more than {MAX_FEATURES} columns", path, 1)
    if "" in names:
        raise DataError(f"column {names.index('') + 1} has no name", path, 1)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are called {twice!r}", path, 1)
    for name in (*(targets or ()), *(features or ())):
        if name not in names:
            shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise DataError(f"no column is called {name!r}; the columns are {shown}", path, 1)
    target_columns = [names.index(name) for name in targets or ()]
    if features is not None:
        feature_columns = [names.index(name) for name in features]
    else:
        feature_columns = sorted(set(range(len(names))) - set(target_columns))
    if not feature_columns:
        raise DataError("every column is a target; there is no feature", path, 1)
    return target_columns, feature_columns


def _number(text: str, column: str, path: Path, number: int) -> float:
    try:
        value = float(text)
    except ValueError:
        what = f"{text[:40]!r} is not a number" if text.strip() else "no value"
        raise DataError(f"column {column!r}: {what}", path, number) from None
    if not np.isfinite(value):
        raise DataError(f"column {column!r}: {text[:40]!r} is not finite", path, number)
    return value


def _labelled(
    X: np.ndarray, feature_names: tuple[str, ...], classes: list[str], path: Path
) -> Table:
    names, codes = np.unique(classes, return_inverse=True)
    if not 2 <= names.size <= MAX_CLASSES:
        problem = f"{names.size} different class name(s) in the target column, expected 2 or more"
        raise DataError(problem, path)
    Y = np.zeros((len(classes), names.size), dtype=np.uint8)
    Y[np.arange(len(classes)), codes] = 1
    return Table(X, Y, "labels", feature_names, tuple(str(name) for name in names))


def _kind(Y: np.ndarray, numbers: "array[int]", path: Path) -> str:
    """Indicators or proportions; anything else is said with its line."""
    if np.isin(Y, (0.0, 1.0)).all():
        return "indicators"
    negative = np.asarray((Y < 0).any(axis=1))
    wrong = negative | (np.abs(Y.sum(axis=1) - 1.0) > _SUM_TOLERANCE)
    if wrong.any():
        row = int(wrong.argmax())
        what = "are negative in part" if negative[row] else f"sum to {Y[row].sum():g}"
        raise DataError(
            f"the targets {what}; expected 0/1 indicators, or proportions that sum to one",
            path,
            numbers[row],
        )
    return "proportions"
