"""CSV with named columns: numbers for features; targets as indicators, proportions or class names.

The first line holds the names. Fields are separated by commas, semicolons or tabs, whichever the
first line has most of.
"""

import csv
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ._errors import DataError
from ._table import IGNORE, MAX_FEATURES, Codes, Table, listed
from ._targets import check_names, read_classes, read_targets
from ._targets import number as parse_number
from ._text import read_lines


def read_csv(
    path: Path,
    targets: Sequence[str] | None,
    features: Sequence[str] | None = None,
    *,
    codes: Codes | None = None,
    ignore: Sequence[str] = (),
    plain: bool = False,
) -> Table:
    """Read one file, line by line.

    Args:
        path: the file, plain or compressed.
        targets: names of the target columns. One column: its values are class names. Several:
            0/1 indicators, or proportions that sum to one in each row. ``None``: every column is
            a feature, and Y has no columns.
        features: names of the feature columns; by default all that are not targets or ignored.
        codes: the numbers of words, for the features that hold such.
        ignore: names of columns that are not read.
        plain: whether targets are numbers as they are, such as counts.

    Raises:
        DataError: with the line, for ragged rows, text where a number is expected, missing values,
            and targets that are neither indicators nor proportions.
    """
    lines = read_lines(path)
    names, delimiter = _header(lines, path)
    target_columns, feature_columns = _columns(names, targets, features, ignore, path)
    one_class = len(target_columns) == 1 and not plain
    words = {i: codes[names[i]] for i in feature_columns if names[i] in codes} if codes else {}
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
        for i, numbers_of in words.items():
            row[i] = _digits(row[i], numbers_of, names[i], path, number)
        X.extend(_number(row[i], names[i], path, number, IGNORE) for i in feature_columns)
        if one_class:
            label = row[target_columns[0]].strip()
            if not label:
                raise DataError(f"column {names[target_columns[0]]!r} is empty", path, number)
            classes.append(label)
        else:
            Y.extend(_number(row[i], names[i], path, number, "") for i in target_columns)
        numbers.append(number)
    if not numbers:
        raise DataError("no sample below the first line", path)
    n = len(numbers)
    values = np.frombuffer(X, dtype=np.float64).reshape(n, len(feature_columns)).copy()
    feature_names = tuple(names[i] for i in feature_columns)
    if one_class:
        Y_classes, class_names = read_classes(classes, numbers, names[target_columns[0]], path)
        return Table(values, Y_classes, "labels", feature_names, tuple(class_names))
    dense = np.frombuffer(Y, dtype=np.float64) if Y else np.zeros(0)
    targets_array = dense.reshape(n, len(target_columns)).copy()
    targets_array, kind, notes = read_targets(targets_array, numbers, path, plain=plain)
    target_names = tuple(names[i] for i in target_columns)
    return Table(values, targets_array, kind, feature_names, target_names, notes)


def read_header(path: Path) -> list[str]:
    """The column names of a CSV file."""
    return _header(read_lines(path), path)[0]


def _header(lines: Iterator[tuple[int, str]], path: Path) -> tuple[list[str], str]:
    """The column names, and what separates them."""
    header = next(lines)[1]
    if "\r" in header:
        raise DataError("lines end in CR alone; save the file with LF or CRLF", path, 1)
    delimiter = _delimiter(header)
    try:
        names = next(csv.reader([header], delimiter=delimiter), [])
    except csv.Error as error:
        raise DataError(f"not CSV ({error})", path, 1) from None
    return [name.strip() for name in names], delimiter


def _delimiter(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(",;\t", key=bare.count)


def _columns(
    names: list[str],
    targets: Sequence[str] | None,
    features: Sequence[str] | None,
    ignore: Sequence[str],
    path: Path,
) -> tuple[list[int], list[int]]:
    """Positions of the targets and of the features."""
    if len(names) > MAX_FEATURES:
        raise DataError(f"more than {MAX_FEATURES} columns", path, 1)
    if "" in names:
        problem = f"column {names.index('') + 1} has no name"
        advice = "write the file without it (pandas: index=False), or name it and --ignore it"
        raise DataError(f"{problem}; {advice}", path, 1)
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"two columns are called {twice!r}", path, 1)
    check_names(targets or (), ignore, path)
    for name in (*(targets or ()), *(features or ()), *ignore):
        if name not in names:
            problem = f"no column is called {name!r}; the columns are {listed(names)}"
            raise DataError(problem, path, 1)
    target_columns = [names.index(name) for name in targets or ()]
    if features is not None:
        feature_columns = [names.index(name) for name in features]
    else:
        left_out = {*(targets or ()), *ignore}
        feature_columns = [i for i, name in enumerate(names) if name not in left_out]
    if not feature_columns:
        raise DataError("every column is a target or ignored; there is no feature", path, 1)
    return target_columns, feature_columns


def _digits(word: str, codes: Mapping[str, float], column: str, path: Path, number: int) -> str:
    """The number of a word, as the file would write it."""
    if word.strip() not in codes:
        problem = f"column {column!r}: {word[:40]!r} is none of the values of the training file"
        raise DataError(f"{problem}: {listed(codes)}", path, number)
    return repr(codes[word.strip()])


def _number(text: str, column: str, path: Path, number: int, advice: str) -> float:
    try:
        value = parse_number(text)
    except ValueError:
        what = f"{text[:40]!r} is not a number" if text.strip() else "no value"
        raise DataError(f"column {column!r}: {what}{advice}", path, number) from None
    if not np.isfinite(value):
        raise DataError(f"column {column!r}: {text[:40]!r} is not finite", path, number)
    return value
