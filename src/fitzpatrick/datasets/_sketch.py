"""A column of a text file while it is read: its cells, and what they can be.

A column that begins with numbers is held as numbers, in the first of the formats that all of its
cells have so far. One that begins with words is held as a list of its different words and their
positions. Either may turn out to be wrong further down; :attr:`Sketch.is_complete` then says that
the file has to be read once more for this column.
"""

import re
from array import array
from collections.abc import Sequence

import numpy as np

from ._numbers import FORMATS, MISSING_WORDS, NAN, NumberFormat, Unit, common_formats
from .columns import MAX_CATEGORIES, MAX_TEXT, Texts

MAX_WORDS = 1000  # among numbers: enough for a message
MAX_VALUES = 1_000_000
_CODE = re.compile(r"(?:\A|\x1f)\s*0\d+\s*(?:\x1f|\Z)")
_MARKS = re.compile("[.,]")
_INF = float("inf")


class Sketch:
    """What is known of a column.

    Args:
        kind: ``"number"``, ``"text"``, or None: the first cells decide.
        missing: what stands for a missing value.
        formats: formats of numbers that are possible.
        unit: the sign beside the numbers; None: the first cells decide.
        max_values: of words; more are not held.

    Attributes:
        lines: first line of each word, in the order of :attr:`words`.
        n_missing: number of missing cells.
        first_missing: line of the first of them.
        n_words: number of cells that are neither missing nor a number.
        first_long: line and text of the first cell that is too long to be held.
        code_line: line of the first whole number with a leading zero, which is a code.
    """

    __slots__ = (
        "_codes",
        "_index",
        "_is_open",
        "_max_values",
        "_missing",
        "_numbers",
        "_stored",
        "code_line",
        "first_long",
        "first_missing",
        "formats",
        "has_marks",
        "is_text",
        "is_unique",
        "lines",
        "n_missing",
        "n_numbers",
        "n_rows",
        "n_words",
        "unit",
        "words",
    )  # files may have a million columns

    def __init__(
        self,
        kind: str | None = None,
        missing: frozenset[str] = MISSING_WORDS,
        formats: tuple[NumberFormat, ...] = FORMATS,
        unit: Unit | None = None,
        max_values: int = MAX_CATEGORIES,
    ) -> None:
        self.is_text = kind == "text"
        self._is_open = kind is None
        self._missing = missing
        self.formats = formats
        self.unit = unit
        self.n_rows = self.n_missing = self.n_numbers = self.n_words = 0
        self.first_missing: int | None = None
        self.code_line: int | None = None
        self.has_marks = False
        self.words: dict[str, int] = {}  # → how often
        self.lines: dict[str, int] = {}
        self.is_unique = True  # no word occurs twice
        self.first_long: tuple[int, str] | None = None
        self._max_values = max_values
        self._numbers: array[float] | None = array("d")
        self._stored = formats[0]
        self._codes: array[int] | None = array("q")
        self._index: dict[str, int] = {}

    def add(self, cells: Sequence[str], lines: Sequence[int], *, underscores: bool) -> None:
        """Cells of the next rows, and the line of each.

        ``underscores`` says whether one of the lines has any: Python's numbers may, others not.
        """
        if self.is_text:
            self._add_texts(cells, lines)
        else:
            numbers = self._plain(cells, lines, underscores=underscores)
            if numbers is None:
                self._add_cells([cell.strip() for cell in cells], lines)
            else:
                self._store(numbers)
        self.n_rows += len(cells)

    @property
    def is_complete(self) -> bool:
        """Whether the cells are held in the form that they have turned out to have."""
        return (self._codes if self.is_text else self._numbers) is not None

    @property
    def texts(self) -> Texts:
        assert self._codes is not None
        return Texts(np.array(self._codes, dtype=np.int64), list(self._index))

    def numbers(self, chosen: NumberFormat) -> np.ndarray | None:
        """The numbers, NaN where missing; None where they were read in another format."""
        if self._numbers is None or (self.has_marks and chosen != self._stored):
            return None
        return np.array(self._numbers, dtype=np.float64)

    def _plain(
        self, cells: Sequence[str], lines: Sequence[int], *, underscores: bool
    ) -> "array[float] | None":
        """The common case: every cell is missing, or a number as Python writes it or with a comma.

        Whole columns go through C here. Whatever is unusual is left to :meth:`_add_cells`.
        """
        if self.unit is not None and self.unit.sign:
            return None
        missing = self._missing
        if not missing.isdisjoint(cells):
            cells = ["nan" if cell in missing else cell for cell in cells]
        text = "\x1f".join(cells)
        mark, other = (",", ".") if "," in text else (".", ",")
        simple = NumberFormat(mark)
        has_marks = mark in text
        if other in text or not text.isascii() or (has_marks and simple not in self.formats):
            return None
        try:
            if mark == ",":
                numbers = array("d", map(float, text.replace(",", ".").split("\x1f")))
            else:
                numbers = array("d", map(float, cells))
        except ValueError:
            return None
        lacking = np.isnan(numbers)
        if (
            len(numbers) != len(cells)
            or lacking.all()
            or np.isinf(numbers).any()
            or (underscores and any("_" in cell for cell in cells))
            or (not has_marks and self.code_line is None and _CODE.search(text))
        ):
            return None
        if has_marks:
            # formats with the same mark have these numbers, too; the other ones, if the marks stand
            # before groups of three digits
            present = [cell for cell in cells if cell != "nan"]
            left = tuple(
                one
                for one in self.formats
                if one.decimal == mark or (one.thousands == mark and all(map(one.matches, present)))
            )
            self._narrow(left)
        n_missing = int(lacking.sum())
        if n_missing and self.first_missing is None:
            self.first_missing = lines[int(lacking.argmax())]
        self._is_open = False
        self.unit = Unit()
        self.n_numbers += len(cells) - n_missing
        self.n_missing += n_missing
        return numbers

    def _narrow(self, left: tuple[NumberFormat, ...]) -> None:
        """Cells with marks show which formats are left; numbers are stored in the first one."""
        if left[0] != self._stored and self.has_marks:
            self._numbers = None  # the cells above were read in another format
        self.formats, self._stored = left, left[0]
        self.has_marks = True

    def _add_cells(self, cells: list[str], lines: Sequence[int]) -> None:
        missing = self._missing
        present = [cell for cell in cells if cell not in missing]
        if len(present) < len(cells) and self.first_missing is None:
            self.first_missing = lines[next(i for i, one in enumerate(cells) if one in missing)]
        if present:
            numbers = self._formatted(present, cells, lines)
            if numbers is None:
                self._begin_text(cells, lines)
                return
        else:
            numbers = array("d")
        self.n_missing += len(cells) - len(present)
        if len(present) < len(cells):
            following = iter(numbers)
            numbers = array("d", (NAN if one in missing else next(following) for one in cells))
        self._store(numbers)

    def _formatted(
        self, present: list[str], cells: list[str], lines: Sequence[int]
    ) -> "array[float] | None":
        """Numbers of any format, NaN for words; None where words are most of the first cells."""
        if self.unit is None:
            self.unit = next((unit for unit in map(Unit.of, present[:20]) if unit.sign), Unit())
        unit = self.unit
        bare = present if not unit.sign else [unit.strip(cell) for cell in present]
        if self.code_line is None:
            code = next((one for one in bare if one[:1] == "0" and one.isdigit() and one[1:]), None)
            if code is not None:
                self.code_line = lines[cells.index(present[bare.index(code)])]
        left = common_formats(bare, self.formats)
        is_word: list[bool] | None = None
        if not left:
            matching = [sum(map(bool, map(one.matches, bare))) for one in self.formats]
            most = max(matching)
            if self._is_open and 2 * most < len(present):
                return None
            left = tuple(
                one for one, count in zip(self.formats, matching, strict=True) if count == most
            )
            is_word = [True] * len(bare)
        self._is_open = False
        chosen = left[0]
        if any(map(_MARKS.search, bare)):
            self._narrow(left)
        else:
            self.formats = left
        if is_word is None:
            numbers = array("d", map(chosen.parse, bare))
            is_word = [False] * len(bare) if np.isfinite(numbers).all() else None
        if is_word is None or any(is_word):  # 1e999 is a word, too
            parsed = [chosen.parse(one) if chosen.matches(one) else _INF for one in bare]
            is_word = [abs(number) == _INF for number in parsed]
            numbers = array("d", (NAN if abs(number) == _INF else number for number in parsed))
            for cell, word in zip(present, is_word, strict=True):
                if word:
                    self._count(cell, cells, lines)
        self.n_numbers += len(present) - sum(is_word)
        if unit.divisor != 1.0:
            numbers = array("d", (number / unit.divisor for number in numbers))
        return numbers

    def _store(self, numbers: "array[float]") -> None:
        if self._numbers is not None:
            self._numbers.extend(numbers)

    def _count(self, word: str, cells: list[str], lines: Sequence[int]) -> None:
        self.n_words += 1
        key = word[:MAX_TEXT]
        if key not in self.words and len(self.words) < MAX_WORDS:
            self.lines[key] = lines[cells.index(word)]
        if key in self.lines:
            self.words[key] = self.words.get(key, 0) + 1

    def _begin_text(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Words after all; the rows above, if any, are missing values."""
        self.is_text = True
        self._numbers = None
        self._codes = array("q", [-1]) * self.n_rows
        self._add_texts(cells, lines)

    def _add_texts(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        index, missing, words, codes = self._index, self._missing, self.words, array("q")
        for cell, line in zip(cells, lines, strict=True):
            text = cell.strip()
            code = index.get(text, -1)
            if code >= 0:
                words[text] += 1
                self.is_unique = False
            elif text in missing:
                self.n_missing += 1
                self.first_missing = line if self.first_missing is None else self.first_missing
            elif len(index) < self._max_values and len(text) <= MAX_TEXT:
                code = index[text] = len(index)
                words[text] = 1
                self.lines[text] = line
            else:
                self._codes = None
                if len(text) > MAX_TEXT and self.first_long is None:
                    self.first_long = line, text
            codes.append(code)
        self.n_words = self.n_rows + len(cells) - self.n_missing
        if self._codes is not None:
            self._codes.extend(codes)
