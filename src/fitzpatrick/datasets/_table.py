"""What a reader returns: features, targets and their names; and parts of it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ._errors import DataError

if TYPE_CHECKING:
    from .columns import Columns

Matrix = Any  # a NumPy array or a SciPy CSR array, (n, d)

MAX_FEATURES = 1_000_000
MAX_CLASSES = 100_000
MAX_TARGET_CELLS = 100_000_000  # 800 MB in float64, which every loss needs
# above this share of non-zero entries a dense array is smaller and faster
DENSE_FROM = 0.25


@dataclass(frozen=True, eq=False)
class Table:
    """Features and targets of one file.

    Attributes:
        X: features, (n, d): a dense array, or CSR where most entries are zero.
        Y: targets, (n, k), dense: 0/1 indicators, or proportions where ``kind`` says so.
        kind: ``"indicators"``, ``"proportions"``, ``"labels"`` (one class per row), ``"numbers"``
            (as they are) or ``"none"``.
        feature_names: one per column of X.
        target_names: one per column of Y.
        notes: sentences on what was made of the file.
        columns: the recipe that made the features, for other files: :func:`read_table` with
            ``like``, and :func:`read_inputs`.
        lines: line of each row in the file; empty where rows were put together otherwise.
    """

    X: Matrix
    Y: np.ndarray
    kind: str
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    columns: "Columns | None" = None
    lines: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def __repr__(self) -> str:
        n, width = self.X.shape
        targets = f"{counted(len(self.target_names), 'target')} ({self.kind})"
        return f"Table({counted(n, 'sample')}, {counted(width, 'feature')}, {targets})"

    @property
    def has_several_labels(self) -> bool:
        """True if a sample may have more than one label, and one has."""
        return self.kind == "indicators" and bool((self.Y.sum(axis=1) > 1).any())

    @property
    def without_label(self) -> str:
        """How many samples have no label, in words; empty if all have one."""
        rows = np.asarray(self.Y.sum(axis=1) > 0)
        return "" if rows.all() else f"{(~rows).sum()} of {rows.size} samples have no label"

    def labelled(self, path: Path) -> "Table":
        """The samples with a label, for a choice among the classes; notes say how many have none.

        Raises:
            DataError: if there is no label, or no choice.
        """
        rows = np.asarray(self.Y.sum(axis=1) > 0)
        if not rows.any():
            raise DataError("no sample has a label", path)
        if self.Y.shape[1] < 2:
            only = self.target_names[0]
            raise DataError(f"the only class is {only!r}; expected two or more", path)
        if rows.all():
            return self
        note = f"{self.without_label} and are left out"
        return replace(self.rows(np.flatnonzero(rows)), notes=(*self.notes, note))

    def rows(self, chosen: np.ndarray) -> "Table":
        """The table of some rows, by their positions."""
        lines = self.lines[chosen] if self.lines.size else self.lines
        return replace(self, X=self.X[chosen], Y=self.Y[chosen], lines=lines)


def check_target_cells(n: int, n_classes: int, path: Path) -> None:
    """Raise if the targets, which are dense, would fill the memory."""
    if n * n_classes > MAX_TARGET_CELLS:
        problem = f"{n} samples × {n_classes} classes are more than {MAX_TARGET_CELLS} targets"
        raise DataError(f"{problem}; leave out samples, or classes that are rare", path)


def listed(names: Iterable[str], *, quotes: bool = True, most: int = 20) -> str:
    """Names with commas, of many the first and the last; one with a comma or a space in quotes."""
    shown = [repr(one) if quotes and re.search(r"[,\s]", one) else one for one in names]
    if len(shown) > most:
        shown[most - most // 4 : len(shown) - most // 4] = ["…"]
    return ", ".join(shown)


def counted(count: int, what: str) -> str:
    """How many there are of a thing: 1 row, 2 rows."""
    return f"{count} {what}{'s' * (count != 1)}"


def numbered(stem: str, count: int, first: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"{stem}{i}" for i in range(first, first + count))


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
    """The table with missing numbers filled by the medians of the given rows alone."""
    if table.columns is None:
        return table
    X, items, stop = table.X, [], 0
    for column in table.columns.items:
        start, stop = stop, stop + len(column.feature_names)
        if getattr(column, "fill", None) is not None and stop == start + 2:
            block = table.X[:, start:stop]  # a number and its mark
            block = block.toarray() if sparse.issparse(block) else block
            known = block[rows, 0][block[rows, 1] == 0.0]
            if known.size:
                if X is table.X:
                    X = sparse.lil_array(X) if sparse.issparse(X) else X.copy()
                fill = float(np.median(known))
                X[block[:, 1] == 1.0, start] = fill
                column = replace(column, fill=fill)  # type: ignore[call-arg]
        items.append(column)
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    return replace(table, X=X, columns=replace(table.columns, items=tuple(items)))
