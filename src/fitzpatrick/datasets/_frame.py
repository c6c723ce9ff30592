"""A file's columns before anything is learned from them, and how their numbers are written.

Readers of every format end in a :class:`Frame`. A column is an array of numbers if the file leaves
no doubt, a sparse one if most numbers of the file are zero, else its words as pandas factorizes
them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ._errors import DataError, one_line, option
from ._numbers import FORMATS, MINUS, NAN, PLAIN, UNIT_DIVISORS, NumberFormat, strip_unit, unit_of
from ._table import listed

if TYPE_CHECKING:
    from .options import ReadOptions

_UNIT_CELLS = 20


def find_pandas() -> Any:
    try:
        return import_module("pandas")
    except ModuleNotFoundError:
        message = "reading tables needs pandas: pip install 'fitzpatrick[cli]'"
        raise ModuleNotFoundError(message) from None


class CellError(Exception):
    """A cell that cannot be read."""

    def __init__(self, row: int, problem: str, column: str = "") -> None:
        super().__init__(problem)
        self.row, self.column = row, column


class Notes:
    """Sentences on what was made of a file, in order, and the columns that each is about.

    Attributes:
        of_training: True if the recipe was learned from this very file.
    """

    def __init__(self, of_file: Sequence[str] = (), *, of_training: bool = True) -> None:
        self.of_training = of_training
        self._said: dict[str, list[str]] = {sentence: [] for sentence in of_file}

    def add(self, sentence: str, *columns: str) -> None:
        """Say a sentence, once for all of its columns; one that names its column stands alone."""
        self._said.setdefault(sentence, []).extend(columns)

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(
            one_line(f"{sentence}: {listed(columns, quotes=False)}" if columns else sentence)
            for sentence, columns in self._said.items()
        )


@dataclass(frozen=True, eq=False)
class Texts:
    """Cells of words: row i holds ``values[codes[i]]``, or nothing if its code is -1."""

    codes: np.ndarray
    values: Sequence[str]

    @staticmethod
    def of(words: Any, missing: Collection[str]) -> "Texts":
        """Words without spaces around them; those that stand for a missing value have code -1."""
        codes, found = find_pandas().factorize(np.asarray(words, dtype=object))
        index: dict[str, int] = {}
        position = [
            -1 if word in missing else index.setdefault(word, len(index))
            for word in map(str.strip, found.tolist())
        ]
        return Texts(np.asarray([*position, -1], dtype=np.int64)[codes], list(index))

    def __getitem__(self, rows: np.ndarray) -> "Texts":
        return Texts(self.codes[rows], self.values)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each value occurs."""
        return np.asarray(np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)))

    @property
    def present(self) -> list[str]:
        """The values that occur, in the order of the rows."""
        return [self.values[i] for i in find_pandas().unique(self.codes).tolist() if i >= 0]

    def numbers(self, number: Callable[[str], float | None], problem: str) -> np.ndarray:
        """The number of each row's value, NaN where it is missing; raises :class:`CellError`."""
        found = [number(value) for value in self.values]
        wrong = np.isin(self.codes, [code for code, one in enumerate(found) if one is None])
        if wrong.any():
            row = int(wrong.argmax())
            raise CellError(row, f"{self.values[self.codes[row]][:40]!r} {problem}")
        return np.asarray(np.asarray([*found, NAN], dtype=np.float64)[self.codes])


Cells = Any  # numbers, NaN where missing; a sparse column (n, 1) without gaps; or Texts


def dense(cells: Cells) -> Any:
    return cells.toarray()[:, 0] if sparse.issparse(cells) else cells


def is_missing(cells: Cells) -> np.ndarray:
    if sparse.issparse(cells):
        return np.zeros(cells.shape[0], dtype=bool)
    return np.asarray(cells.codes < 0 if isinstance(cells, Texts) else np.isnan(cells))


def median(cells: Cells) -> float:
    """The median of numbers, but for missing ones."""
    if sparse.issparse(cells) and 2 * cells.nnz < cells.shape[0]:
        return 0.0
    return float(np.nanmedian(dense(cells)))


def as_texts(cells: Cells) -> Texts:
    """Numbers as words, in their shortest form; words as they are."""
    cells = dense(cells)
    if isinstance(cells, Texts):
        return cells
    present = ~np.isnan(cells)
    values, found = np.unique(cells[present] + 0.0, return_inverse=True)  # -0.0 is 0.0
    codes = np.full(cells.shape, -1, dtype=np.int64)
    codes[present] = found
    return Texts(codes, [repr(value).removesuffix(".0") for value in values.tolist()])


@dataclass(frozen=True)
class Attribute:
    """What an ARFF file declares of a column."""

    name: str
    type: str  # "nominal", "numeric", "string", "date", or what is declared
    values: tuple[str, ...]  # of a nominal attribute, in the order of the declaration
    line: int


@dataclass(eq=False)
class Frame:
    """The requested columns of a file; columns of numbers become arrays on the way."""

    path: Path
    options: "ReadOptions"
    lines: np.ndarray  # of each row
    cells: dict[str, Cells]  # by the name of the column
    notes: Notes
    marks: Mapping[str, str] = field(default_factory=dict)  # of columns that are numbers already
    semicolons: bool = False  # True if they separate the fields
    attributes: Mapping[str, Attribute] = field(default_factory=dict)  # of ARFF files
    targets: Sequence[str] = ()  # names of target columns

    def drop(self, rows: np.ndarray) -> None:
        self.lines = self.lines[~rows]
        self.cells = {name: cells[~rows] for name, cells in self.cells.items()}

    def line(self, name: str, cell: str | int) -> int | None:
        """The line of a row, or of the first one with a word; None for a word in no row."""
        if isinstance(cell, int):
            return int(self.lines[cell])
        texts = as_texts(self.cells[name])
        lines = self.lines[texts.codes == texts.values.index(cell)]
        return int(lines[0]) if lines.size else None

    def reading(self, name: str, unit: str | None = None) -> "Reading":
        return Reading(self.cells[name], self.marks.get(name, ""), unit)

    def declares_words(self, name: str) -> bool:
        """True if an ARFF file declares what the words of a column are: a list, or strings."""
        kind = self.attributes[name].type if name in self.attributes else "numeric"
        return kind == "nominal" or (kind == "string" and self.options.kind_of(name) != "number")

    def error(
        self, name: str, problem: str, cell: str | int | None = None, *ways: str
    ) -> DataError:
        """An error about a column, a word of it or a row, and options that help."""
        line, advice = None if cell is None else self.line(name, cell), filter(None, ways)
        what = "target column" if name in self.targets else "column"
        return DataError(f"{what} {name!r}: {problem}", self.path, line, ", ".join(advice) or None)

    def ignoring(self, name: str, what: str = "the column") -> str:
        """The option that leaves a feature out; empty for targets, which have none."""
        return "" if name in self.targets else f"--ignore {option(name)} leaves {what} out"


class Reading:
    """A column taken for numbers.

    Attributes:
        formats: those that all numbers have.
        has_marks: True if a number has a decimal mark, or groups.
        unit: the sign that numbers have.
        words: values that are not numbers.
        n_words: cells that are neither missing nor a number.
        n_numbers: cells that are numbers.
        is_code: True if whole numbers have leading zeros, and no number has marks.
    """

    def __init__(self, cells: Cells, mark: str = "", unit: str | None = None) -> None:
        """``mark`` is the decimal mark of an array; without ``unit``, the first cells show it."""
        self.cells, self.unit, self.words, self.n_words = dense(cells), unit or "", list[str](), 0
        self.has_marks, self.is_code = bool(mark), False
        if not isinstance(self.cells, Texts):
            self.formats = [one for one in FORMATS if one.decimal == (mark or ".")]
            self.n_numbers = int((~np.isnan(self.cells)).sum())
            return
        values, counts = self.cells.values, self.cells.counts
        if unit is None:
            self.unit = next(filter(None, map(unit_of, values[:_UNIT_CELLS])), "")
        self._bare = bare = [strip_unit(value, self.unit).replace(MINUS, "-") for value in values]
        self.formats = [one for one in FORMATS if all(map(one.matches, bare))]
        if not self.formats:  # take the formats that fit most cells
            fits = {one: counts @ [bool(one.matches(value)) for value in bare] for one in FORMATS}
            self.formats = [one for one in FORMATS if fits[one] == max(fits.values())]
        parsed = self._parsed(self.formats[0])
        is_word = ~(np.abs(parsed) < np.inf)
        self.words = [values[i] for i in np.flatnonzero(is_word).tolist()]
        self.n_words, self.n_numbers = int(counts[is_word].sum()), int(counts[~is_word].sum())
        self.has_marks = any("." in value or "," in value for value in bare)
        has_zeros = any(one[:1] == "0" and one[1:] and one.isdigit() for one in bare)
        self.is_code = has_zeros and not self.has_marks

    def _parsed(self, chosen: NumberFormat) -> np.ndarray:
        return np.asarray(
            [chosen.parse(one) if chosen.matches(one) else NAN for one in self._bare], np.float64
        )

    @property
    def are_numbers(self) -> bool:
        """True if most cells are numbers, and no codes such as 007."""
        return self.n_words <= self.n_numbers and not self.is_code

    def numbers(self, chosen: NumberFormat) -> np.ndarray:
        """The numbers in a format; NaN where they are missing."""
        if not isinstance(self.cells, Texts):
            return np.asarray(self.cells)
        numbers = np.append(self._parsed(chosen), NAN)[self.cells.codes]
        return np.asarray(numbers / UNIT_DIVISORS.get(self.unit, 1.0))


def read_numbers(
    frame: Frame, readings: Mapping[str, Reading], usual: Mapping[str, NumberFormat]
) -> dict[str, NumberFormat]:
    """Turn columns into numbers, and return their formats; an ambiguous ``1,234`` raises.

    ``usual`` are the formats of the training file, for want of evidence.
    """
    marks = [{one.decimal for one in each.formats} for each in readings.values() if each.has_marks]
    certain = {mark for found in marks if len(found) == 1 for mark in found}
    chosen = {}
    for name, reading in readings.items():
        formats, told = reading.formats, frame.options.decimal
        if reading.has_marks and told is not None:
            formats = [one for one in formats if one.decimal == told]
            if not formats:
                raise frame.error(name, f"the decimal mark is not {told!r}")
        if not reading.has_marks or len({one.decimal for one in formats}) == 1:
            chosen[name] = formats[0]
        elif len(certain) == 1:
            chosen[name] = next(one for one in formats if one.decimal in certain)
        elif not certain and usual.get(name) in formats:
            chosen[name] = usual[name]
        # 1.234 is the usual way to write a number with a fraction, unless the file comes from a
        # country of decimal commas, where fields are separated by semicolons
        elif not certain and PLAIN in formats and not frame.semicolons:
            chosen[name] = PLAIN
        else:
            mark = "." if PLAIN in formats else ","
            problem = f"the {mark!r} in its numbers may be a decimal mark or stand between "
            problem += "thousands, and no other column tells"
            raise frame.error(name, problem, None, "specify --decimal . or --decimal ,")
    frame.cells |= {name: readings[name].numbers(one) for name, one in chosen.items()}
    return chosen
