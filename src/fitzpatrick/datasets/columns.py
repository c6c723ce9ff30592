"""The recipe that turns the columns of a file into features.

A recipe is learned from the training file and applied to every other one. It is pure data:
:meth:`Columns.to_json` writes it into a model file, :meth:`Columns.from_json` takes it back and
believes nothing.

Numbers become what scikit-learn's ``SimpleImputer(strategy="median", add_indicator=True)`` makes
of them, and categories what its ``OneHotEncoder(handle_unknown="ignore")`` does. With the
indicator, what is filled in does not matter to a linear model, and "was not answered" is
information it can use. No category is dropped as a reference: under a penalty, the fit would
depend on which.
"""

import math
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from ._frame import CellError, Cells, Notes, Texts, as_texts, is_missing, median
from ._numbers import NO_YES, UNIT_DIVISORS, plain_number
from ._table import DENSE_FROM, MAX_FEATURES, Matrix, counted, listed, numbered
from .options import ReadOptions

MAX_CATEGORIES = 10_000  # of one column
MAX_TEXT = 1000  # characters of a value, a name, a reason
DENSE_CELLS = 4_000_000  # 32 MB: no need for a sparse table
SEPARATORS = (";", "|", ",")  # of tags
_NO_VALUE = "no value, and the training file was read without missing values"
_WHOLE = re.compile(r"-?\d+\.0", re.ASCII)
_ANSWERS = {"0": 0.0, "1": 1.0} | {word: float(i) for pair in NO_YES for i, word in enumerate(pair)}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _are_texts(value: object) -> bool:
    if not isinstance(value, list) or len(value) > MAX_CATEGORIES:
        return False
    return all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_fill(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _one_of(*choices: str) -> tuple[str, Callable[[Any], bool]]:
    return f"one of {listed(choices)}", choices.__contains__


_TEXT = f"text of at most {MAX_TEXT} characters", _is_text
_FLAG = "true or false", lambda value: isinstance(value, bool)
_TEXTS = f"at most {MAX_CATEGORIES} different words of at most {MAX_TEXT} characters", _are_texts
_COUNT = f"0 to {MAX_FEATURES}", lambda value: type(value) is int and 0 <= value <= MAX_FEATURES
_FIELDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "name": _TEXT, "unit": _TEXT, "reason": _TEXT, "values": _TEXTS, "missing_values": _TEXTS,
    "marks_missing": _FLAG, "allows_missing": _FLAG, "n_numbered": _COUNT,
    "fill": ("a finite number or null", _is_fill), "decimal": _one_of(".", ","),
    "thousands": _one_of("", ",", ".", " ", "'"), "separator": _one_of(*SEPARATORS),
}  # fmt: skip


def _checked(data: object, names: set[str], what: str) -> dict[str, Any]:
    """Fields of a recipe, with tuples in place of lists."""
    if not isinstance(data, dict) or set(data) != names:
        raise ValueError(f"{_shown(data)} is not {what} with {', '.join(sorted(names))}")
    for name in names & _FIELDS.keys():
        expected, is_valid = _FIELDS[name]
        if not is_valid(data[name]):
            raise ValueError(f"{name} is {_shown(data[name])}, expected {expected}")
    return {name: tuple(one) if isinstance(one, list) else one for name, one in data.items()}


def _shown(value: object) -> str:
    text = reprlib.repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


@dataclass(frozen=True)
class Column:
    """One column of a file; its kinds say what becomes of it."""

    kind: ClassVar[str]
    can_be_missing: ClassVar[bool] = True  # True if an empty cell lacks something

    name: str

    @property
    def feature_names(self) -> tuple[str, ...]:
        return ()

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        """Features, (n, len(feature_names)); raises :class:`CellError`."""
        raise TypeError(f"column {self.name!r} is not read")

    def describe(self, notes: Notes) -> None:
        """Note how the column is read, which does not depend on its cells."""

    @property
    def is_plain(self) -> bool:
        """True if its one feature is the number in each cell."""
        return self.kind in ("number", "boolean") and self.feature_names == (self.name,)

    def fit(self, cells: Cells, options: ReadOptions) -> "Column":
        """What is learned from the training file: its words, and what becomes of missing cells."""
        return self

    def to_json(self) -> dict[str, Any]:
        values = {
            key: list(one) if isinstance(one, tuple) else one for key, one in vars(self).items()
        }
        return {"kind": self.kind, **values}

    @staticmethod
    def from_json(data: object) -> "Column":
        """The column of what :meth:`to_json` returned; raises ValueError for anything else."""
        kind = data.get("kind") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"{_shown(data)} is not a column of a kind among {', '.join(KINDS)}")
        names = {"kind", *(one.name for one in fields(KINDS[kind]))}
        given = _checked(data, names, f"a {kind} column")
        del given["kind"]
        return KINDS[kind](**given)


@dataclass(frozen=True)
class _Filled(Column):
    """A number, or what stands for one."""

    fill: float | None = None  # replaces a missing number; None: a missing number is refused
    marks_missing: bool = False  # True if a second feature is 1 where a number is missing, else 0

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} (missing)") if self.marks_missing else (self.name,)

    def numbers(self, cells: Cells) -> Any:
        """The number of each cell, NaN where it is missing."""
        if isinstance(cells, Texts):
            return cells.numbers(plain_number, "is not a number, as in the training file")
        return cells

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        numbers = self.numbers(cells)
        if sparse.issparse(numbers):
            return numbers
        missing = np.isnan(numbers)
        if missing.any():
            if self.fill is None:
                raise CellError(int(missing.argmax()), _NO_VALUE)
            whose = "the column" if notes.of_training else "the training file"
            sentence = f"missing numbers are replaced by the median of {whose}"
            sentence += " and marked in a 0/1 feature" * self.marks_missing
            notes.add(sentence, f"{self.name} ({counted(int(missing.sum()), 'row')})")
            numbers = np.where(missing, self.fill, numbers)
        return np.column_stack([numbers, missing] if self.marks_missing else [numbers])

    def fit(self, cells: Cells, options: ReadOptions) -> Column:
        fill = median(self.numbers(cells)) if options.missing != "error" else None
        return replace(self, fill=fill, marks_missing=bool(is_missing(cells).any()))


@dataclass(frozen=True)
class Number(_Filled):
    """A column of numbers, and how the training file writes them."""

    kind: ClassVar[str] = "number"
    unit: str = ""  # the sign beside every number, such as %, or nothing
    decimal: str = "."
    thousands: str = ""  # mark between groups of digits, or nothing

    @property
    def is_plain(self) -> bool:
        return super().is_plain and not self.unit

    def describe(self, notes: Notes) -> None:
        if notes.of_training and self.decimal == ",":
            notes.add("decimal commas", self.name)
        if notes.of_training and self.thousands:
            notes.add("marks between thousands are left out", self.name)
        if self.unit:
            divisor = UNIT_DIVISORS.get(self.unit)
            divided = f" and the numbers divided by {divisor:.0f}" if divisor else ""
            notes.add(f"the sign {self.unit} is left out{divided}", self.name)


@dataclass(frozen=True)
class Boolean(_Filled):
    """A column of no and yes, or words of that meaning."""

    kind: ClassVar[str] = "boolean"

    def numbers(self, cells: Cells) -> Any:
        return as_texts(cells).numbers(
            lambda text: _ANSWERS.get(_canonical(text).lower()), "is neither no nor yes"
        )

    def describe(self, notes: Notes) -> None:
        notes.add("no is 0 and yes is 1", self.name)


@dataclass(frozen=True)
class Ordinal(_Filled):
    """A column of words whose positions in a list are taken for numbers.

    Published versions of data sets have such features; the distances mean nothing unless the words
    are in order, so that nothing becomes one by itself.
    """

    kind: ClassVar[str] = "ordinal"
    values: tuple[str, ...] = ()

    def numbers(self, cells: Cells) -> Any:
        problem = f"is not among the values of the training file: {listed(self.values)}"
        return as_texts(cells).numbers(finder(self.values), problem)


@dataclass(frozen=True)
class _Words(Column):
    """Words without order, a feature for each."""

    values: tuple[str, ...] = ()  # of the training file

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.values)

    def split(self, text: str) -> tuple[str, ...]:
        """The words of a cell."""
        return (text,)

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        texts, find, width = as_texts(cells), finder(self.values), len(self.feature_names)
        # features of each value; the last: of a missing cell
        known: list[list[int]] = [[] for _ in texts.values]
        known.append([len(self.values)] if width > len(self.values) else [])
        unseen: dict[str, None] = {}
        n_unseen = 0
        for value, count, found in zip(texts.values, texts.counts.tolist(), known, strict=False):
            positions = {word: find(word) for word in self.split(value)}
            found += sorted({i for i in positions.values() if i is not None})  # 3 and 3.0 are one
            if count and None in positions.values():
                n_unseen += count
                unseen |= {word: None for word, i in positions.items() if i is None}
        if n_unseen:
            shown = listed((word[:40] for word in unseen), most=5)
            where = f"{self.name} ({counted(n_unseen, 'row')}: {shown})"
            notes.add(f"values not seen in training are encoded as all zeros: {where}")
        starts = np.cumsum([0, *map(len, known)])
        flat = np.asarray([i for found in known for i in found], dtype=np.int64)
        table = sparse.csr_array((np.ones(flat.size), flat, starts), (len(known), width))
        return table[texts.codes]


@dataclass(frozen=True)
class Category(_Words):
    """A column of words without order, one in each cell."""

    kind: ClassVar[str] = "category"
    marks_missing: bool = False  # True if missing cells have a feature of their own
    allows_missing: bool = True  # True if a missing cell is accepted; without a feature, as zeros

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (*super().feature_names, *[f"{self.name} (missing)"] * self.marks_missing)

    def fit(self, cells: Cells, options: ReadOptions) -> "Category":
        values = self.values or tuple(sorted(as_texts(cells).present))  # declared ones stay
        marks, allows = bool(is_missing(cells).any()), options.missing != "error"
        return replace(self, values=values, marks_missing=marks, allows_missing=allows)

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        missing = is_missing(cells)
        if missing.any():
            if not self.allows_missing:
                raise CellError(int(missing.argmax()), _NO_VALUE)
            sentence = "missing values become a separate category"
            if not self.marks_missing:
                sentence = "missing values, of which the training file had none, belong to no "
                sentence += "category"
            notes.add(sentence, f"{self.name} ({counted(int(missing.sum()), 'row')})")
        return super().encode(cells, notes)

    def describe(self, notes: Notes) -> None:
        column = f"{self.name} ({counted(len(self.values), 'value')})"
        notes.add("categories, a 0/1 feature for each value", column)


@dataclass(frozen=True)
class Tags(_Words):
    """A column whose cells hold several words each, without order."""

    kind: ClassVar[str] = "tags"
    can_be_missing: ClassVar[bool] = False
    separator: str = ";"

    def fit(self, cells: Cells, options: ReadOptions) -> "Tags":
        return replace(self, values=tags_among(as_texts(cells).present, self.separator))

    def split(self, text: str) -> tuple[str, ...]:
        return split_tags(text, self.separator)

    def describe(self, notes: Notes) -> None:
        tags = counted(len(self.values), "tag")
        sentence = f"tags, split at {self.separator!r}, a 0/1 feature for each of {tags}"
        notes.add(f"{sentence}: {self.name}")


@dataclass(frozen=True)
class Ignored(Column):
    """A column that becomes no feature."""

    kind: ClassVar[str] = "ignored"
    can_be_missing: ClassVar[bool] = False
    reason: str = ""  # why not, for the note

    def describe(self, notes: Notes) -> None:
        notes.add(f"left out: {self.name} ({self.reason})")


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
        """The columns that become features; features of LIBSVM files are plain numbers."""
        if self.n_numbered:
            return tuple(map(Number, self.feature_names))
        return tuple(column for column in self.items if not isinstance(column, Ignored))

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

    def encode(self, cells: Mapping[str, Cells], notes: Notes) -> Matrix:
        """All features: sparse if all cells are, or where dense ones would be large and empty."""
        blocks: list[Matrix] = []
        for column in self.used:
            try:
                blocks.append(column.encode(cells[column.name], notes))
            except CellError as error:
                raise CellError(error.row, str(error), column.name) from None
        shape = blocks[0].shape[0], self.n_features
        filled = sum(block.nnz if sparse.issparse(block) else block.size for block in blocks)
        is_large = math.prod(shape) > DENSE_CELLS
        are_sparse = all(sparse.issparse(cells[column.name]) for column in self.used)
        if (is_large or are_sparse) and filled < DENSE_FROM * math.prod(shape):
            return sparse.hstack(blocks).tocsr()
        X, ends = np.empty(shape), np.cumsum([block.shape[1] for block in blocks])
        for part, block in zip(np.split(X, ends[:-1], axis=1), blocks, strict=True):
            part[:] = block.toarray() if sparse.issparse(block) else block
        return X

    @staticmethod
    def plain(names: Sequence[str]) -> "Columns":
        """The recipe of features that are numbers as they are, for tables that no reader made."""
        if tuple(names) == numbered("feature_", len(names), 1):
            return Columns(n_numbered=len(names))
        return Columns(tuple(map(Number, names)))

    def to_json(self) -> dict[str, Any]:
        """Lists, dictionaries, strings and numbers, from which :meth:`from_json` makes it anew."""
        columns = [column.to_json() for column in self.items]
        missing = list(self.missing_values)
        return {"n_numbered": self.n_numbered, "missing_values": missing, "columns": columns}

    @staticmethod
    def from_json(data: object) -> "Columns":
        """The recipe of what :meth:`to_json` returned.

        Raises:
            ValueError: for anything else, with the reason.
        """
        known = _checked(data, {"n_numbered", "missing_values", "columns"}, "a recipe of columns")
        count, items = known["n_numbered"], known["columns"]
        if not isinstance(items, tuple) or (count and items):
            raise ValueError("columns is no list, or not empty beside n_numbered")
        columns = Columns(tuple(map(Column.from_json, items)), count, known["missing_values"])
        if len({column.name for column in columns.items}) != len(items):
            raise ValueError("two columns have the same name")
        if not 0 < columns.n_features <= MAX_FEATURES:
            raise ValueError(f"{columns.n_features} features, expected 1 to {MAX_FEATURES}")
        return columns


def split_tags(text: str, separator: str) -> tuple[str, ...]:
    """The different words of a cell."""
    parts = (part.strip() for part in text.split(separator))
    return tuple(dict.fromkeys(part for part in parts if part))


def tags_among(values: Iterable[str], separator: str) -> tuple[str, ...]:
    """The different words of all cells, in their order."""
    return tuple(sorted({tag for value in values for tag in split_tags(value, separator)}))


def finder(values: Sequence[str]) -> Callable[[str], int | None]:
    """Finds a word's position among the values; 3.0 is 3, unless both are there."""
    position = {_canonical(value): i for i, value in enumerate(values)}
    position.update((value, i) for i, value in enumerate(values))
    return lambda word: position.get(word, position.get(_canonical(word)))


def _canonical(value: str) -> str:
    """Whole numbers without ``.0``, which programs add to codes beside missing cells."""
    return value[:-2] if _WHOLE.fullmatch(value) else value
