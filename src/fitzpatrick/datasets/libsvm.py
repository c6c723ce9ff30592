"""LIBSVM multi-label text: ``l1,l2 f:v f:v …``.

Labels are whole numbers from 0, features are numbered from 1, zeros are left out. A line that
begins with a space, or with a feature, is a sample without labels. ``#`` begins a comment.
"""

import os
import re
from array import array
from pathlib import Path

import numpy as np
from scipy import sparse

from ._errors import DataError
from ._table import DENSE_FROM, MAX_CLASSES, MAX_FEATURES, Table, check_target_cells, numbered
from ._text import read_lines
from .columns import Columns

_PAIR = r"[+-]?\d{1,18}+:[+-]?(?:\d++\.?\d*+(?:e[+-]?\d++)?|\.\d++(?:e[+-]?\d++)?|nan|inf)"
_PAIRS = re.compile(rf"(?:{_PAIR}(?: {_PAIR})*+)?", re.ASCII | re.IGNORECASE).fullmatch


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
        need_labels: True if a file without any label is an error.

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
        try:
            if not (text[0].isspace() or ":" in tokens[0]):
                labels.extend(_labels(tokens.pop(0), max_class))
            row_indices, row_values = _features(tokens, max_feature)
        except ValueError as error:
            raise DataError(str(error), path, number) from None
        label_starts.append(len(labels))
        indices.extend(row_indices)
        values.extend(row_values)
        starts.append(len(indices))
        lines.append(number)
    if not lines:
        raise DataError("no sample in the file", path)
    columns = np.array(indices, dtype=np.int64) - 1
    d = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
    k = n_classes if n_classes is not None else max(labels, default=-1) + 1
    if d == 0 or (k == 0 and need_labels):
        raise DataError(f"no {'feature' if d == 0 else 'label'} in the whole file", path)
    n, recipe = len(lines), Columns(n_numbered=d)
    check_target_cells(n, k, path)
    X = sparse.csr_array((np.array(values), columns, np.array(starts)), (n, d))
    X.sort_indices()
    ones = np.ones(len(labels), dtype=np.uint8)
    Y = sparse.csr_array((ones, np.array(labels), np.array(label_starts)), (n, k)).toarray()
    names = recipe.feature_names, numbered("label_", k, 0)
    X = X.toarray() if X.nnz >= DENSE_FROM * n * d else X
    return Table(X, Y, "indicators", *names, tuple(notes), recipe, np.array(lines))


def _labels(token: str, max_class: int) -> list[int]:
    labels = []
    for part in token.split(","):
        if not (part.isascii() and part.isdigit()):
            problem = f"label {_short(part)} is not a whole number from 0"
            raise ValueError(f"{problem} (a sample without labels begins with a space)")
        if len(part) > 18 or int(part) >= max_class:
            raise ValueError(f"label {_short(part)} is out of range, expected 0 to {max_class - 1}")
        labels.append(int(part))
    if len(set(labels)) != len(labels):
        raise ValueError(f"a label occurs twice in {_short(token)}")
    return labels


def _features(tokens: list[str], max_feature: int) -> tuple[list[int], list[float]]:
    if not _PAIRS(" ".join(tokens)):
        wrong = next(token for token in tokens if not _PAIRS(token))
        raise ValueError(f"{_short(wrong)} is not a feature of the form index:value")
    parts = ":".join(tokens).split(":") if tokens else []
    indices, values = list(map(int, parts[::2])), list(map(float, parts[1::2]))
    low, high = min(indices, default=1), max(indices, default=1)
    if low < 1 or high > max_feature:
        index = low if low < 1 else high
        raise ValueError(f"feature index {index} is out of range, expected 1 to {max_feature}")
    if len(set(indices)) != len(indices):
        raise ValueError("a feature index occurs twice")
    if not np.isfinite(values).all():
        raise ValueError("a feature value is not a finite number")
    return indices, values


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
