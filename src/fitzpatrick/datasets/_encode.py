"""Cells of all columns, and a recipe: the features and the notes on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ._errors import DataError
from ._notes import column_notes
from ._table import MAX_FEATURES, Matrix
from .columns import (
    Boolean,
    Category,
    CellError,
    Cells,
    Column,
    Columns,
    Ignored,
    Number,
    Tally,
    Texts,
    join_features,
)


def check_width(columns: Columns, path: Path) -> None:
    """Raise if there is no feature, or more than can be held."""
    width = columns.n_features
    if width == 0:
        reasons = [f"{column.name} ({column.reason})" for column in columns.ignored]
        left_out = f": {', '.join(reasons[:5])}" if reasons else ""
        raise DataError(f"no column is left to be a feature{left_out}", path)
    if width > MAX_FEATURES:
        raise DataError(f"the categories make more than {MAX_FEATURES} features", path)


def encode(
    columns: Columns,
    cells: Mapping[str, Cells],
    lines: Sequence[int] | np.ndarray,
    path: Path,
    *,
    of_training: bool,
) -> tuple[Matrix, tuple[str, ...]]:
    """Features of the cells, by column, and notes on what was done."""
    tally = Tally()
    blocks = [
        encode_column(column, cells[column.name], tally, lines, path) for column in columns.used
    ]
    X = join_features(blocks, len(lines))
    return X, column_notes(columns, tally, of_training=of_training)


def encode_column(
    column: Column, cells: Cells, tally: Tally, lines: Sequence[int] | np.ndarray, path: Path
) -> Matrix:
    """Features of one column; a cell that is refused is named with its line."""
    try:
        return column.encode(cells, tally)
    except CellError as error:
        line = int(lines[error.row])
        raise DataError(f"column {column.name!r}: {error}", path, line) from None


def is_missing(cells: Cells) -> np.ndarray:
    """Where cells are missing."""
    return cells.is_missing if isinstance(cells, Texts) else np.isnan(cells)


def relearned(columns: Columns, cells: Mapping[str, Cells]) -> Columns:
    """The recipe after rows with missing values have been left out."""
    items = (
        column if isinstance(column, Ignored) else _relearned(column, cells[column.name])
        for column in columns.items
    )
    return replace(columns, items=tuple(items))


def _relearned(column: Column, cells: Cells) -> Column:
    if isinstance(column, Number | Boolean) and column.fill is not None:
        numbers = column.encode(cells, Tally())[:, 0]
        return replace(column, fill=float(np.median(numbers)), marks_missing=False)
    if isinstance(column, Category) and isinstance(cells, Texts):
        values = {value for value, n in zip(cells.values, cells.counts, strict=True) if n}
        return replace(column, values=tuple(one for one in column.values if one in values))
    return column
