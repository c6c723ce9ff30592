"""What the target columns of a file mean: indicators, proportions, class names or plain numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from ..preprocessing import EXACT_SUM, SUM_TOLERANCE
from ._errors import DataError, one_line, option
from ._numbers import own_numbers, plain_number
from ._table import MAX_CLASSES, Matrix, check_target_cells, indicator, listed
from .columns import Columns, Texts, split_tags

_MANY_NUMBERS = 100
_MIN_LEAK_ROWS = 40
_LEAK_SAMPLE = 1000

Lines = Sequence[int] | np.ndarray


@dataclass(frozen=True, eq=False)
class Targets:
    """The cells of the target columns.

    Attributes:
        names: of the columns.
        cells: numbers, (n, k), NaN where missing; or the words of a single column.
        separator: between the tags of that column; None: each cell is a class.
        are_classes: whether it is known that each cell is a class, even where it is a number: the
            file declares so, or the training file has been read so.
        notes: on how the cells were read.
    """

    names: tuple[str, ...]
    cells: np.ndarray | Texts
    separator: str | None = None
    are_classes: bool = False
    notes: tuple[str, ...] = ()

    def __getitem__(self, rows: np.ndarray) -> "Targets":
        return replace(self, cells=self.cells[rows])

    @property
    def is_missing(self) -> np.ndarray:
        """Where a row has no target; no tags are none that is missing."""
        if isinstance(self.cells, Texts):
            missing = self.cells.is_missing
            return missing if self.separator is None else np.zeros_like(missing)
        return np.asarray(np.isnan(self.cells).any(axis=1))

    def read(
        self, lines: Lines, path: Path, *, plain: bool, normalize: bool
    ) -> tuple[np.ndarray, str, tuple[str, ...], tuple[str, ...]]:
        """Targets, their kind, their names and notes on them."""
        if isinstance(self.cells, Texts):
            (column,) = self.names
            if self.separator is None:
                texts = [self.cells.values[code] for code in self.cells.codes.tolist()]
                Y, classes = read_classes(texts, column, path)
                notes = () if self.are_classes else _note_on_counts(classes, column)
                return Y, "labels", tuple(classes), (*self.notes, *notes)
            Y, tags = read_tags(self.cells, self.separator, column, path)
            note = f"labels, split at {self.separator!r}: {column} ({len(tags)} labels)"
            return Y, "indicators", tuple(tags), (*self.notes, note)
        Y, kind, notes = read_targets(
            self.cells, lines, path, plain=plain, names=self.names, normalize=normalize
        )
        return Y, kind, self.names, (*self.notes, *notes)


def check_names(targets: Sequence[str], ignore: Sequence[str], path: Path) -> None:
    """Raise if a target is named twice, or is to be ignored."""
    if len(set(targets)) != len(targets):
        twice = Counter(targets).most_common(1)[0][0]
        raise DataError(f"the target {twice!r} is named twice", path)
    both = [name for name in targets if name in set(ignore)]
    if both:
        raise DataError(f"{both[0]!r} is named as a target and as a column to ignore", path)


def read_targets(
    Y: np.ndarray,
    lines: Lines,
    path: Path,
    *,
    plain: bool,
    names: Sequence[str],
    normalize: bool = False,
) -> tuple[np.ndarray, str, tuple[str, ...]]:
    """Targets, their kind and notes on them.

    The kind is the one that most rows have; a row that has another one is said with its line.

    Args:
        Y: the numbers of the file.
        lines: the line of each row.
        path: the file.
        plain: whether they are numbers as they are.
        names: of the columns.
        normalize: whether rows of counts, or of numbers near one or 100, are divided by their sums.
    """
    if plain or Y.shape[1] == 0:
        return Y, "numbers" if plain else "none", ()
    sums = Y.sum(axis=1)
    if normalize:
        if (Y < 0).any():
            row, column = np.argwhere(Y < 0)[0]
            problem = f"target column {names[column]!r}: {Y[row, column]:g} is negative; rows that"
            problem += " are divided by their sums have none"
            raise DataError(problem, path, int(lines[row]))
        note = f"each row of targets is divided by its sum ({sums.min():.4g} to {sums.max():.4g})"
        return Y / np.where(sums == 0.0, 1.0, sums)[:, None], "proportions", (note,)
    empty = np.asarray((Y == 0).all(axis=1))  # no label, whatever the kind
    positive = np.asarray((Y >= 0).all(axis=1))
    fits = {
        "indicators": np.isin(Y, (0.0, 1.0)).all(axis=1),
        "proportions": empty | (positive & (np.abs(sums - 1.0) <= SUM_TOLERANCE)),
        "percentages": empty | (positive & (np.abs(sums / 100 - 1.0) <= SUM_TOLERANCE)),
    }
    kind = max(fits, key=lambda one: int((fits[one] & ~empty).sum()))
    if not fits[kind].all():
        row = int((~fits[kind]).argmax())
        problem = _misfit(Y[row], kind, fits[kind], names)
        advice = "--normalize divides each row by its sum" if (Y[row] >= 0).all() else None
        raise DataError(problem, path, int(lines[row]), advice)
    if kind == "indicators":
        return Y.astype(np.uint8), kind, ()
    notes = []
    if kind == "percentages":
        notes.append("the targets are percentages, and divided by 100")
        Y, sums = Y / 100, sums / 100
    sums = np.where(empty, 1.0, sums)
    rounded = int((np.abs(sums - 1.0) > EXACT_SUM).sum())
    if rounded:
        notes.append(
            f"the proportions of {rounded} of {len(Y)} samples do not sum to one exactly "
            f"({sums.min():.4g} to {sums.max():.4g}); each is divided by its sum"
        )
    return Y / sums[:, None], "proportions", tuple(notes)


def _misfit(row: np.ndarray, kind: str, fits: np.ndarray, names: Sequence[str]) -> str:
    """What is wrong with a row of targets, where most others are of a kind."""
    others = int(fits.sum())
    as_others = f", as in {others} of {fits.size} rows" if 2 * others > fits.size else ""
    if (row < 0).any():
        column = int((row < 0).argmax())
        return (
            f"target column {names[column]!r}: {row[column]:g} is negative; expected 0/1 "
            f"indicators, or proportions that sum to one{as_others}"
        )
    if kind == "indicators" and as_others:
        column = int((~np.isin(row, (0.0, 1.0))).argmax())
        return f"target column {names[column]!r}: {row[column]:g}; expected 0 or 1{as_others}"
    total = "100" if kind == "percentages" else "one"
    expected = (
        f"{kind} that sum to {total}{as_others}"
        if as_others
        else ("0/1 indicators, or proportions that sum to one")
    )
    return f"the targets sum to {row.sum():g}; expected {expected}"


def read_classes(values: Sequence[str], column: str, path: Path) -> tuple[np.ndarray, list[str]]:
    """One column of class names: the 0/1 matrix, and the names in their order.

    Args:
        values: the name in each row.
        column: what the column is called.
        path: the file.
    """
    names = sorted(set(values))
    if len(names) > _MANY_NUMBERS and all(map(_is_number, names)):
        raise DataError(
            f"the target column {column!r} has {len(names)} different values; one target column "
            "holds class names (for classes, write c1, c2, … in place of 1, 2, …)",
            path,
            None,
            "to predict a number: fitzpatrick fit --loss squared",
        )
    code = {name: i for i, name in enumerate(names)}
    labels = [code[value] for value in values]
    return indicator(labels, range(len(values) + 1), len(names), path), names


def note_on_leaks(X: Matrix, Y: np.ndarray, columns: Columns) -> list[str]:
    """That a column alone tells the targets, as one does that was made from them.

    Its values must recur, four times each on average; the first rows decide for most columns.
    """
    n = len(Y)
    if n < _MIN_LEAK_ROWS or Y.shape[1] == 0 or sparse.issparse(X):
        return []
    few = min(n, _LEAK_SAMPLE)
    stops = np.cumsum([len(column.feature_names) for column in columns.used])
    blocks = {
        column.name: X[:, stop - len(column.feature_names) : stop]
        for column, stop in zip(columns.used, stops.tolist(), strict=True)
    }
    names = [name for name in blocks if few == n or _tells(blocks[name][:few], Y[:few])]
    return [
        f"{name} alone tells the targets of every row; if it was made from them, --ignore "
        f"{option(name)} leaves it out"
        for name in names
        if _tells(blocks[name], Y)
    ]


def _tells(X: np.ndarray, Y: np.ndarray) -> bool:
    """Whether rows with equal features have equal targets, and there are few of either."""
    values = X @ np.arange(1.0, X.shape[1] + 1)
    order = np.argsort(values, kind="stable")
    is_new = np.diff(values[order]) != 0
    changes = (np.diff(Y[order].astype(np.float64), axis=0) != 0).any(axis=1)
    return bool(4 * (is_new.sum() + 1) <= len(Y) and changes.any() and not changes[~is_new].any())


def _note_on_counts(classes: Sequence[str], column: str) -> tuple[str, ...]:
    """That classes may be meant as counts; nothing for two classes, such as 0 and 1."""
    numbers = (own_numbers(classes) or {}).values()
    if len(numbers) <= 2 or not all(n >= 0 and n.is_integer() for n in numbers):
        return ()
    note = (
        f"{column}: whole numbers {min(numbers):.0f} to {max(numbers):.0f} are taken as "
        f"{len(numbers)} class names; for counts, fit --loss poisson"
    )
    return (one_line(note),)


def read_tags(
    cells: Texts, separator: str, column: str, path: Path
) -> tuple[np.ndarray, list[str]]:
    """One column of several labels a cell: the 0/1 matrix, and the labels in their order."""
    split = [split_tags(value, separator) for value in cells.values]
    counts = cells.counts
    names = sorted({tag for one, n in zip(split, counts, strict=True) if n for tag in one})
    if not names or len(names) > MAX_CLASSES:
        problem = f"the target column {column!r} has {len(names)} different labels"
        raise DataError(f"{problem}: {listed(names)}" if names else problem, path)
    check_target_cells(len(cells.codes), len(names), path)
    position = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(split) + 1, len(names)), dtype=np.uint8)  # the last: cells without any
    for i, one in enumerate(split):
        rows[i, [position[tag] for tag in one if tag in position]] = 1
    return rows[cells.codes], names


def _is_number(text: str) -> bool:
    try:
        plain_number(text)
    except ValueError:
        return False
    return True
