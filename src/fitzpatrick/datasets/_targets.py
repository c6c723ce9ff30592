"""What the target columns of a file mean: indicators, proportions, class names or plain numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ._errors import DataError
from ._table import MAX_CLASSES, indicator

_SUM_TOLERANCE = 0.02  # proportions in files are rounded: thirds of two digits sum to .99
_EXACT = 1e-6
_MANY_NUMBERS = 100
_MAX_NAME = 1000


def check_names(targets: Sequence[str], ignore: Sequence[str], path: Path) -> None:
    """Raise if a target is named twice, or is to be ignored."""
    if len(set(targets)) != len(targets):
        twice = next(name for name in targets if list(targets).count(name) > 1)
        raise DataError(f"the target {twice!r} is named twice", path)
    both = [name for name in targets if name in ignore]
    if both:
        raise DataError(f"{both[0]!r} is named as a target and as a column to ignore", path)


def read_targets(
    Y: np.ndarray, numbers: Sequence[int], path: Path, *, plain: bool
) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Targets, their kind and notes on them; what is of no kind is said with its line.

    Args:
        Y: the numbers of the file.
        numbers: the line of each row.
        path: the file.
        plain: whether they are numbers as they are.
    """
    if plain or Y.shape[1] == 0:
        return Y, "numbers" if plain else "none", ()
    if np.isin(Y, (0.0, 1.0)).all():
        return Y, "indicators", ()
    negative = np.asarray((Y < 0).any(axis=1))
    sums = Y.sum(axis=1)
    labelled = np.asarray((Y != 0).any(axis=1))  # rows of zeros have no label, as indicators may
    wrong = negative | (labelled & (np.abs(sums - 1.0) > _SUM_TOLERANCE))
    if wrong.any():
        row = int(wrong.argmax())
        what = "are negative in part" if negative[row] else f"sum to {sums[row]:g}"
        if abs(sums[row] - 100) <= 100 * _SUM_TOLERANCE:
            what += ", as percentages do: divide them by 100"
        raise DataError(
            f"the targets {what}; expected 0/1 indicators, or proportions that sum to one",
            path,
            numbers[row],
        )
    sums = np.where(labelled, sums, 1.0)
    rounded = int((np.abs(sums - 1.0) > _EXACT).sum())
    note = (
        f"the proportions of {rounded} of {len(Y)} samples do not sum to one exactly "
        f"({sums.min():.4g} to {sums.max():.4g}); each is divided by its sum"
    )
    return Y / sums[:, None], "proportions", (note,) if rounded else ()


def read_classes(
    values: Sequence[str], numbers: Sequence[int], column: str, path: Path
) -> tuple[np.ndarray, list[str]]:
    """One column of class names: the 0/1 matrix, and the names in their order.

    Args:
        values: the name in each row.
        numbers: the line of each row.
        column: what the column is called.
        path: the file.
    """
    names = sorted(set(values))
    if max(map(len, names)) > _MAX_NAME:
        row = next(i for i, value in enumerate(values) if len(value) > _MAX_NAME)
        problem = f"the target column {column!r} has {len(values[row])} characters"
        raise DataError(f"{problem}, which is no name of a class", path, numbers[row])
    if len(names) > MAX_CLASSES or (len(names) > _MANY_NUMBERS and all(map(_is_number, names))):
        raise DataError(
            f"the target column {column!r} has {len(names)} different values; one target column "
            "holds class names (to predict a number: fitzpatrick fit --loss squared; for classes, "
            "write c1, c2, … in place of 1, 2, …)",
            path,
        )
    code = {name: i for i, name in enumerate(names)}
    labels = [code[value] for value in values]
    return indicator(labels, range(len(values) + 1), len(names), path), names


def number(text: str) -> float:
    """A decimal number; underscores, which Python allows in one, are not part of it."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _is_number(text: str) -> bool:
    try:
        number(text)
    except ValueError:
        return False
    return True
