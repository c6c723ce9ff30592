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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np
from scipy import sparse

from ._frame import CellError, Cells, Texts, as_texts, is_missing, median
from ._numbers import MINUS, NO_YES, PLAIN, UNIT_DIVISORS, NumberFormat, own_numbers
from ._table import DENSE_FROM, MAX_FEATURES, Matrix, counted, listed, numbered

MAX_CATEGORIES = 10_000  # of one column
MAX_TEXT = 1000  # characters of a value, a name, a reason
DENSE_CELLS = 4_000_000  # 32 MB: no need for a sparse table
SEPARATORS = (";", "|", ",")  # of tags
_NO_VALUE = "no value, and the training file was read without missing values"
_WHOLE = re.compile(r"-?\d+\.0", re.ASCII)
_ANSWERS = {"0": 0.0, "1": 1.0} | {
    word: value for pair in NO_YES for word, value in zip(pair, (0.0, 1.0), strict=True)
}

# notes are said in this order, those of one sentence together
(
    _LEFT_OUT, _COMMAS, _GROUPS, _UNIT, _ANSWER, _CATEGORIES, _TAGS, _FILLED_AND_MARKED, _FILLED,
    _MISSING_CATEGORY, _NO_CATEGORY, _UNSEEN,
) = range(12)  # fmt: skip


class Notes:
    """Sentences on what was made of the columns of a file, and the columns that each is about.

    Attributes:
        of_training: True if the recipe was learned from this very file.
    """

    def __init__(self, *, of_training: bool = True) -> None:
        self.of_training = of_training
        self._said: dict[tuple[int, str], list[str]] = {}

    def add(self, order: int, sentence: str, column: str = "") -> None:
        """Say a sentence of a column; a sentence that names its column stands by itself."""
        self._said.setdefault((order, sentence), []).append(column)

    @property
    def sentences(self) -> list[str]:
        said = sorted(self._said.items(), key=lambda one: one[0][0])
        return [f"{text}: {listed(names)}" if names[0] else text for (_, text), names in said]


def _shown(value: object) -> str:
    text = reprlib.repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _are_texts(value: object) -> bool:
    if not isinstance(value, list) or len(value) > MAX_CATEGORIES:
        return False
    return all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_number_or_none(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _checked(expected: str, is_valid: Callable[[Any], bool], default: Any = MISSING) -> Any:
    """A field of a recipe, and what its value in JSON must be."""
    return field(default=default, metadata={"expected": expected, "is_valid": is_valid})


def _text(default: Any = MISSING) -> Any:
    return _checked(f"text of at most {MAX_TEXT} characters", _is_text, default)


def _flag(default: bool) -> Any:
    return _checked("true or false", lambda value: isinstance(value, bool), default)


_TEXTS = f"at most {MAX_CATEGORIES} different words of at most {MAX_TEXT} characters"


def _texts() -> Any:
    return _checked(_TEXTS, _are_texts, ())


def _one_of(*choices: str, default: str) -> Any:
    expected = f"one of {listed(choices)}"
    return _checked(expected, lambda value: isinstance(value, str) and value in choices, default)


def _fields_of(data: object, names: set[str], what: str) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != names:
        raise ValueError(f"{_shown(data)} is not {what} with {', '.join(sorted(names))}")
    return data


@dataclass(frozen=True)
class Column(ABC):
    """One column of a file, by name."""

    kind: ClassVar[str]
    can_be_chosen: ClassVar[bool] = False  # True if ReadOptions.kinds may ask for it
    can_be_missing: ClassVar[bool] = True  # True if an empty cell lacks something
    is_used: ClassVar[bool] = True  # True if it becomes features

    name: str = _text()

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """What its features are called."""

    @abstractmethod
    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        """Features, (n, len(feature_names)); raises :class:`CellError`."""

    def describe(self, notes: Notes) -> None:  # noqa: B027  (most have something to say)
        """Note what is made of the column, whatever its cells are."""

    @property
    def is_number(self) -> bool:
        """True if its cells are numbers and nothing else, in some format."""
        return False

    @property
    def is_plain(self) -> bool:
        """True if its one feature is the number in each cell."""
        return False

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
        known = {one.name: one.metadata for one in fields(cls)}
        given = dict(_fields_of(data, {"kind", *known}, f"a {kind} column"))
        del given["kind"]
        for name, value in given.items():
            if not known[name]["is_valid"](value):
                expected = known[name]["expected"]
                raise ValueError(f"{name} is {_shown(value)}, expected {expected}")
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)


@dataclass(frozen=True)
class _Filled(Column):
    """A number, or what stands for one.

    Attributes:
        fill: what replaces a missing number; None: a missing number is refused.
        marks_missing: True if a second feature is 1 where a number is missing, else 0.
    """

    fill: float | None = _checked("a finite number or null", _is_number_or_none, None)
    marks_missing: bool = _flag(False)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return (self.name, f"{self.name} (missing)") if self.marks_missing else (self.name,)

    @property
    def is_plain(self) -> bool:
        return not self.marks_missing

    @abstractmethod
    def numbers(self, cells: Cells) -> Any:
        """The number of each cell, NaN where it is missing."""

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        numbers = self.numbers(cells)
        if sparse.issparse(numbers):
            return numbers
        missing = np.isnan(numbers)
        if missing.any():
            if self.fill is None:
                raise CellError(int(missing.argmax()), _NO_VALUE)
            whose = "the column" if notes.of_training else "the training file"
            order, sentence = _FILLED, f"missing numbers are replaced by the median of {whose}"
            if self.marks_missing:
                order, sentence = _FILLED_AND_MARKED, f"{sentence} and marked in a 0/1 feature"
            notes.add(order, sentence, f"{self.name} ({counted(int(missing.sum()), 'row')})")
            numbers = np.where(missing, self.fill, numbers)
        return np.column_stack([numbers, missing] if self.marks_missing else [numbers])

    def refit(self, cells: Cells) -> Column:
        return replace(self, fill=median(self.numbers(cells)), marks_missing=False)

    def refill(self, X: np.ndarray, rows: np.ndarray) -> tuple[Column, float | None]:
        known = X[rows, 0][X[rows, 1] == 0.0] if self.marks_missing else np.zeros(0)
        if not known.size:
            return self, None
        fill = float(np.median(known))
        return replace(self, fill=fill), fill


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
    unit: str = _text("")
    decimal: str = _one_of(".", ",", default=".")
    thousands: str = _one_of("", ",", ".", " ", "'", default="")

    @property
    def is_number(self) -> bool:
        return not self.unit

    @property
    def is_plain(self) -> bool:
        return not (self.marks_missing or self.unit)

    @property
    def format(self) -> NumberFormat:
        return NumberFormat(self.decimal, self.thousands)

    def numbers(self, cells: Cells) -> Any:
        if isinstance(cells, Texts):
            return cells.numbers(_plain_number, "is not a number, as in the training file")
        return cells

    def misfit(self, values: Sequence[str] | None) -> str | None:
        if values is None or own_numbers(values) is not None:
            return None
        return f"has the values {listed(values)}; in the training file it is a number"

    def describe(self, notes: Notes) -> None:
        if notes.of_training and self.decimal == ",":
            notes.add(_COMMAS, "decimal commas", self.name)
        if notes.of_training and self.thousands:
            notes.add(_GROUPS, "marks between thousands are left out", self.name)
        if self.unit:
            divisor = UNIT_DIVISORS.get(self.unit)
            divided = f" and the numbers divided by {divisor:.0f}" if divisor else ""
            notes.add(_UNIT, f"the sign {self.unit} is left out{divided}", self.name)


@final
@dataclass(frozen=True)
class Boolean(_Filled):
    """A column of no and yes, or words of that meaning."""

    kind: ClassVar[str] = "boolean"

    def numbers(self, cells: Cells) -> Any:
        if isinstance(cells, Texts):
            return cells.numbers(_answer, "is neither no nor yes")
        numbers = cells.toarray()[:, 0] if sparse.issparse(cells) else cells
        strange = ~(np.isin(numbers, (0.0, 1.0)) | np.isnan(numbers))
        if strange.any():
            row = int(strange.argmax())
            raise CellError(row, f"{numbers[row]:g} is neither no (0) nor yes (1)")
        return numbers

    def describe(self, notes: Notes) -> None:
        notes.add(_ANSWER, "no is 0 and yes is 1", self.name)


@final
@dataclass(frozen=True)
class Category(Column):
    """A column of words without order, one in each cell.

    Attributes:
        values: those of the training file.
        marks_missing: True if missing cells have a feature of their own.
        allows_missing: True if a missing cell is accepted; without a feature, as zeros.
    """

    kind: ClassVar[str] = "category"
    can_be_chosen: ClassVar[bool] = True
    values: tuple[str, ...] = _texts()
    marks_missing: bool = _flag(False)
    allows_missing: bool = _flag(True)

    @property
    def feature_names(self) -> tuple[str, ...]:
        names = tuple(f"{self.name}={value}" for value in self.values)
        return (*names, f"{self.name} (missing)") if self.marks_missing else names

    def refit(self, cells: Cells) -> Column:
        found = set(as_texts(cells).present)
        return replace(self, values=tuple(value for value in self.values if value in found))

    def misfit(self, values: Sequence[str] | None) -> str | None:
        return _numeric_misfit(self.values) if values is None else None

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        texts = as_texts(cells)
        missing = is_missing(texts)
        if missing.any():
            if not self.allows_missing:
                raise CellError(int(missing.argmax()), _NO_VALUE)
            order, sentence = _MISSING_CATEGORY, "missing values are a category of their own"
            if not self.marks_missing:
                order = _NO_CATEGORY
                sentence = "missing values, of which the training file had none, belong to no "
                sentence += "category"
            notes.add(order, sentence, f"{self.name} ({counted(int(missing.sum()), 'row')})")
        positions = [-1 if i is None else i for i in _find(texts.values, self.values)]
        unseen = [i for i, position in enumerate(positions) if position < 0 and texts.counts[i]]
        _note_unseen(
            notes, self.name, texts.counts[unseen].sum(), [texts.values[i] for i in unseen]
        )
        missing_column = len(self.values) if self.marks_missing else -1
        columns = np.asarray([*positions, missing_column], dtype=np.int64)[texts.codes]
        return _ones(np.flatnonzero(columns >= 0), columns[columns >= 0], self, len(columns))

    def describe(self, notes: Notes) -> None:
        values = counted(len(self.values), "value")
        sentence = "categories, a 0/1 feature for each value"
        notes.add(_CATEGORIES, sentence, f"{self.name} ({values})")


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
    values: tuple[str, ...] = _texts()
    separator: str = _one_of(*SEPARATORS, default=";")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}={value}" for value in self.values)

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        texts = as_texts(cells)
        position = {tag: i for i, tag in enumerate(self.values)}
        tags = [split_tags(value, self.separator) for value in texts.values]
        words = {tag: None for one in tags for tag in one if tag not in position}
        is_unseen = [not words.keys().isdisjoint(one) for one in tags]
        _note_unseen(notes, self.name, texts.counts @ np.asarray(is_unseen, int), list(words))
        known = [[position[tag] for tag in one if tag in position] for one in tags]
        sizes = np.asarray([*map(len, known), 0])[texts.codes]  # the last: of missing cells
        columns = (i for code in texts.codes.tolist() if code >= 0 for i in known[code])
        flat = np.fromiter(columns, np.int64, int(sizes.sum()))
        return _ones(np.repeat(np.arange(sizes.size), sizes), flat, self, sizes.size)

    def describe(self, notes: Notes) -> None:
        tags = counted(len(self.values), "tag")
        sentence = f"tags, split at {self.separator!r}, a 0/1 feature for each of {tags}"
        notes.add(_TAGS, f"{sentence}: {self.name}")


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
    values: tuple[str, ...] = _texts()

    @property
    def is_plain(self) -> bool:
        return False

    def misfit(self, values: Sequence[str] | None) -> str | None:
        return _numeric_misfit(self.values) if values is None else None

    def numbers(self, cells: Cells) -> Any:
        texts = as_texts(cells)
        position = dict(zip(texts.values, _find(texts.values, self.values), strict=True))
        problem = f"is none of the values of the training file: {listed(self.values)}"
        return texts.numbers(position.get, problem)


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
    reason: str = _text("")

    @property
    def feature_names(self) -> tuple[str, ...]:
        return ()

    def encode(self, cells: Cells, notes: Notes) -> Matrix:
        raise TypeError(f"column {self.name!r} is not read")

    def describe(self, notes: Notes) -> None:
        notes.add(_LEFT_OUT, f"left out: {self.name} ({self.reason})")


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
            return tuple(map(Number, self.feature_names))
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
        count, words, items = (known[name] for name in ("n_numbered", "missing_values", "columns"))
        if type(count) is not int or not 0 <= count <= MAX_FEATURES:
            raise ValueError(f"n_numbered is {_shown(count)}, expected 0 to {MAX_FEATURES}")
        if not isinstance(items, list) or (count and items):
            raise ValueError("columns is no list, or not empty beside n_numbered")
        if not _are_texts(words):
            raise ValueError(f"missing_values is {_shown(words)}, expected {_TEXTS}")
        columns = Columns(tuple(map(Column.from_json, items)), count, tuple(words))
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


def join_features(blocks: Sequence[Matrix], n: int) -> Matrix:
    """The blocks side by side; dense where that is small, or the smaller form."""
    width = sum(block.shape[1] for block in blocks)
    filled = sum(block.nnz if sparse.issparse(block) else block.size for block in blocks)
    if n * width > DENSE_CELLS and filled < DENSE_FROM * n * width:
        return sparse.csr_array(sparse.hstack([sparse.csc_array(block) for block in blocks]))
    X, start = np.empty((n, width)), 0
    for block in blocks:
        stop = start + block.shape[1]
        X[:, start:stop] = block.toarray() if sparse.issparse(block) else block
        start = stop
    return X


def _note_unseen(notes: Notes, name: str, count: int, words: Sequence[str]) -> None:
    if count:
        shown = listed(word[:40] for word in words[:5]) + ", …" * (len(words) > 5)
        where = f"{name} ({counted(int(count), 'row')}: {shown})"
        notes.add(_UNSEEN, f"values not seen in training are encoded as all zeros: {where}")


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
    return _ANSWERS.get(_canonical(text).lower())


def _canonical(value: str) -> str:
    """Whole numbers without ``.0``, which programs add to codes beside missing cells."""
    return value[:-2] if _WHOLE.fullmatch(value) else value
