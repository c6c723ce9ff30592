"""A file's columns before anything is learned from them, and how their numbers are written.

Readers of every format end here: a column is an array of numbers where the file leaves no doubt,
else its different words and their positions, as pandas factorizes them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ._errors import DataError
from ._numbers import FORMATS, MINUS, PLAIN, Evidence, NumberFormat, Unit, choose_format
from .columns import Cells, Texts
from .options import ReadOptions

_UNIT_CELLS = 20


def find_pandas() -> Any:
    """The library that parses tables, which is optional."""
    try:
        return import_module("pandas")
    except ModuleNotFoundError:
        message = "reading tables needs pandas: pip install 'fitzpatrick[cli]'"
        raise ModuleNotFoundError(message) from None


@dataclass(frozen=True)
class Attribute:
    """What an ARFF file declares of a column.

    Attributes:
        name: what it is called.
        type: ``"nominal"``, ``"numeric"``, ``"string"``, ``"date"``, or what is declared.
        values: of a nominal attribute, in the order of the declaration.
        line: of the declaration.
    """

    name: str
    type: str
    values: tuple[str, ...]
    line: int


@dataclass(frozen=True, eq=False)
class SparseNumbers:
    """Columns of numbers without gaps, most of them zero, that stay together.

    Attributes:
        entries: all columns of a file, CSC.
        position: of those that are such numbers, by name.
    """

    entries: sparse.csc_array
    position: Mapping[str, int]

    def __getitem__(self, rows: np.ndarray) -> "SparseNumbers":
        return SparseNumbers(self.entries.tocsr()[np.flatnonzero(rows)].tocsc(), self.position)

    def block(self, names: Sequence[str]) -> sparse.csc_array:
        """Some columns side by side."""
        return self.entries[:, [self.position[name] for name in names]]

    def median(self, name: str) -> float:
        """The median of a column; zeros count."""
        i, n = self.position[name], self.entries.shape[0]
        entries = self.entries.data[self.entries.indptr[i] : self.entries.indptr[i + 1]]
        if 2 * max((entries < 0).sum(), (entries > 0).sum()) < n:
            return 0.0
        return float(np.median(np.concatenate([entries, np.zeros(n - entries.size)])))


@dataclass(eq=False)
class Frame:
    """The columns of a file that were asked for.

    Attributes:
        path: the file.
        options: what its reader was told.
        lines: line of each row.
        cells: of each column.
        notes: what was left out.
        marks: decimal mark of the columns that are numbers already; empty for whole numbers.
        semicolons: whether fields are separated by semicolons.
        attributes: declarations, by column, of ARFF files.
        numbers: columns that are plain numbers and mostly zero, if there are such.
    """

    path: Path
    options: ReadOptions
    lines: np.ndarray
    cells: Mapping[str, Cells]
    notes: list[str] = field(default_factory=list)
    marks: Mapping[str, str] = field(default_factory=dict)
    semicolons: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    numbers: SparseNumbers | None = None

    def is_sparse(self, name: str) -> bool:
        """Whether a column is among :attr:`numbers`."""
        return self.numbers is not None and name in self.numbers.position

    def median(self, name: str) -> float:
        """The median of a column of :attr:`numbers`."""
        assert self.numbers is not None
        return self.numbers.median(name)

    def line(self, row: int) -> int:
        return int(self.lines[row])

    def first_line(self, texts: Texts, value: str) -> int:
        """The line where a value first occurs."""
        return self.line(texts.first_rows[texts.values.index(value)])


def as_texts_of(values: Sequence[Any] | np.ndarray, missing: Collection[str]) -> Texts:
    """Words without spaces around them; those that stand for a missing value have the code -1."""
    codes, found = find_pandas().factorize(np.asarray(values, dtype=object))
    index: dict[str, int] = {}
    position = [
        -1 if word in missing else index.setdefault(word, len(index))
        for word in map(str.strip, found.tolist())
    ]
    return Texts(np.asarray([*position, -1], dtype=np.int64)[codes], list(index))


@dataclass(frozen=True, eq=False)
class Reading:
    """A column taken for numbers.

    Attributes:
        cells: the column.
        bare: its different values without their unit.
        formats: those that all numbers have.
        unit: the sign beside the numbers.
        has_marks: whether a number has a decimal mark, or groups.
        words: values that are no numbers.
        n_numbers: number of cells that are numbers.
        n_words: number of cells that are neither missing nor a number.
        is_code: whether there are whole numbers with leading zeros, and no others with marks.
    """

    cells: Cells
    formats: tuple[NumberFormat, ...]
    has_marks: bool
    n_numbers: int
    bare: Sequence[str] = ()
    unit: Unit = field(default_factory=Unit)
    words: Sequence[str] = ()
    n_words: int = 0
    is_code: bool = False

    @staticmethod
    def of(cells: Cells, mark: str = "", unit: Unit | None = None) -> "Reading":
        """What the cells are as numbers.

        Args:
            cells: the column.
            mark: its decimal mark, of an array.
            unit: the sign that numbers have; by default what the first cells show.
        """
        if not isinstance(cells, Texts):
            formats = tuple(one for one in FORMATS if one.decimal == (mark or "."))
            return Reading(cells, formats, bool(mark), int((~np.isnan(cells)).sum()))
        values, counts = list(cells.values), cells.counts
        if unit is None:
            shown = (Unit.of(value) for value in values[:_UNIT_CELLS])
            unit = next((one for one in shown if one.sign), Unit())
        bare = [unit.strip(value).replace(MINUS, "-") for value in values]
        formats = tuple(one for one in FORMATS if all(map(one.matches, bare)))
        if not formats:
            matching = [
                sum(n for value, n in zip(bare, counts.tolist(), strict=True) if one.matches(value))
                for one in FORMATS
            ]
            formats = tuple(
                one for one, n in zip(FORMATS, matching, strict=True) if n == max(matching)
            )
        chosen = formats[0]
        is_number = [
            bool(chosen.matches(value)) and abs(chosen.parse(value)) < float("inf")
            for value in bare
        ]
        has_marks = any("." in value or "," in value for value in bare)
        return Reading(
            cells,
            formats,
            has_marks,
            int(counts[is_number].sum()),
            bare,
            unit,
            [value for value, one in zip(values, is_number, strict=True) if not one],
            int(counts[np.logical_not(is_number)].sum()),
            not has_marks and any(one[:1] == "0" and one[1:] and one.isdigit() for one in bare),
        )

    @property
    def are_numbers(self) -> bool:
        """Whether most cells are numbers, and no codes such as 007."""
        return self.n_words <= self.n_numbers and not self.is_code

    def numbers(self, chosen: NumberFormat) -> np.ndarray:
        """The numbers in a format; NaN where they are missing."""
        if not isinstance(self.cells, Texts):
            return self.cells
        parsed = [chosen.parse(value) if chosen.matches(value) else np.nan for value in self.bare]
        return np.asarray(np.asarray([*parsed, np.nan])[self.cells.codes] / self.unit.divisor)


def choose_formats(
    frame: Frame, readings: Mapping[str, Reading], usual: Mapping[str, NumberFormat]
) -> dict[str, tuple[np.ndarray, NumberFormat]]:
    """The numbers of all columns, and their formats; ``1,234`` is refused where it is ambiguous.

    Args:
        frame: the file.
        readings: its columns of numbers.
        usual: formats of the training file, for want of evidence.
    """
    evidence = Evidence.of(
        (one.formats for one in readings.values() if one.has_marks), semicolons=frame.semicolons
    )
    found = {}
    for name, reading in readings.items():
        chosen = _format(frame, name, reading, evidence, usual.get(name))
        found[name] = reading.numbers(chosen), chosen
    return found


def _format(
    frame: Frame, name: str, reading: Reading, evidence: Evidence, usual: NumberFormat | None
) -> NumberFormat:
    formats, told = reading.formats, frame.options.decimal
    if not reading.has_marks:
        return formats[0]
    if told is not None:
        formats = tuple(one for one in formats if one.decimal == told)
        if not formats:
            problem = f"column {name!r}: the decimal mark is not {told!r}"
            raise DataError(problem, frame.path)
    chosen = choose_format(formats, evidence, usual)
    if chosen is None:
        mark = "." if PLAIN in formats else ","
        problem = f"column {name!r}: the {mark!r} in its numbers may be a decimal mark or stand"
        problem += " between thousands, and no other column tells"
        raise DataError(problem, frame.path, None, "--decimal . or --decimal , tells")
    return chosen
