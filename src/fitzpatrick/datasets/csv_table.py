"""CSV with named columns: what spreadsheets, pandas and R write, as features and targets.

The file is read once to see what its columns hold, and once more for the columns that turn out to
hold something else than their first rows: the recipe of :mod:`.columns` is learned, or followed.
"""

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from . import _infer
from ._csv_dialect import CsvFile, plain_name
from ._encode import check_width, encode, is_missing, relearned
from ._errors import DataError
from ._infer import Place
from ._numbers import CLASS_NAMES_TOO, MISSING_WORDS, NumberFormat, Unit
from ._sketch import MAX_VALUES, Sketch
from ._table import MAX_CLASSES, Table, listed
from ._targets import Targets, check_names
from .columns import Cells, Column, Columns, Ignored, Number
from .options import DEFAULT, ReadOptions


def read_csv(
    path: Path,
    targets: Sequence[str] | None,
    columns: Columns | None = None,
    *,
    ignore: Sequence[str] = (),
    plain: bool = False,
    options: ReadOptions = DEFAULT,
) -> Table:
    """Read a CSV file.

    Args:
        path: the file, plain or compressed.
        targets: names of the target columns. One column: its values are class names, or tags.
            Several: 0/1 indicators, proportions that sum to one in each row, or percentages.
            ``None``: every column is a feature, and Y has no columns.
        columns: the recipe of the training file, whose columns are read, and no others; by default
            a recipe is learned from all columns that are not targets or ignored.
        ignore: names of columns that are not read.
        plain: whether targets are numbers as they are, such as counts.
        options: what is made of missing values, words and ambiguous numbers.

    Raises:
        DataError: with the line, for whatever cannot be read, or only by a guess.
    """
    file = CsvFile.open(path)
    place = Place(path, options)
    targets = tuple(map(plain_name, targets or ()))
    ignore = tuple(map(plain_name, ignore))
    names = _feature_names(file, targets, columns, ignore, options)
    one_class = len(targets) == 1 and not plain
    extra = frozenset((*options.missing_values, *(columns.missing_values if columns else ())))
    missing = MISSING_WORDS | extra
    class_missing = (MISSING_WORDS - CLASS_NAMES_TOO) | extra
    reader = _Reader(file, place, missing)
    for name in targets:
        if one_class:
            reader.sketches[name] = Sketch("text", class_missing, max_values=MAX_CLASSES)
        else:
            reader.sketches[name] = Sketch(None, missing)
    for column in columns.used if columns is not None else ():
        reader.sketches[column.name] = _following(column, missing)
    for name in names if columns is None else ():
        forced = {"number": "number", None: None}.get(options.kind_of(name), "text")
        reader.sketches[name] = Sketch(forced, missing)
    lines = reader.read()
    if columns is None:
        learned, cells = reader.learn(names)
        columns = Columns(tuple(learned), missing_values=tuple(options.missing_values))
        of_training = True
    else:
        cells = reader.follow(columns)
        of_training = False
    target_cells = None
    if targets:
        target_cells = reader.targets(targets, one_class=one_class, of_training=of_training)
    notes = list(file.notes)
    if options.missing == "drop":
        lacking = [
            is_missing(cells[column.name])
            for column in columns.used
            if of_training and column.can_be_missing
        ]
        lacking += [target_cells.is_missing] if target_cells is not None else []
        keep = ~np.any(lacking, axis=0) if lacking else np.ones(lines.size, dtype=bool)
        if not keep.any():
            raise DataError("every row has a missing value", path)
        if not keep.all():
            notes.append(f"left out: {(~keep).sum()} of {keep.size} rows, with missing values")
            lines, cells = lines[keep], {name: one[keep] for name, one in cells.items()}
            target_cells = target_cells[keep] if target_cells is not None else None
            columns = relearned(columns, cells) if of_training else columns
    check_width(columns, path)
    X, column_notes = encode(columns, cells, lines, path, of_training=of_training)
    if target_cells is None:
        target_cells = Targets((), np.zeros((len(lines), 0)))
    Y, kind, target_names, target_notes = target_cells.read(lines, path, plain=plain)
    return Table(
        X,
        Y,
        kind,
        columns.feature_names,
        target_names,
        (*notes, *column_notes, *target_notes),
        columns,
        lines,
    )


def read_csv_cells(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Columns as they are, by name."""
    file = CsvFile.open(path)
    names = list(map(plain_name, names))
    _check_known(names, file)
    cells: dict[str, list[str]] = {name: [] for name in names}
    for chunk in file.chunks(names):
        for name, column in zip(names, chunk.columns, strict=True):
            cells[name] += column
    return cells


class _Reader:
    """The columns of a file while they are read."""

    def __init__(self, file: CsvFile, place: Place, missing: frozenset[str]) -> None:
        self.file = file
        self.place = place
        self.missing = missing
        self.sketches: dict[str, Sketch] = {}
        self._formats: dict[str, NumberFormat] = {}

    def read(self) -> np.ndarray:
        """All columns; returns the line of each row."""
        lines = self._read(self.sketches, self.file.notes)
        if not lines.size:
            raise DataError("no row below the line of names", self.place.path)
        return lines

    def _read(self, sketches: Mapping[str, Sketch], notes: list[str] | None) -> np.ndarray:
        lines = array("q")
        for chunk in self.file.chunks(list(sketches), notes):
            for sketch, cells in zip(sketches.values(), chunk.columns, strict=True):
                sketch.add(cells, chunk.lines, underscores=chunk.underscores)
            lines.extend(chunk.lines)
        return np.array(lines, dtype=np.int64)

    def _again(self, sketches: dict[str, Sketch]) -> None:
        """Read some columns once more, as something else."""
        if sketches:
            self._read(sketches, None)
            self.sketches.update(sketches)

    def _resolve(self, usual: Mapping[str, NumberFormat]) -> None:
        """The formats of all numbers, and their values in these."""
        semicolons = self.file.separator == ";"
        evidence = _infer.evidence_of(self.sketches, semicolons=semicolons)
        again = {}
        for name, sketch in self.sketches.items():
            if sketch.is_text:
                continue
            if sketch.n_numbers == 0:
                self._formats[name] = sketch.formats[0]
                continue
            chosen = _infer.number_format(name, sketch, evidence, self.place, usual.get(name))
            self._formats[name] = chosen
            if sketch.numbers(chosen) is None:
                again[name] = Sketch("number", self.missing, (chosen,), sketch.unit)
        self._again(again)

    def numbers(self, name: str) -> np.ndarray:
        numbers = self.sketches[name].numbers(self._formats[name])
        assert numbers is not None
        return numbers

    def learn(self, names: Sequence[str]) -> tuple[list[Column], dict[str, Cells]]:
        """Recipes of the columns of a training file, and the cells of those that are used."""
        options = self.place.options
        misread = {
            name: Sketch("text", self.missing)
            for name in names
            if _infer.is_misread(self.sketches[name], options.kind_of(name))
        }
        codes = {name: self.sketches[name].code_line for name in misread}
        self._again(misread)
        for name in names:
            if not self.sketches[name].is_text:
                _infer.check_words(name, self.sketches[name], self.place)
        self._resolve({})
        learned: list[Column] = []
        cells: dict[str, Cells] = {}
        for name in names:
            sketch = self.sketches[name]
            column: Column
            if options.kind_of(name) == "ignored":
                column = Ignored(name, "as told")
            elif sketch.is_text:
                texts = sketch.texts if sketch.is_complete else None
                is_code = codes.get(name) is not None
                column = _infer.learn_texts(name, sketch, texts, self.place, is_code=is_code)
                if texts is not None:
                    cells[name] = texts
            else:
                cells[name] = numbers = self.numbers(name)
                unit = sketch.unit or Unit()
                is_first = name == self.file.names[0]
                column = _infer.learn_number(
                    name, numbers, options, self._formats[name], unit, is_first=is_first
                )
            if isinstance(column, Ignored):
                cells.pop(name, None)
            elif column.can_be_missing:
                _infer.check_missing(name, sketch, self.place)
            learned.append(column)
        return learned, cells

    def follow(self, columns: Columns) -> dict[str, Cells]:
        """The cells that a recipe asks for."""
        usual = {one.name: one.format for one in columns.used if isinstance(one, Number)}
        for column in columns.used:
            sketch = self.sketches[column.name]
            if sketch.is_text and not sketch.is_complete:
                problem = f"column {column.name!r}: more than {MAX_VALUES} different values, or "
                raise DataError(f"{problem}one of more than 1000 characters", self.place.path)
            if not sketch.is_text:
                _infer.check_words(column.name, sketch, self.place)
        self._resolve(usual)
        return {
            one.name: self.sketches[one.name].texts
            if self.sketches[one.name].is_text
            else self.numbers(one.name)
            for one in columns.used
        }

    def targets(self, names: Sequence[str], *, one_class: bool, of_training: bool) -> Targets:
        """The cells of the target columns."""
        options = self.place.options
        if one_class:
            (name,) = names
            sketch = self.sketches[name]
            separator = _infer.target_separator(name, sketch, self.place)
            if separator is None:
                _infer.check_missing(name, sketch, self.place, is_target=True)
            return Targets((name,), sketch.texts, separator, are_classes=not of_training)
        cells = [self._target(name) for name in names]
        missing = [name for name in names if self.sketches[name].n_missing]
        if missing and options.missing != "drop":
            first = min(missing, key=lambda name: self.sketches[name].first_missing or 0)
            _infer.check_missing(first, self.sketches[first], self.place, is_target=True)
        percent = [name for name in names if (self.sketches[name].unit or Unit()).sign == "%"]
        notes = (f"the sign % is left out and the numbers divided by 100: {listed(percent)}",)
        return Targets(tuple(names), np.column_stack(cells), notes=notes if percent else ())

    def _target(self, name: str) -> np.ndarray:
        sketch = self.sketches[name]
        if sketch.is_text:
            return _infer.answers(name, sketch, self.place)
        _infer.check_words(name, sketch, self.place, is_target=True)
        return self.numbers(name)


def _following(column: Column, missing: frozenset[str]) -> Sketch:
    if isinstance(column, Number):
        return Sketch("number", missing, unit=Unit(column.unit))
    return Sketch("text", missing, max_values=MAX_VALUES)


def _feature_names(
    file: CsvFile,
    targets: Sequence[str],
    columns: Columns | None,
    ignore: Sequence[str],
    options: ReadOptions,
) -> list[str]:
    """Names of the columns that may become features; raises for names that no column has."""
    check_names(targets, ignore, file.path)
    wanted = [column.name for column in columns.used] if columns is not None else options.named
    _check_known((*targets, *wanted, *(ignore if columns is None else ())), file)
    left_out = {*targets, *ignore}
    found = [name for name in file.names if name not in left_out]
    if columns is None and not found:
        problem = "every column is a target or ignored; there is no feature"
        raise DataError(problem, file.path, file.header_line)
    return found


def _check_known(names: Sequence[str], file: CsvFile) -> None:
    known = set(file.names)
    for name in names:
        if name not in known:
            problem = f"no column is called {name!r}; the columns are {listed(file.names)}"
            raise DataError(problem, file.path, file.header_line)
