"""A table in parts, for files that come without a split."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from ._table import Table


def split_table(table: Table, sizes: float | Sequence[int], seed: int = 0) -> tuple[Table, ...]:
    """Parts of a table, drawn at random without overlap; each keeps the order of the file.

    Missing numbers are filled anew in all parts, by the medians of the first: what is held out has
    no say in how a model sees its features.

    Args:
        table: what a reader returned.
        sizes: the share of the first of two parts, between 0 and 1, or the number of rows of each
            part; what they leave over is in none.
        seed: of the draw; the same one draws the same parts.

    Example:
        >>> table = Table(np.eye(8), np.eye(8), "indicators", tuple("abcdefgh"), tuple("stuvwxyz"))
        >>> train, test = split_table(table, 0.75)
        >>> train, test
        (Table(6 samples, 8 features, 8 targets (indicators)),
         Table(2 samples, 8 features, 8 targets (indicators)))
    """
    n = table.X.shape[0]
    if isinstance(sizes, float | int):
        if not 0.0 < sizes < 1.0:
            raise ValueError(f"a share must be between 0 and 1, got {sizes}")
        first = min(max(round(sizes * n), 1), n - 1)
        sizes = (first, n - first)
    if any(size < 1 for size in sizes) or sum(sizes) > n:
        raise ValueError(f"the parts must have rows, {n} in all, got {tuple(sizes)}")
    order = np.random.default_rng(seed).permutation(n)
    ends = np.cumsum(sizes)
    chosen = [np.sort(order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    refilled = _refilled(table, chosen[0])
    return tuple(refilled.rows(rows) for rows in chosen)


def _refilled(table: Table, rows: np.ndarray) -> Table:
    """The table with the medians of some rows in place of those of all."""
    if table.columns is None:
        return table
    X, items, stop = table.X, [], 0
    for column in table.columns.items:
        start, stop = stop, stop + len(column.feature_names)
        block = table.X[:, start : min(stop, start + 2)]  # a number and its mark
        block = block.toarray() if sparse.issparse(block) else block
        column, fill = column.refill(block, rows)
        if fill is not None:
            if X is table.X:
                X = sparse.lil_array(X) if sparse.issparse(X) else X.copy()
            X[block[:, 1] == 1.0, start] = fill
        items.append(column)
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    return replace(table, X=X, columns=replace(table.columns, items=tuple(items)))
