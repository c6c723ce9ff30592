r"""ARFF as Mulan and MEKA use it for multi-label data: dense or sparse rows, labels as attributes.

Which attributes are labels is said by the caller, by the XML file that Mulan puts beside the data,
or by MEKA's ``-C`` in the relation's name. A single label attribute holds class names.

Nominal attributes are categories, a 0/1 feature for each declared value, for that is what the
declaration says: words, or codes, without an order. Those of no and yes, or of 0 and 1, are one 0/1
feature. Strings are read as the words of CSV files are. Within quotes a backslash escapes, as Weka
writes it: ``'Swainson\'s Thrush'``.
"""

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from ._errors import DataError, option
from ._frame import Attribute, Frame, SparseNumbers
from ._mulan import labels_beside
from ._numbers import NAN, plain_number
from ._table import DENSE_FROM, MAX_FEATURES
from ._text import read_lines
from .columns import Cells, Texts
from .options import ReadOptions

NOMINAL, NUMERIC, STRING, DATE = "nominal", "numeric", "string", "date"
_TYPES = {
    "numeric": NUMERIC,
    "real": NUMERIC,
    "integer": NUMERIC,
    "string": STRING,
    "date": DATE,
}
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_TOKEN = re.compile(rf"\s*+({_QUOTED}|[^\s'\"{{][^\s{{]*+)")
_FIELD = re.compile(rf"\s*+(?:({_QUOTED})|((?:[^,'\"\s][^,]*+)?))\s*+(,|\Z)")
_PAIR = re.compile(rf"\s*+(\d++)\s++(?:({_QUOTED})|([^,'\"\s][^,]*+))\s*+(,|\Z)", re.ASCII)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_MEKA = re.compile(r"-C\s++(-?\d{1,9})(?!\d)")
_MISSING = "?"


class ArffFile:
    """An ARFF file whose declarations have been read.

    Attributes:
        path: the file.
        attributes: declarations, by name, in their order.
        relation: what stands behind ``@relation``.
        notes: on the file's encoding.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.relation = ""
        self.attributes: dict[str, Attribute] = {}
        self._lines = self._meaningful(read_lines(path, self.notes))
        for number, text in self._lines:
            keyword, rest = (*text.split(maxsplit=1), "")[:2]
            match keyword.lower():
                case "@relation":
                    self.relation = rest
                case "@attribute":
                    self._declare(read_attribute(rest.strip(), path, number))
                case "@data":
                    return
                case _:
                    problem = f"expected @relation, @attribute or @data, got {text[:40]!r}"
                    raise DataError(problem, path, number)
        raise DataError("no sample in the file", path)

    @staticmethod
    def _meaningful(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        for number, line in lines:
            text = line.strip()
            if text and not text.startswith("%"):
                yield number, text

    def _declare(self, attribute: Attribute) -> None:
        if attribute.name in self.attributes:
            problem = f"attribute {attribute.name!r} is declared twice"
            raise DataError(problem, self.path, attribute.line)
        self.attributes[attribute.name] = attribute
        if len(self.attributes) > MAX_FEATURES:
            problem = f"more than {MAX_FEATURES} attributes"
            raise DataError(problem, self.path, attribute.line)

    def labels(self, targets: Sequence[str] | None) -> list[str]:
        """Names of the labels: as given, by the XML file beside the data, or by MEKA's ``-C``."""
        targets = labels_beside(self.path) if targets is None else targets
        if targets is not None:  # Mulan's XML files may escape what they need not
            return [one if one in self.attributes else unescape(one) for one in targets]
        found = _MEKA.findall(self.relation.partition(":")[2])
        count = int(found[-1]) if found else 0
        names = list(self.attributes)
        if count == 0 or abs(count) > len(names):
            raise DataError(
                "which attributes are labels is not known: put Mulan's XML file with the label "
                "names beside the file, or -C and their number into the relation's name",
                self.path,
                None,
                "--targets NAMES, or --targets FILE.xml, names them",
            )
        return names[:count] if count > 0 else names[count:]

    def read(self, names: Sequence[str], options: ReadOptions, *, any_type: bool = False) -> Frame:
        """The named attributes; dates are refused unless every type will do."""
        wanted = frozenset(() if any_type else names)
        for name, attribute in self.attributes.items():
            is_read = name in wanted and options.kind_of(name) != "ignored"
            if is_read and attribute.type not in (NOMINAL, NUMERIC, STRING):
                date = (
                    "a date" if attribute.type == DATE else f"of the type {attribute.type[:40]!r}"
                )
                problem = f"attribute {name!r} is {date}, expected a number, a nominal one or a"
                advice = f"--ignore {option(name)} leaves it out"
                raise DataError(f"{problem} string", self.path, attribute.line, advice)
        rows = _Rows(self.attributes, names, self.path)
        for number, text in self._lines:
            rows.add(text, number)
        if not rows.lines:
            raise DataError("no sample in the file", self.path)
        lines = np.array(rows.lines, dtype=np.int64)
        cells = _Cells(rows)
        numbers = cells.sparse_numbers()
        return Frame(
            self.path,
            options,
            lines,
            cells,
            self.notes,
            attributes=self.attributes,
            numbers=numbers,
        )


class _Rows:
    """Entries of the rows that are not zero: numbers, positions of nominal values from 0, and of
    strings from 1; so that what a sparse row leaves out is 0, or the first declared value. A
    missing value is NaN.
    """

    def __init__(
        self, attributes: Mapping[str, Attribute], names: Collection[str], path: Path
    ) -> None:
        self.attributes = list(attributes.values())
        self._path = path
        wanted = frozenset(names)
        self.used = frozenset(i for i, one in enumerate(self.attributes) if one.name in wanted)
        self._positions = {
            i: {value: float(j) for j, value in enumerate(self.attributes[i].values)}
            for i in self.used
            if self.attributes[i].type == NOMINAL
        }
        self.strings: dict[int, dict[str, float]] = {
            i: {} for i in self.used if self.attributes[i].type not in (NOMINAL, NUMERIC)
        }
        self.indices, self.values, self.starts = array("q"), array("d"), array("q", [0])
        self.lines = array("q")

    def add(self, text: str, line: int) -> None:
        width = len(self.attributes)
        if text.startswith("{"):
            if not text.endswith("}"):
                raise DataError("a sparse row has no closing brace", self._path, line)
            pairs = split_pairs(text[1:-1], width, self._path, line)
        else:
            fields = split_fields(text, self._path, line)
            if len(fields) != width:
                problem = f"{len(fields)} values, expected {width}"
                raise DataError(problem, self._path, line)
            pairs = list(enumerate(fields))
        for index, field in pairs:
            if index in self.used:
                value = self._number(index, field, line)
                if value != 0.0:
                    self.indices.append(index)
                    self.values.append(value)
        self.starts.append(len(self.indices))
        self.lines.append(line)

    def _number(self, index: int, field: str, line: int) -> float:
        if field == _MISSING and index not in self.strings:
            return NAN
        try:
            if index in self._positions:
                return self._positions[index][field]
            if index not in self.strings:
                return plain_number(field)
        except (KeyError, ValueError):
            kind = "was not declared" if index in self._positions else "is not a number"
            problem = f"the value of attribute {self.attributes[index].name!r} is {field[:40]!r}"
            raise DataError(f"{problem}, which {kind}", self._path, line) from None
        if field in ("", _MISSING):
            return NAN
        words = self.strings[index]
        return words.setdefault(field, 1.0 + len(words))


class _Cells(Mapping[str, Cells]):
    """The columns of the rows, each made when it is asked for."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self._position = {rows.attributes[i].name: i for i in sorted(rows.used)}
        self._entries = sparse.csr_array(
            (
                np.array(rows.values, dtype=np.float64),
                np.array(rows.indices, dtype=np.int64),
                np.array(rows.starts, dtype=np.int64),
            ),
            (len(rows.lines), len(rows.attributes)),
        ).tocsc()

    def __getitem__(self, name: str) -> Cells:
        i = self._position[name]
        column = self._entries[:, [i]].toarray()[:, 0]
        if self._rows.attributes[i].type == NUMERIC:
            return np.asarray(column)
        if i in self._rows.strings:
            codes = np.nan_to_num(column, nan=0.0) - 1
            return Texts(codes.astype(np.int64), list(self._rows.strings[i]))
        codes = np.nan_to_num(column, nan=-1.0)
        return Texts(codes.astype(np.int64), self._rows.attributes[i].values)

    def sparse_numbers(self) -> SparseNumbers | None:
        """The numeric attributes without gaps, if most entries of the file are zero."""
        entries = self._entries
        if entries.nnz >= DENSE_FROM * entries.shape[0] * max(len(self), 1):
            return None
        gaps = np.flatnonzero(np.isnan(entries.data))
        with_gaps = set((np.searchsorted(entries.indptr, gaps, side="right") - 1).tolist())
        return SparseNumbers(
            entries,
            {
                name: i
                for name, i in self._position.items()
                if self._rows.attributes[i].type == NUMERIC and i not in with_gaps
            },
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._position)

    def __len__(self) -> int:
        return len(self._position)


def unescape(text: str) -> str:
    r"""Backslashes and what they escape.

    Example:
        >>> unescape(r"Swainson\'s \"Thrush\"")
        'Swainson\'s "Thrush"'
    """
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 1:
            return _ESCAPED.get(code, code)
        number = int(code[1:], 16)
        return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)  # half a character

    return _ESCAPE.sub(replaced, text)


def unquote(text: str) -> str:
    """A name or a value without its quotes."""
    text = text.strip()
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return unescape(text[1:-1])
    return text


def read_attribute(text: str, path: Path, line: int) -> Attribute:
    """What follows ``@attribute``: a name and a type."""
    match = _TOKEN.match(text)
    if match is None:
        problem = (
            "the attribute's name has no closing quote"
            if text[:1] in ("'", '"')
            else ("an attribute without a name")
        )
        raise DataError(problem, path, line)
    name, declared = unquote(match[1]), text[match.end() :].strip()
    if declared.startswith("{"):
        if not declared.endswith("}"):
            raise DataError("the list of values has no closing brace", path, line)
        values = tuple(split_fields(declared[1:-1], path, line))
        if len(set(values)) != len(values):
            twice = Counter(values).most_common(1)[0][0]
            problem = f"attribute {name!r} declares the value {twice[:40]!r} twice"
            raise DataError(problem, path, line)
        return Attribute(name, NOMINAL, values, line)
    word = (declared.lower().split(maxsplit=1) or [""])[0]
    return Attribute(name, _TYPES.get(word, declared.lower()), (), line)


def split_fields(text: str, path: Path, line: int) -> list[str]:
    """Fields between commas, without quotes and escapes."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    fields: list[str] = []
    start = 0
    while True:
        match = _FIELD.match(text, start)
        if match is None:
            raise DataError("a quote is not closed, or stands within a word", path, line)
        fields.append(unescape(match[1][1:-1]) if match[1] else match[2].strip())
        start = match.end()
        if not match[3]:
            return fields


def split_pairs(text: str, width: int, path: Path, line: int) -> list[tuple[int, str]]:
    """Indices and values of a sparse row, what stands between its braces."""
    pairs: list[tuple[int, str]] = []
    previous, start = -1, 0
    while start < len(text) and (start or text.strip()):
        match = _PAIR.match(text, start)
        if match is None:
            shown = text[start : start + 40].strip()
            raise DataError(f"{shown!r} is not of the form index value", path, line)
        index = match[1]
        if len(index) > 12 or int(index) >= width:
            problem = f"attribute index {index[:20]} is out of range, expected 0 to {width - 1}"
            raise DataError(problem, path, line)
        if int(index) <= previous:
            raise DataError(f"attribute index {index} is not in rising order", path, line)
        previous = int(index)
        pairs.append((previous, unescape(match[2][1:-1]) if match[2] else match[3].strip()))
        start = match.end()
    return pairs
