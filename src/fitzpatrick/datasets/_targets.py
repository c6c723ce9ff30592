"""What the target columns of a file mean: indicators, proportions, class names or plain numbers."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from ..preprocessing import EXACT_SUM, SUM_TOLERANCE
from ._errors import DataError, option
from ._frame import Frame, Notes, Reading, Texts, as_texts, dense
from ._learn import check_size, check_words, find_separator
from ._numbers import no_and_yes, own_numbers
from ._table import MAX_CLASSES, Matrix, check_target_cells, listed
from .columns import Category, Column, Columns, Number, Tags

_MANY_NUMBERS = 100
_MIN_LEAK_ROWS = 40
_LEAK_SAMPLE = 1000
_OF_CLASSES = "if these are class names: fitzpatrick fit --loss fitzpatrick_logistic"
_EXACT_BELOW = 2.0**53  # whole numbers from here on are not all told apart


def target_readings(frame: Frame) -> dict[str, Reading]:
    """The target columns that are numbers, as they are read."""
    columns = [name for name in frame.targets if not frame.declares_words(name)]
    found = {name: frame.reading(name) for name in columns}
    numbers = {name: one for name, one in found.items() if one.n_words <= one.n_numbers}
    for name, reading in numbers.items():
        check_words(frame, name, reading)
    return numbers


def class_target(frame: Frame) -> Category | Tags:
    """The one target column whose cells are classes, or several labels each."""
    (name,) = frame.targets
    cells = dense(frame.cells[name])
    if not isinstance(cells, Texts) and (np.abs(cells) >= _EXACT_BELOW).any():
        row = int((np.abs(cells) >= _EXACT_BELOW).argmax())
        problem = f"the class {cells[row]:.17g} is too large a number; declare the values in braces"
        raise frame.error(name, problem, row)
    frame.cells[name] = texts = as_texts(cells)
    check_size(frame, name, texts, MAX_CLASSES)
    separator = find_separator(texts.present, frame.options.kind_of(name))
    return Tags(name, separator=separator) if separator else Category(name)


def number_targets(frame: Frame, readings: Mapping[str, Reading]) -> list[Number]:
    """Target columns of numbers; no is 0 and yes is 1."""
    frame.cells |= {name: _answers(frame, name) for name in frame.targets if name not in readings}
    units = {name: reading.unit for name, reading in readings.items()}
    return [Number(name, unit=units.get(name, "")) for name in frame.targets]


def read_targets(
    frame: Frame, columns: Sequence[Column], *, plain: bool
) -> tuple[np.ndarray, str, tuple[str, ...]]:
    if len(columns) == 1 and isinstance(columns[0], Category | Tags):
        return _read_words(frame, columns[0])
    Y = np.zeros((frame.lines.size, len(columns)))
    for i, column in enumerate(columns):
        column.describe(frame.notes)
        Y[:, i] = frame.cells[column.name]
    Y, kind = _read_numbers(frame, Y, plain=plain)
    return Y, kind, tuple(frame.targets)


def _answers(frame: Frame, name: str) -> np.ndarray:
    """A target column of words, one of several or taken as it is."""
    texts, attribute = as_texts(frame.cells[name]), frame.attributes.get(name)
    values = list(attribute.values) if attribute and attribute.values else texts.present
    known = no_and_yes(values) or (own_numbers(values) if attribute else None)
    way = _OF_CLASSES if len(frame.targets) == 1 else ""  # one by itself may be of classes
    if attribute and (known is None or not set(known.values()) <= {0.0, 1.0}):
        problem = f"label {name!r} has other values than 0 and 1, or no and yes"
        raise DataError(problem, frame.path, attribute.line, way or None)
    if known is None:
        first = next((one for one in values if no_and_yes([one]) is None), values[0])
        problem = f"{first[:40]!r} is neither a number, nor no or yes"
        raise frame.error(name, problem, first, way)
    return texts.numbers(known.get, "")


def _read_numbers(frame: Frame, Y: np.ndarray, *, plain: bool) -> tuple[np.ndarray, str]:
    """Targets and their kind, which most rows decide; a row of another kind is an error."""
    if plain or Y.shape[1] == 0:
        return Y, "numbers" if plain else "none"
    notes, sums = frame.notes, Y.sum(axis=1)
    if frame.options.normalize:
        if (Y < 0).any():
            row, column = np.argwhere(Y < 0)[0].tolist()
            problem = f"{Y[row, column]:g} is negative; such rows cannot be divided by their sums"
            raise frame.error(frame.targets[column], problem, row)
        span = f"({sums.min():.4g} to {sums.max():.4g})"
        notes.add(f"each row of targets is divided by its sum {span}")
        return Y / np.where(sums == 0.0, 1.0, sums)[:, None], "proportions"
    empty = np.asarray((Y == 0).all(axis=1))  # no label, whatever the kind
    positive = np.asarray((Y >= 0).all(axis=1))
    fits = {
        "indicators": np.isin(Y, (0.0, 1.0)).all(axis=1),
        "proportions": empty | (positive & (np.abs(sums - 1.0) <= SUM_TOLERANCE)),
        "percentages": empty | (positive & (np.abs(sums / 100 - 1.0) <= SUM_TOLERANCE)),
    }
    kind = max(fits, key=lambda one: int(fits[one].sum()))
    if not fits[kind].all():
        raise _misfit(frame, Y, kind, fits[kind])
    if kind == "indicators":
        return Y.astype(np.uint8), kind
    if kind == "percentages":
        notes.add("the targets are percentages, and divided by 100")
        Y, sums = Y / 100, sums / 100
    sums = np.where(empty, 1.0, sums)
    rounded = int((np.abs(sums - 1.0) > EXACT_SUM).sum())
    if rounded:
        notes.add(
            f"the proportions of {rounded} of {len(Y)} samples do not sum to one exactly "
            f"({sums.min():.4g} to {sums.max():.4g}); each is divided by its sum"
        )
    return Y / sums[:, None], "proportions"


def _misfit(frame: Frame, Y: np.ndarray, kind: str, fits: np.ndarray) -> DataError:
    row, n_others = int((~fits).argmax()), int(fits.sum())
    targets, is_rare = Y[row], 2 * n_others > fits.size
    as_others = f", as in {n_others} of {fits.size} rows" if is_rare else ""
    way = "--normalize divides each row by its sum"
    expected, wrong = "0/1 indicators, or proportions that sum to one", targets < 0
    if wrong.any():
        problem, way = f"is negative; expected {expected}", ""
    elif kind == "indicators" and is_rare:
        problem, wrong = "is no indicator; expected 0 or 1", ~np.isin(targets, (0.0, 1.0))
    else:
        if is_rare:
            expected = f"{kind} that sum to {'100' if kind == 'percentages' else 'one'}"
        problem = f"the targets sum to {targets.sum():g}; expected {expected}{as_others}"
        return DataError(problem, frame.path, int(frame.lines[row]), way)
    column = int(wrong.argmax())
    problem = f"{targets[column]:g} {problem}{as_others}"
    return frame.error(frame.targets[column], problem, row, way)


def _read_words(frame: Frame, column: Category | Tags) -> tuple[np.ndarray, str, tuple[str, ...]]:
    name, texts, notes = column.name, frame.cells[column.name], frame.notes
    separator = column.separator if isinstance(column, Tags) else ""
    column = column.fit(texts, frame.options)
    classes = column.values
    if not separator and len(classes) > _MANY_NUMBERS and not Reading(texts).n_words:
        problem = f"{len(classes)} different numbers, where one target column holds class names "
        problem += "(for classes, write c1, c2, … in place of 1, 2, …)"
        way = "to predict a number: fitzpatrick fit --loss squared"
        raise frame.error(name, problem, None, way)
    if not 0 < len(classes) <= MAX_CLASSES:
        raise frame.error(name, f"{len(classes)} different labels, expected 1 to {MAX_CLASSES}")
    check_target_cells(frame.lines.size, len(classes), frame.path)
    is_declared = name in frame.attributes and frame.attributes[name].type == "nominal"
    if separator:
        notes.add(f"labels, split at {separator!r}: {name} ({len(classes)} labels)")
    elif notes.of_training and not is_declared:
        numbers = (own_numbers(classes) or {}).values()
        if len(numbers) > 2 and all(one >= 0 and one.is_integer() for one in numbers):
            note = f"{name}: whole numbers {min(numbers):.0f} to {max(numbers):.0f} are taken as "
            notes.add(f"{note}{len(numbers)} class names; for counts, fit --loss poisson")
        folded = Counter(map(str.casefold, classes))
        alike = listed(one for one in classes if folded[one.casefold()] > 1)
        if alike:
            notes.add(f"{name}: {alike} are different classes, though only their case differs")
    Y = column.encode(texts, Notes()).toarray().astype(np.uint8)
    return Y, "indicators" if separator else "labels", classes


def note_leaks(X: Matrix, Y: np.ndarray, columns: Columns, notes: Notes) -> None:
    """Note that a column alone tells the targets; the first rows decide for most columns."""
    if len(Y) < _MIN_LEAK_ROWS or Y.shape[1] == 0 or sparse.issparse(X):
        return
    stop = 0
    for column in columns.used:
        start, stop = stop, stop + len(column.feature_names)
        block, few = X[:, start:stop], slice(_LEAK_SAMPLE)
        if _tells(block[few], Y[few]) and (len(Y) <= _LEAK_SAMPLE or _tells(block, Y)):
            note = f"{column.name} alone tells the targets of every row; if it was made from them, "
            notes.add(f"{note}--ignore {option(column.name)} leaves it out")


def _tells(X: np.ndarray, Y: np.ndarray) -> bool:
    """True if rows with equal features have equal targets; values recur four times on average."""
    values = X @ np.arange(1.0, X.shape[1] + 1)
    order = np.argsort(values, kind="stable")
    is_new = np.diff(values[order]) != 0
    changes = (np.diff(Y[order].astype(np.float64), axis=0) != 0).any(axis=1)
    return bool(4 * (is_new.sum() + 1) <= len(Y) and changes.any() and not changes[~is_new].any())
