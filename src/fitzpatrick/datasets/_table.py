"""What a reader returns: features, targets and their names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ._errors import DataError

Matrix = Any  # a NumPy array or a SciPy CSR array, (n, d)

MAX_FEATURES = 10_000_000
MAX_CLASSES = 100_000
MAX_TARGET_CELLS = 1_000_000_000
# above this share of non-zero entries a dense array is smaller and faster
DENSE_FROM = 0.25


@dataclass(frozen=True, eq=False)
class Table:
    """Features and targets of one file.

    Attributes:
        X: features, (n, d): a dense array, or CSR where most entries are zero.
        Y: targets, (n, k), dense: 0/1 indicators, or proportions where ``kind`` says so.
        kind: ``"indicators"``, ``"proportions"`` or ``"labels"`` (one class per row).
        feature_names: one per column of X.
        target_names: one per column of Y.
    """

    X: Matrix
    Y: np.ndarray
    kind: str
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]


def compact(X: sparse.csr_array) -> Matrix:
    """Dense where that is the smaller form."""
    cells = X.shape[0] * X.shape[1]
    return X.toarray() if X.nnz >= DENSE_FROM * cells else X


def indicator(rows: list[list[int]], n_classes: int, path: Path) -> np.ndarray:
    """The 0/1 matrix of the labels of each row."""
    if len(rows) * n_classes > MAX_TARGET_CELLS:
        raise DataError(
            f"{len(rows)} rows × {n_classes} classes are more than {MAX_TARGET_CELLS} cells", path
        )
    Y = np.zeros((len(rows), n_classes), dtype=np.uint8)
    counts = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    columns = np.fromiter((label for row in rows for label in row), dtype=np.int64)
    Y[np.repeat(np.arange(len(rows)), counts), columns] = 1
    return Y


def numbered(stem: str, count: int, first: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"{stem}{i}" for i in range(first, first + count))
