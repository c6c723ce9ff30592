"""What the target columns of a file mean: indicators, proportions, class names or plain numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ..preprocessing import EXACT_SUM, SUM_TOLERANCE
from ._errors import DataError, one_line, option
from ._frame import Frame, Reading, Texts, as_texts, dense, is_missing
from ._learn import can_be_held, check_missing, check_words, find_separator
from ._numbers import PLAIN, no_and_yes, own_numbers
from ._table import MAX_CLASSES, Matrix, check_target_cells, listed
from .columns import MAX_TEXT, Category, Columns, Notes, Tags, tags_among

_MANY_NUMBERS = 100
_MIN_LEAK_ROWS = 40
_LEAK_SAMPLE = 1000
_EXACT_BELOW = 2.0**53  # whole numbers from here on are not all told apart


@dataclass(frozen=True, eq=False)
class Targets:
    """The cells of the target columns."""

    names: tuple[str, ...]
    cells: np.ndarray | Texts  # numbers, (n, k), NaN where missing; or words of a single column
    separator: str | None = None  # between the tags of that column; None: each cell is a class
    are_classes: bool = False  # True if numbers are known to be classes, not counts
    notes: tuple[str, ...] = ()

    def __getitem__(self, rows: np.ndarray) -> "Targets":
        return replace(self, cells=self.cells[rows])

    @property
    def is_missing(self) -> np.ndarray:
        """Where a row has no target; a cell without tags is not missing."""
        missing = is_missing(self.cells)
        if self.separator is not None:
            return np.zeros_like(missing)
        return missing if isinstance(self.cells, Texts) else np.asarray(missing.any(axis=1))

    def read(
        self, lines: np.ndarray, path: Path, *, plain: bool, normalize: bool
    ) -> tuple[np.ndarray, str, tuple[str, ...], tuple[str, ...]]:
        """Targets, their kind, their names and notes on them."""
        if not isinstance(self.cells, Texts):
            Y, names = self.cells, self.names
            Y, kind, notes = _read_numbers(Y, names, lines, path, plain=plain, normalize=normalize)
            return Y, kind, self.names, (*self.notes, *notes)
        (column,) = self.names
        Y, names = _read_words(self.cells, column, self.separator, path)
        if self.separator is not None:
            note = f"labels, split at {self.separator!r}: {column} ({len(names)} labels)"
            return Y, "indicators", names, (note,)
        note = "" if self.are_classes else _note_on_counts(names, column)
        return Y, "labels", names, (note,) if note else ()


def target_readings(frame: Frame, names: Sequence[str]) -> dict[str, Reading]:
    """The target columns that are numbers, as they are read."""
    columns = [name for name in names if not frame.declares_words(name)]
    found = {name: frame.reading(name) for name in columns}
    return {name: one for name, one in found.items() if one.n_words <= one.n_numbers}


def class_target(frame: Frame, name: str, *, of_training: bool) -> Targets:
    """The one target column whose cells are classes, or several labels each."""
    cells, kind = dense(frame.column(name)), frame.options.kind_of(name)
    if not isinstance(cells, Texts) and (np.abs(cells) >= _EXACT_BELOW).any():
        row = int((np.abs(cells) >= _EXACT_BELOW).argmax())
        problem = f"class {cells[row]:.17g} of {name!r} is too large a number; declare the values"
        raise DataError(f"{problem} in braces", frame.path, int(frame.lines[row]))
    texts = as_texts(cells)
    if not can_be_held(texts, MAX_CLASSES):
        long = next((value for value in texts.present if len(value) > MAX_TEXT), None)
        what = f"more than {MAX_CLASSES} different values"
        if long is not None:
            what = f"{len(long)} characters, which is no name of a class"
        line = frame.first_line(texts, long) if long is not None else None
        raise DataError(f"the target column {name!r} has {what}", frame.path, line)
    is_certain = kind == "tags"
    separator = None if kind == "category" else find_separator(texts.present, certain=is_certain)
    if separator is None:
        check_missing(frame, name, texts, is_target=True)
    is_nominal = name in frame.attributes and frame.attributes[name].type == "nominal"
    return Targets((name,), texts, separator, are_classes=is_nominal or not of_training)


def number_targets(
    frame: Frame, names: Sequence[str], readings: Mapping[str, Reading], found: Mapping[str, Any]
) -> Targets:
    """Target columns of numbers; no is 0 and yes is 1."""
    for name, reading in readings.items():
        check_words(frame, name, reading, is_target=True)
    columns = [found[name] if name in found else _answers(frame, name) for name in names]
    cells = np.column_stack(columns) if columns else np.zeros((frame.lines.size, 0))
    gaps = np.isnan(cells)
    if gaps.any():
        column = int(gaps[int(gaps.any(axis=1).argmax())].argmax())
        check_missing(frame, names[column], cells[:, column], is_target=True)
    percent = [name for name, one in readings.items() if one.unit == "%"]
    notes = (f"the sign % is left out and the numbers divided by 100: {listed(percent)}",)
    return Targets(tuple(names), cells, notes=notes if percent else ())


def _answers(frame: Frame, name: str) -> np.ndarray:
    """A target column of words, one of several."""
    texts, attribute = as_texts(frame.column(name)), frame.attributes.get(name)
    values = list(attribute.values) if attribute and attribute.values else texts.present
    known = no_and_yes(values) or (own_numbers(values) if attribute else None)
    if attribute and (known is None or not set(known.values()) <= {0.0, 1.0}):
        problem = f"label {name!r} has other values than 0 and 1, or no and yes"
        raise DataError(problem, frame.path, attribute.line)
    if known is None:
        first = next((one for one in values if no_and_yes([one]) is None), values[0])
        problem = f"target column {name!r}: {first[:40]!r} is neither a number, nor no or yes"
        raise DataError(problem, frame.path, frame.first_line(texts, first))
    return texts.numbers(known.get, "")


def _read_numbers(
    Y: np.ndarray, names: Sequence[str], lines: np.ndarray, path: Path, *,
    plain: bool, normalize: bool,
) -> tuple[np.ndarray, str, tuple[str, ...]]:  # fmt: skip
    """Targets, their kind, which is that of most rows, and notes; another kind is an error."""
    if plain or Y.shape[1] == 0:
        return Y, "numbers" if plain else "none", ()
    sums = Y.sum(axis=1)
    if normalize:
        if (Y < 0).any():
            row, column = np.argwhere(Y < 0)[0]
            problem = f"target column {names[column]!r}: {Y[row, column]:g} is negative; such rows"
            raise DataError(f"{problem} cannot be divided by their sums", path, int(lines[row]))
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
    expected = "0/1 indicators, or proportions that sum to one"
    if (row < 0).any():
        column = int((row < 0).argmax())
        problem = f"target column {names[column]!r}: {row[column]:g} is negative"
        return f"{problem}; expected {expected}{as_others}"
    if kind == "indicators" and as_others:
        column = int((~np.isin(row, (0.0, 1.0))).argmax())
        return f"target column {names[column]!r}: {row[column]:g}; expected 0 or 1{as_others}"
    if as_others:
        expected = f"{kind} that sum to {'100' if kind == 'percentages' else 'one'}{as_others}"
    return f"the targets sum to {row.sum():g}; expected {expected}"


def _read_words(
    texts: Texts, column: str, separator: str | None, path: Path
) -> tuple[np.ndarray, tuple[str, ...]]:
    """One column of class names, or of several labels a cell: the 0/1 matrix, and the names."""
    recipe: Category | Tags = Category(column, tuple(sorted(texts.present)))
    if separator is not None:
        recipe = Tags(column, tags_among(texts.present, separator), separator)
    names = recipe.values
    if separator is None and len(names) > _MANY_NUMBERS and all(map(PLAIN.matches, names)):
        problem = f"the target column {column!r} has {len(names)} different values; one target "
        problem += "column holds class names (for classes, write c1, c2, … in place of 1, 2, …)"
        raise DataError(problem, path, None, "to predict a number: fitzpatrick fit --loss squared")
    if not 0 < len(names) <= MAX_CLASSES:
        problem = f"the target column {column!r} has {len(names)} different labels"
        raise DataError(f"{problem}: {listed(names)}" if names else problem, path)
    check_target_cells(texts.codes.size, len(names), path)
    return recipe.encode(texts, Notes()).toarray().astype(np.uint8), names


def _note_on_counts(classes: Sequence[str], column: str) -> str:
    """That classes may be meant as counts; empty for two classes, such as 0 and 1."""
    numbers = (own_numbers(classes) or {}).values()
    if len(numbers) <= 2 or not all(n >= 0 and n.is_integer() for n in numbers):
        return ""
    return one_line(
        f"{column}: whole numbers {min(numbers):.0f} to {max(numbers):.0f} are taken as "
        f"{len(numbers)} class names; for counts, fit --loss poisson"
    )


def note_on_leaks(X: Matrix, Y: np.ndarray, columns: Columns) -> list[str]:
    """That a column alone tells the targets; the first rows decide for most columns."""
    if len(Y) < _MIN_LEAK_ROWS or Y.shape[1] == 0 or sparse.issparse(X):
        return []
    notes, stop = [], 0
    for column in columns.used:
        start, stop = stop, stop + len(column.feature_names)
        block, few = X[:, start:stop], slice(_LEAK_SAMPLE)
        if _tells(block[few], Y[few]) and (len(Y) <= _LEAK_SAMPLE or _tells(block, Y)):
            note = f"{column.name} alone tells the targets of every row; if it was made from them, "
            notes.append(f"{note}--ignore {option(column.name)} leaves it out")
    return notes


def _tells(X: np.ndarray, Y: np.ndarray) -> bool:
    """True if rows with equal features have equal targets; values recur four times on average."""
    values = X @ np.arange(1.0, X.shape[1] + 1)
    order = np.argsort(values, kind="stable")
    is_new = np.diff(values[order]) != 0
    changes = (np.diff(Y[order].astype(np.float64), axis=0) != 0).any(axis=1)
    return bool(4 * (is_new.sum() + 1) <= len(Y) and changes.any() and not changes[~is_new].any())
