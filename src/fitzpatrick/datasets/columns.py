"""What is made of each column of a file: the recipe that turns its cells into features.

A recipe is learned from the training file and applied to every other one, so that a test file, and
the files of ``predict``, become the same features. It is pure data: :meth:`Columns.to_json` writes
it into a model file, :meth:`Columns.from_json` takes it back and believes nothing.

================  =======================================================================
kind              features
================  =======================================================================
:class:`Number`   the number; a missing one becomes the median of the training file, and a
                  0/1 column marks it if the training file had missing ones too
:class:`Boolean`  no is 0 and yes is 1; missing ones as for numbers
:class:`Category` a 0/1 column per value (one-hot), and one for missing cells if the training
                  file had any; a value that the training file has not is all zeros
:class:`Tags`     a 0/1 column per tag; a cell holds any number of them
:class:`Ordinal`  the position of the word in a list; nothing becomes one unless asked for
:class:`Ignored`  none
================  =======================================================================

Median and indicator are scikit-learn's ``SimpleImputer(strategy="median", add_indicator=True)``,
categories are its ``OneHotEncoder(handle_unknown="ignore")``. With the indicator, what is filled in
does not matter to a linear model, and "was not answered" is information it can use. No category is
dropped as a reference: under a penalty, the fit would depend on which.
"""

import math
import re
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from scipy import sparse

from ._numbers import MINUS, MISSING_WORDS, NO_YES, PLAIN, NumberFormat, Unit, own_numbers
from ._table import DENSE_FROM, MAX_FEATURES, Matrix, counted, listed, numbered

MAX_CATEGORIES = 10_000  # of one column
MAX_TEXT = 1000  # characters of a value, a name, a reason
DENSE_CELLS = 4_000_000  # 32 MB: no need for a sparse table
SEPARATORS = (";", "|", ",")  # of tags
_SHOWN = 40
_NO_VALUE = "no value, and the training file was read without missing values"
_WHOLE = re.compile(r"-?\d+\.0", re.ASCII)
_WORDS = {"0": 0.0, "1": 1.0} | {
    word: value for pair in NO_YES for word, value in zip(pair, (0.0, 1.0), strict=True)
}


class CellError(Exception):
    """A cell that a recipe refuses: its row among those that are read, and what is wrong."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


@dataclass(frozen=True, eq=False)
class Texts:
    """Cells of words: ``values[codes[i]]`` is that of row i, or missing where the code is -1."""

    codes: np.ndarray
    values: Sequence[str]

    def __getitem__(self, rows: np.ndarray) -> "Texts":
        return Texts(self.codes[rows], self.values)

    @property
    def is_missing(self) -> np.ndarray:
        return np.asarray(self.codes < 0)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often each value occurs."""
        return np.asarray(np.bincount(self.codes[self.codes >= 0], minlength=len(self.values)))

    @cached_property
    def first_rows(self) -> np.ndarray:
        """The first row of each value; the number of rows for one that does not occur."""
        n = self.codes.size
        first = np.full(len(self.values) + 1, n)  # the last: of missing cells
        first[self.codes[::-1]] = np.arange(n)[::-1]
        return first[:-1]

    @property
    def present(self) -> list[str]:
        """The values that occur, in the order of the rows."""
        order = np.argsort(self.first_rows, kind="stable")
        return [self.values[i] for i in order.tolist() if self.counts[i]]

    def numbers(self, number: Callable[[str], float | None], problem: str) -> np.ndarray:
        """The number of each row's value; NaN where it is missing.

        Raises:
            CellError: at the first row whose value has none.
        """
        found = [number(value) for value in self.values]
        none = [code for code, one in enumerate(found) if one is None]
        wrong = np.isin(self.codes, none)
        if wrong.any():
            row = int(wrong.argmax())
            raise CellError(row, f"{self.values[self.codes[row]][:40]!r} {problem}")
        table = np.asarray([*(one or 0.0 for one in found), np.nan])
        return np.asarray(table[self.codes])


Cells = np.ndarray | Texts  # numbers, NaN where missing, or words


@dataclass
class Tally:
    """What occurred while a file was encoded, by column.

    Attributes:
        of_training: whether the recipe was learned from this very file.
        filled: missing numbers, by whether a feature marks them.
        lacking: missing categories, by whether they have a feature.
        unseen: how many cells have a value that is not in the recipe, and these values.
    """

    of_training: bool = True
    filled: dict[bool, dict[str, int]] = field(default_factory=lambda: {True: {}, False: {}})
    lacking: dict[bool, dict[str, int]] = field(default_factory=lambda: {True: {}, False: {}})
    unseen: dict[str, tuple[int, Sequence[str]]] = field(default_factory=dict)

    @property
    def notes(self) -> list[str]:
        whose = "the column" if self.of_training else "the training file"
        filled = f"missing numbers are replaced by the median of {whose}"
        sentences = (
            (f"{filled} and marked in a 0/1 feature", self.filled[True]),
            (filled, self.filled[False]),
            ("missing values are a category of their own", self.lacking[True]),
            (
                "missing values, of which the training file had none, belong to no category",
                self.lacking[False],
            ),
        )
        notes = []
        for text, counts in sentences:
            names = [f"{name} ({counted(count, 'row')})" for name, count in counts.items()]
            notes += [f"{text}: {listed(names)}"] if names else []
        for name, (count, words) in self.unseen.items():
            shown = listed(word[:40] for word in words[:5]) + ", …" * (len(words) > 5)
            what = f"{name} ({counted(count, 'row')}: {shown})"
            notes.append(f"values not seen in training are encoded as all zeros: {what}")
        return notes


# JSON: each field of a kind names its check ------------------------------------------------------


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(
            f"{name} is {_shown(value)}, expected text of at most {MAX_TEXT} characters"
        )
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {_shown(value)}, expected true or false")
    return value


def _number_or_none(name: str, value: object) -> float | None:
    if value is not None and not (isinstance(value, float) and math.isfinite(value)):
        raise ValueError(f"{name} is {_shown(value)}, expected a finite number or null")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_CATEGORIES:
        raise ValueError(f"{name} is {_shown(value)}, expected at most {MAX_CATEGORIES} words")
    words = tuple(_text(name, word) for word in value)
    if len(set(words)) != len(words):
        raise ValueError(f"{name} has a word twice")
    return words


def _one_of(*choices: str) -> Callable[[str, object], str]:
    def check(name: str, value: object) -> str:
        if value not in choices:
            raise ValueError(f"{name} is {_shown(value)}, expected one of {listed(choices)}")
        return str(value)

    return check


def _fields_of(data: object, names: set[str], what: str) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != names:
        raise ValueError(f"{_shown(data)} is not {what} with {', '.join(sorted(names))}")
    return data


def _shown(value: object) -> str:
    """A few characters of it."""
    text = reprlib.repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _checked(check: Callable[[str, object], Any], default: Any = MISSING) -> Any:
    """A field of a recipe, and the check of its value in JSON."""
    return field(default=default, metadata={"check": check})


# Kinds of columns ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column(ABC):
    """One column of a file, by name."""

    kind: ClassVar[str]
    can_be_chosen: ClassVar[bool] = False  # True if ReadOptions.kinds may ask for it
    can_be_missing: ClassVar[bool] = True  # True if an empty cell lacks something
    is_used: ClassVar[bool] = True  # True if it becomes features

    name: str = _checked(_text)

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """What its features are called."""

    @abstractmethod
    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        """Features, (n, len(feature_names)); raises :class:`CellError`."""

    @property
    def is_number(self) -> bool:
        """Whether its cells are numbers and nothing else, in some format."""
        return False

    @property
    def not_plain(self) -> str:
        """What the column has besides a number in each cell; empty if it has nothing else."""
        return "categories"

    def refit(self, cells: Cells) -> "Column":
        """The recipe after rows of the training file have been left out."""
        return self

    def refill(self, X: np.ndarray, rows: np.ndarray) -> tuple["Column", float | None]:
        """The recipe whose fill is the median of some rows, and that median, if cells are filled.

        Args:
            X: the column's features.
            rows: those that count.
        """
        return self, None

    def misfit(self, values: Sequence[str] | None) -> str | None:
        """Why no value that an ARFF file declares can be one of the recipe's; None if one can.

        Args:
            values: of a nominal attribute; None: the attribute is numeric.
        """
        return None

    def notes(self, columns: Sequence[Any], *, of_training: bool) -> list[str]:
        """What was made of all columns of this kind, in sentences that name them."""
        return []

    def to_json(self) -> dict[str, Any]:
        """Its fields, and its kind."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"kind": self.kind} | {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @staticmethod
    def from_json(data: object) -> "Column":
        """The column of what :meth:`to_json` returned; raises ValueError for anything else."""
        kind = data.get("kind") if isinstance(data, dict) else None
        cls = KINDS.get(kind) if isinstance(kind, str) else None
        if cls is None:
            raise ValueError(f"{_shown(data)} is not a column of a kind among {', '.join(KINDS)}")
        checks = {one.name: one.metadata["check"] for one in fields(cls)}
        given = _fields_of(data, {"kind", *checks}, f"a {kind} column")
        return cls(**{name: check(name, given[name]) for name, check in checks.items()})


@dataclass(frozen=True)
class _Filled(Column):
    """A number, or what stands for one.

    Attributes:
        fill: what replaces a missing number; None: a missing number is refused.
        marks_missing: whether a second feature is 1 where a number is missing, else 0.
    """

    fill: float | None = _checked(_number_or_none, None)
    marks_missing: bool = _checked(_flag, False)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} (missing)") if self.marks_missing else (self.name,)

    @property
    def not_plain(self) -> str:
        return "missing values or units" if self.marks_missing else ""

    def refit(self, cells: Cells) -> Column:
        numbers = self.encode(cells, Tally())[:, 0]
        return replace(self, fill=float(np.median(numbers)), marks_missing=False)

    def refill(self, X: np.ndarray, rows: np.ndarray) -> tuple[Column, float | None]:
        known = X[rows, 0][X[rows, 1] == 0.0] if self.marks_missing else np.zeros(0)
        if not known.size:
            return self, None
        fill = float(np.median(known))
        return replace(self, fill=fill), fill

    def _fill(self, numbers: np.ndarray, tally: Tally) -> np.ndarray:
        missing = np.isnan(numbers)
        count = int(missing.sum())
        if count:
            if self.fill is None:
                raise CellError(int(missing.argmax()), _NO_VALUE)
            tally.filled[self.marks_missing][self.name] = count
            numbers = np.where(missing, self.fill, numbers)
        return np.column_stack([numbers, missing] if self.marks_missing else [numbers])


@final
@dataclass(frozen=True)
class Number(_Filled):
    """A column of numbers.

    Attributes:
        unit: the sign beside every number, such as ``%``, or nothing.
        decimal: decimal mark of the training file.
        thousands: mark between groups of digits there, or nothing.
    """

    kind: ClassVar[str] = "number"
    can_be_chosen: ClassVar[bool] = True
    unit: str = _checked(_text, "")
    decimal: str = _checked(_one_of(".", ","), ".")
    thousands: str = _checked(_one_of("", ",", ".", " ", "'"), "")

    @property
    def is_number(self) -> bool:
        return not self.unit

    @property
    def format(self) -> NumberFormat:
        return NumberFormat(self.decimal, self.thousands)

    @property
    def not_plain(self) -> str:
        return "missing values or units" if self.marks_missing or self.unit else ""

    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        if isinstance(cells, Texts):
            cells = cells.numbers(_plain_number, "is not a number, as in the training file")
        return self._fill(cells, tally)

    def misfit(self, values: Sequence[str] | None) -> str | None:
        if values is None or own_numbers(values) is not None:
            return None
        return f"has the values {listed(values)}; in the training file it is a number"

    def notes(self, columns: Sequence["Number"], *, of_training: bool) -> list[str]:
        notes = []
        commas = [column.name for column in columns if column.decimal == ","]
        groups = [column.name for column in columns if column.thousands]
        if of_training and commas:
            notes.append(f"decimal commas: {listed(commas)}")
        if of_training and groups:
            notes.append(f"marks between thousands are left out: {listed(groups)}")
        for sign in dict.fromkeys(column.unit for column in columns if column.unit):
            names = [column.name for column in columns if column.unit == sign]
            divisor = Unit(sign).divisor
            divided = f" and the numbers divided by {divisor:.0f}" if divisor != 1.0 else ""
            notes.append(f"the sign {sign} is left out{divided}: {listed(names)}")
        return notes


@final
@dataclass(frozen=True)
class Boolean(_Filled):
    """A column of no and yes, or words of that meaning."""

    kind: ClassVar[str] = "boolean"

    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        if isinstance(cells, Texts):
            cells = cells.numbers(_answer, "is neither no nor yes")
        strange = ~(np.isin(cells, (0.0, 1.0)) | np.isnan(cells))
        if strange.any():
            row = int(strange.argmax())
            raise CellError(row, f"{cells[row]:g} is neither no (0) nor yes (1)")
        return self._fill(cells, tally)

    def notes(self, columns: Sequence[Column], *, of_training: bool) -> list[str]:
        return [f"no is 0 and yes is 1: {listed(column.name for column in columns)}"]


@final
@dataclass(frozen=True)
class Category(Column):
    """A column of words without order, one in each cell.

    Attributes:
        values: those of the training file.
        marks_missing: whether missing cells have a feature of their own.
        allows_missing: whether a missing cell is accepted; without a feature, as zeros.
    """

    kind: ClassVar[str] = "category"
    can_be_chosen: ClassVar[bool] = True
    values: tuple[str, ...] = _checked(_texts, ())
    marks_missing: bool = _checked(_flag, False)
    allows_missing: bool = _checked(_flag, True)

    @property
    def feature_names(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}={value}" for value in self.values)
        return (*names, f"{self.name} (missing)") if self.marks_missing else names

    def refit(self, cells: Cells) -> Column:
        found = set(as_texts(cells).present)
        return replace(self, values=tuple(value for value in self.values if value in found))

    def misfit(self, values: Sequence[str] | None) -> str | None:
        return _numeric_misfit(self.values) if values is None else None

    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        texts = as_texts(cells)
        missing = texts.is_missing
        if missing.any():
            if not self.allows_missing:
                raise CellError(int(missing.argmax()), _NO_VALUE)
            tally.lacking[self.marks_missing][self.name] = int(missing.sum())
        positions = [-1 if i is None else i for i in _find(texts.values, self.values)]
        unseen = [i for i, position in enumerate(positions) if position < 0 and texts.counts[i]]
        if unseen:
            count = int(texts.counts[unseen].sum())
            tally.unseen[self.name] = (count, [texts.values[i] for i in unseen])
        missing_column = len(self.values) if self.marks_missing else -1
        columns = np.asarray([*positions, missing_column], dtype=np.int64)[texts.codes]
        return _ones(np.flatnonzero(columns >= 0), columns[columns >= 0], self, len(columns))

    def notes(self, columns: Sequence["Category"], *, of_training: bool) -> list[str]:
        names = (f"{column.name} ({counted(len(column.values), 'value')})" for column in columns)
        return [f"categories, a 0/1 feature for each value: {listed(names)}"]


@final
@dataclass(frozen=True)
class Tags(Column):
    """A column whose cells hold several words each, without order.

    Attributes:
        values: those of the training file.
        separator: what stands between two words.
    """

    kind: ClassVar[str] = "tags"
    can_be_chosen: ClassVar[bool] = True
    can_be_missing: ClassVar[bool] = False
    values: tuple[str, ...] = _checked(_texts, ())
    separator: str = _checked(_one_of(*SEPARATORS), ";")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        texts = as_texts(cells)
        position = {value: i for i, value in enumerate(self.values)}
        tags = [split_tags(value, self.separator) for value in texts.values]
        unseen = [tuple(tag for tag in one if tag not in position) for one in tags]
        cells_unseen = int(texts.counts[[i for i, one in enumerate(unseen) if one]].sum())
        if cells_unseen:
            words = dict.fromkeys(tag for one in unseen for tag in one)
            tally.unseen[self.name] = (cells_unseen, tuple(words))
        known = [[position[tag] for tag in one if tag in position] for one in tags]
        sizes = np.asarray([*map(len, known), 0])[texts.codes]  # the last: of missing cells
        columns = [known[code] for code in texts.codes.tolist() if code >= 0]
        flat = np.fromiter((i for one in columns for i in one), np.int64, int(sizes.sum()))
        return _ones(np.repeat(np.arange(sizes.size), sizes), flat, self, sizes.size)

    def notes(self, columns: Sequence["Tags"], *, of_training: bool) -> list[str]:
        return [
            f"tags, split at {column.separator!r}, a 0/1 feature for each of "
            f"{counted(len(column.values), 'tag')}: {column.name}"
            for column in columns
        ]


@final
@dataclass(frozen=True)
class Ordinal(_Filled):
    """A column of words whose positions in a list are taken for numbers.

    Published versions of data sets have such features; the distances mean nothing unless the words
    are in order, so that nothing becomes one by itself.

    Attributes:
        values: the words, from 0.
    """

    kind: ClassVar[str] = "ordinal"
    values: tuple[str, ...] = _checked(_texts, ())

    @property
    def not_plain(self) -> str:
        return "categories"

    def misfit(self, values: Sequence[str] | None) -> str | None:
        return _numeric_misfit(self.values) if values is None else None

    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        texts = as_texts(cells)
        position = dict(zip(texts.values, _find(texts.values, self.values), strict=True))
        problem = f"is none of the values of the training file: {listed(self.values)}"
        numbers = texts.numbers(position.get, problem)
        return self._fill(numbers, tally)


@final
@dataclass(frozen=True)
class Ignored(Column):
    """A column that becomes no feature.

    Attributes:
        reason: why not, for the note.
    """

    kind: ClassVar[str] = "ignored"
    can_be_chosen: ClassVar[bool] = True
    can_be_missing: ClassVar[bool] = False
    is_used: ClassVar[bool] = False
    reason: str = _checked(_text, "")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return ()

    def encode(self, cells: Cells, tally: Tally) -> Matrix:
        raise TypeError(f"column {self.name!r} is not read")

    def notes(self, columns: Sequence["Ignored"], *, of_training: bool) -> list[str]:
        return [f"left out: {column.name} ({column.reason})" for column in columns]


KINDS: Mapping[str, type[Column]] = {
    one.kind: one for one in (Number, Boolean, Category, Tags, Ordinal, Ignored)
}


@dataclass(frozen=True)
class Columns:
    """The recipe of a file: its columns in order, or the number of features of a LIBSVM file.

    Attributes:
        items: one per column that is no target; none for LIBSVM files.
        n_numbered: number of features of a LIBSVM file, which have no names.
        missing_values: words that stand for a missing value, besides those that always do.

    Example:
        >>> columns = Columns((Number("width", fill=2.0), Category("colour", ("blue", "red"))))
        >>> columns.feature_names
        ('width', 'colour=blue', 'colour=red')
        >>> Columns.from_json(columns.to_json()) == columns
        True
    """

    items: tuple[Column, ...] = ()
    n_numbered: int = 0
    missing_values: tuple[str, ...] = ()

    @cached_property
    def used(self) -> tuple[Column, ...]:
        """The columns that become features; those of LIBSVM files are plain numbers."""
        if self.n_numbered:
            return tuple(map(Number, numbered("feature_", self.n_numbered, 1)))
        return tuple(column for column in self.items if column.is_used)

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.n_numbered or sum(len(column.feature_names) for column in self.items)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One per column of X."""
        if self.n_numbered:
            return numbered("feature_", self.n_numbered, 1)
        return tuple(name for column in self.items for name in column.feature_names)

    @staticmethod
    def plain(names: Sequence[str]) -> "Columns":
        """The recipe of features that are numbers as they are, for tables that no reader made."""
        if tuple(names) == numbered("feature_", len(names), 1):
            return Columns(n_numbered=len(names))
        return Columns(tuple(map(Number, names)))

    def notes(self, *, of_training: bool) -> list[str]:
        """What was made of the columns of a file, in sentences that name them.

        Args:
            of_training: whether the recipe was learned from this very file.
        """
        kinds = sorted(KINDS.values(), key=lambda kind: kind.is_used)  # what is left out first
        found = ([one for one in self.items if isinstance(one, kind)] for kind in kinds)
        return [
            note
            for columns in found
            if columns
            for note in columns[0].notes(columns, of_training=of_training)
        ]

    def to_json(self) -> dict[str, Any]:
        """Lists, dictionaries, strings and numbers, from which :meth:`from_json` makes it anew."""
        return {
            "n_numbered": self.n_numbered,
            "missing_values": list(self.missing_values),
            "columns": [column.to_json() for column in self.items],
        }

    @staticmethod
    def from_json(data: object) -> "Columns":
        """The recipe of what :meth:`to_json` returned.

        Raises:
            ValueError: for anything else, with the reason.
        """
        names = {"n_numbered", "missing_values", "columns"}
        known = _fields_of(data, names, "a recipe of columns")
        count, items = known["n_numbered"], known["columns"]
        if type(count) is not int or not 0 <= count <= MAX_FEATURES:
            raise ValueError(f"n_numbered is {_shown(count)}, expected 0 to {MAX_FEATURES}")
        if not isinstance(items, list) or (count and items):
            raise ValueError("columns is no list, or not empty beside n_numbered")
        words = _texts("missing_values", known["missing_values"])
        columns = Columns(tuple(map(Column.from_json, items)), count, words)
        if len({column.name for column in columns.items}) != len(items):
            raise ValueError("two columns have the same name")
        if not 0 < columns.n_features <= MAX_FEATURES:
            raise ValueError(f"{columns.n_features} features, expected 1 to {MAX_FEATURES}")
        return columns


def as_texts(numbers: Cells) -> Texts:
    """Numbers as words, in their shortest form; words as they are."""
    if isinstance(numbers, Texts):
        return numbers
    present = ~np.isnan(numbers)
    values, codes = np.unique(numbers[present], return_inverse=True)
    all_codes = np.full(numbers.shape, -1, dtype=np.int64)
    all_codes[present] = codes
    return Texts(all_codes, [repr(value).removesuffix(".0") for value in values.tolist()])


def as_cells(column: Any, missing_values: Sequence[str] = ()) -> Cells:
    """The cells of a column in memory: numbers and booleans, or words."""
    values = np.asarray(column)
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    words: dict[str, int] = {}
    codes = np.full(values.shape, -1, dtype=np.int64)
    missing = MISSING_WORDS.union(missing_values)
    for i, value in enumerate(values.tolist()):
        text = "" if value is None or value != value else str(value).strip()
        if text not in missing:
            codes[i] = words.setdefault(text, len(words))
    return Texts(codes, list(words))


def split_tags(text: str, separator: str) -> tuple[str, ...]:
    """The different words of a cell."""
    parts = (part.strip() for part in text.split(separator))
    return tuple(dict.fromkeys(part for part in parts if part))


def join_features(blocks: Sequence[Matrix], n: int) -> Matrix:
    """The blocks side by side; dense where that is small, or the smaller form."""
    width = sum(block.shape[1] for block in blocks)
    filled = sum(block.nnz if sparse.issparse(block) else block.size for block in blocks)
    if n * width > DENSE_CELLS and filled < DENSE_FROM * n * width:
        return sparse.csr_array(sparse.hstack([sparse.csc_array(block) for block in blocks]))
    X = np.empty((n, width))
    start = 0
    for block in blocks:
        stop = start + block.shape[1]
        X[:, start:stop] = block.toarray() if sparse.issparse(block) else block
        start = stop
    return X


def _ones(rows: np.ndarray, columns: np.ndarray, column: Column, n: int) -> Matrix:
    width = len(column.feature_names)
    return sparse.csc_array((np.ones(rows.size), (rows, columns)), (n, width))


def _find(words: Sequence[str], values: Sequence[str]) -> list[int | None]:
    """The position of each word among the values; 3.0 is 3, unless both are there."""
    position = {_canonical(value): i for i, value in enumerate(values)}
    position.update((value, i) for i, value in enumerate(values))
    return [position.get(word, position.get(_canonical(word))) for word in words]


def _numeric_misfit(values: Sequence[str]) -> str | None:
    if any(map(PLAIN.matches, values)):
        return None
    return f"is numeric; in the training file its values are {listed(values)}"


def _plain_number(text: str) -> float | None:
    text = text.replace(MINUS, "-")
    return float(text) if PLAIN.matches(text) and math.isfinite(float(text)) else None


def _answer(text: str) -> float | None:
    return _WORDS.get(_canonical(text).lower())


def _canonical(value: str) -> str:
    """Whole numbers without ``.0``, which programs add to codes beside missing cells."""
    return value[:-2] if _WHOLE.fullmatch(value) else value
