"""LIBSVM multi-label text: ``l1,l2 f:v f:v …``.

Labels are whole numbers from 0, features are numbered from 1, zeros are left out. A line that
begins with a space, or with a feature, is a sample without labels. ``#`` begins a comment.
"""

import os
from array import array
from pathlib import Path

import numpy as np
from scipy import sparse

from ._errors import DataError
from ._table import MAX_CLASSES, MAX_FEATURES, Table, compact, indicator, numbered
from ._text import read_lines
from .columns import Columns


def read_libsvm(
    path: str | os.PathLike[str],
    n_features: int | None = None,
    n_classes: int | None = None,
    *,
    need_labels: bool = True,
) -> Table:
    """Read a LIBSVM file.

    Args:
        path: the file, plain or compressed (gzip, bzip2, xz, a ZIP archive with one file).
        n_features: number of features; without it, the highest that occurs.
        n_classes: number of classes; without it, the highest label that occurs and one.
        need_labels: whether a file without any label is an error.

    Raises:
        DataError: with the line, for whatever is not in the format or out of range.
    """
    path = Path(path)
    max_feature = n_features if n_features is not None else MAX_FEATURES
    max_class = n_classes if n_classes is not None else MAX_CLASSES
    indices, values, starts = array("q"), array("d"), array("q", [0])
    labels, label_starts = array("q"), array("q", [0])
    notes: list[str] = []
    lines = array("q")
    for number, line in read_lines(path, notes):
        text = line.partition("#")[0]
        tokens = text.split()
        if not tokens:
            continue
        unlabelled = text[0].isspace() or ":" in tokens[0]
        if not unlabelled:
            labels.extend(_labels(tokens.pop(0), max_class, path, number))
        label_starts.append(len(labels))
        row_indices, row_values = _features(tokens, max_feature, path, number)
        indices.extend(row_indices)
        values.extend(row_values)
        starts.append(len(indices))
        lines.append(number)
    n = len(starts) - 1
    if n == 0:
        raise DataError("no sample in the file", path)
    columns = np.frombuffer(indices, dtype=np.int64) - 1 if indices else np.zeros(0, np.int64)
    d = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
    k = n_classes if n_classes is not None else max(labels, default=-1) + 1
    if d == 0 or (k == 0 and need_labels):
        raise DataError(f"no {'feature' if d == 0 else 'label'} in the whole file", path)
    data = np.frombuffer(values, dtype=np.float64) if values else np.zeros(0)
    X = sparse.csr_array((data.copy(), columns, np.frombuffer(starts, dtype=np.int64)), (n, d))
    X.sort_indices()
    features = Columns(n_numbered=d)
    return Table(
        X=compact(X),
        Y=indicator(labels, label_starts, k, path),
        kind="indicators",
        feature_names=features.feature_names,
        target_names=numbered("label_", k, 0),
        notes=tuple(notes),
        columns=features,
        lines=np.array(lines, dtype=np.int64),
    )


def _labels(token: str, max_class: int, path: Path, number: int) -> list[int]:
    labels = []
    for part in token.split(","):
        if not (part.isascii() and part.isdigit()):
            raise DataError(
                f"label {_short(part)} is not a whole number from 0 "
                "(a sample without labels begins with a space)",
                path,
                number,
            )
        if len(part) > 18 or int(part) >= max_class:
            raise DataError(
                f"label {_short(part)} is out of range, expected 0 to {max_class - 1}", path, number
            )
        labels.append(int(part))
    if len(set(labels)) != len(labels):
        raise DataError(f"a label occurs twice in {_short(token)}", path, number)
    return labels


def _features(
    tokens: list[str], max_feature: int, path: Path, number: int
) -> tuple[list[int], list[float]]:
    """Indices and values; the common case in two passes, the faulty one token by token."""
    try:
        pairs = [token.split(":") for token in tokens]
        indices = [int(index) for index, _ in pairs]
        values = [float(value) for _, value in pairs]
        if any("_" in token for token in tokens):  # Python's numbers may have one
            raise ValueError
    except ValueError:
        _explain(tokens, path, number)
        raise
    if indices:
        low, high = min(indices), max(indices)
        if low < 1 or high > max_feature:
            raise DataError(
                f"feature index {low if low < 1 else high} is out of range, expected 1 to "
                f"{max_feature}",
                path,
                number,
            )
        if len(set(indices)) != len(indices):
            raise DataError("a feature index occurs twice", path, number)
        if not np.isfinite(values).all():
            raise DataError("a feature value is not a finite number", path, number)
    return indices, values


def _explain(tokens: list[str], path: Path, number: int) -> None:
    for token in tokens:
        index, colon, value = token.partition(":")
        try:
            int(index), float(value)
            if "_" in token:
                raise ValueError
        except ValueError:
            problem = f"{_short(token)} is not a feature of the form index:value"
            raise DataError(problem, path, number) from None
        if not colon or ":" in value:
            raise DataError(f"{_short(token)} has no value after a colon", path, number)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
