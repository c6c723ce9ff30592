"""ARFF as Mulan and MEKA use it for multi-label data: dense or sparse rows, labels as attributes.

Which attributes are labels is said by the caller, by the XML file that Mulan puts beside the data,
or by MEKA's ``-C`` in the relation's name. A single label attribute holds class names.

Nominal attributes are categories, a 0/1 feature for each declared value, for that is what the
declaration says: words, or codes, without an order. Those of no and yes, or of 0 and 1, are one 0/1
feature. Strings are read as the words of CSV files are.
"""

import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from . import _infer
from ._arff_syntax import (
    DATE,
    NOMINAL,
    NUMERIC,
    STRING,
    Attribute,
    read_attribute,
    split_fields,
    split_pairs,
    unescape,
)
from ._encode import check_width, encode_column, is_missing
from ._errors import DataError
from ._infer import Place
from ._mulan import labels_beside
from ._notes import column_notes
from ._numbers import NAN, PLAIN, Unit, no_and_yes, own_numbers, plain_number
from ._sketch import Sketch
from ._table import DENSE_FROM, MAX_FEATURES, Matrix, Table, check_target_cells, listed
from ._targets import Targets, check_names
from ._text import read_lines
from .columns import (
    MAX_CATEGORIES,
    MAX_TEXT,
    Boolean,
    Category,
    Cells,
    Column,
    Columns,
    Ignored,
    Number,
    Ordinal,
    Tally,
    Texts,
    as_texts,
    join_features,
)
from .options import DEFAULT, ReadOptions

_MEKA = re.compile(r":\s*.*-C\s+(-?\d{1,9})(?!\d)")
_EXACT_BELOW = 2.0**53  # whole numbers from here on are not all told apart
_MISSING = "?"


def read_arff(
    path: Path,
    targets: Sequence[str] | None = None,
    columns: Columns | None = None,
    *,
    ignore: Sequence[str] = (),
    plain: bool = False,
    options: ReadOptions = DEFAULT,
) -> Table:
    """Read an ARFF file, line by line.

    Args:
        path: the file, plain or compressed.
        targets: names of the label attributes; without them, the XML file of the same stem or the
            ``-C`` option in the relation's name. An empty list: there are no labels.
        columns: the recipe of the training file, whose columns are read, and no others; by default
            a recipe is learned from all attributes that are not labels or ignored.
        ignore: names of attributes that are not read, whatever their type.
        plain: whether labels are numbers as they are, such as counts.
        options: what is made of missing values, nominal attributes and strings.

    Raises:
        DataError: with the line, for whatever is not in the format.
    """
    place = Place(path, options)
    notes: list[str] = []

    def layout_of(attributes: list[Attribute], relation: str) -> _Layout:
        return _layout(attributes, relation, targets, columns, ignore, place)

    layout, values = _read(path, notes, layout_of)
    check_target_cells(values.n_read, len(layout.labels), path)
    labels = _labels(values, layout, place, plain=plain, of_training=columns is None)
    return _table(values, layout, labels, columns, notes, place, plain=plain)


def read_arff_cells(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Attributes as words, by name; a missing value is empty."""

    def layout(attributes: list[Attribute], _: str) -> _Layout:
        position = _positions(attributes, path)
        _check_known(names, position, path)
        return _Layout((), tuple(position[name] for name in names))

    chosen, values = _read(path, [], layout)
    found = {}
    for i in chosen.features:
        cells = values.cells(i)
        texts = as_texts(cells)
        words = [*texts.values, ""]  # the last: missing
        found[values.attributes[i].name] = [words[code] for code in texts.codes.tolist()]
    return found


def _read(
    path: Path, notes: list[str], layout_of: Callable[[list[Attribute], str], "_Layout"]
) -> tuple["_Layout", "_Values"]:
    """The values of a file; what is read is decided once attributes and relation are known."""
    attributes: list[Attribute] = []
    relation = ""
    rows: _Rows | None = None
    for number, line in read_lines(path, notes):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if rows is not None:
            rows.add(text, number)
            continue
        keyword, rest = (*text.split(maxsplit=1), "")[:2]
        match keyword.lower():
            case "@relation":
                relation = rest
            case "@attribute":
                attributes.append(read_attribute(rest.strip(), path, number))
                if len(attributes) > MAX_FEATURES:
                    raise DataError(f"more than {MAX_FEATURES} attributes", path, number)
            case "@data":
                layout = layout_of(attributes, relation)
                rows = _Rows(attributes, layout, path)
            case _:
                problem = f"expected @relation, @attribute or @data, got {text[:40]!r}"
                raise DataError(problem, path, number)
    if rows is None or not rows.lines:
        raise DataError("no sample in the file", path)
    return layout, _Values(attributes, rows)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Positions of the labels, and of the attributes that features are made of."""

    labels: tuple[int, ...]
    features: tuple[int, ...]


def _layout(
    attributes: list[Attribute],
    relation: str,
    targets: Sequence[str] | None,
    columns: Columns | None,
    ignore: Sequence[str],
    place: Place,
) -> _Layout:
    path, options = place.path, place.options
    position = _positions(attributes, path)
    targets = labels_beside(path) if targets is None else targets
    if targets is not None:  # Mulan's XML files may escape what they need not
        targets = [one if one in position else unescape(one) for one in targets]
    check_names(targets or (), ignore, path)
    features = None if columns is None else [column.name for column in columns.used]
    _check_known((*(targets or ()), *(features or (*ignore, *options.named))), position, path)
    if targets is None:
        labels = _meka_labels(relation, len(attributes), path)
    else:
        labels = [position[name] for name in targets]
    if features is None:
        left_out = {*labels, *(position[name] for name in ignore)}
        chosen = [i for i in range(len(attributes)) if i not in left_out]
    else:
        chosen = [position[name] for name in features]
    if not chosen:
        raise DataError("every attribute is a label or ignored; there is no feature", path)
    for i in sorted({*labels, *chosen}):
        attribute = attributes[i]
        is_ignored = options.kind_of(attribute.name) == "ignored"
        if attribute.type not in (NOMINAL, NUMERIC, STRING) and not is_ignored:
            shown = "a date" if attribute.type == DATE else f"of the type {attribute.type[:40]!r}"
            problem = f"attribute {attribute.name!r} is {shown}, expected a number, a nominal one "
            advice = f"--ignore {_infer.option(attribute.name)} leaves it out"
            raise DataError(f"{problem}or a string", path, attribute.line, advice)
    return _Layout(tuple(labels), tuple(chosen))


def _positions(attributes: list[Attribute], path: Path) -> dict[str, int]:
    """Name → position; no name occurs twice."""
    position: dict[str, int] = {}
    for i, attribute in enumerate(attributes):
        if attribute.name in position:
            raise DataError(f"attribute {attribute.name!r} is declared twice", path, attribute.line)
        position[attribute.name] = i
    return position


def _check_known(names: Sequence[str], position: Mapping[str, int], path: Path) -> None:
    for name in names:
        if name not in position:
            problem = f"no attribute is called {name!r}; the attributes are {listed(position)}"
            raise DataError(problem, path)


def _meka_labels(relation: str, width: int, path: Path) -> list[int]:
    """The first, or the last, so many attributes."""
    match = _MEKA.search(relation)
    count = int(match.group(1)) if match else 0
    if count == 0 or abs(count) > width:
        raise DataError(
            "which attributes are labels is not known: put Mulan's XML file with the label names "
            "beside the file, or -C and their number into the relation's name",
            path,
            None,
            "--targets NAMES, or --targets FILE.xml, names them",
        )
    return list(range(count) if count > 0 else range(width + count, width))


class _Rows:
    """Entries of the rows that are not zero: numbers, positions of nominal values from 0, and of
    strings from 1; so that what a sparse row leaves out is 0, or the first declared value. A
    missing value is NaN.
    """

    def __init__(self, attributes: list[Attribute], layout: _Layout, path: Path) -> None:
        self._attributes = attributes
        self._path = path
        self._used = frozenset((*layout.labels, *layout.features))
        self._positions = {
            i: {value: float(j) for j, value in enumerate(attributes[i].values)}
            for i in self._used
            if attributes[i].type == NOMINAL
        }
        self.strings: dict[int, dict[str, float]] = {
            i: {} for i in self._used if attributes[i].type not in (NOMINAL, NUMERIC)
        }
        self.indices, self.values, self.starts = array("q"), array("d"), array("q", [0])
        self.lines = array("q")

    def add(self, text: str, line: int) -> None:
        width = len(self._attributes)
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
            if index in self._used:
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
            problem = f"the value of attribute {self._attributes[index].name!r} is {field[:40]!r}"
            raise DataError(f"{problem}, which {kind}", self._path, line) from None
        if field in ("", _MISSING):
            return NAN
        words = self.strings[index]
        return words.setdefault(field, 1.0 + len(words))


class _Values:
    """What the rows hold, by attribute."""

    def __init__(self, attributes: list[Attribute], rows: _Rows) -> None:
        self.attributes = attributes
        self.lines = np.array(rows.lines, dtype=np.int64)
        self.n_read = self.lines.size
        self._strings = rows.strings
        whole = sparse.csr_array(
            (
                np.array(rows.values, dtype=np.float64),
                np.array(rows.indices, dtype=np.int64),
                np.array(rows.starts, dtype=np.int64),
            ),
            (self.lines.size, len(attributes)),
        )
        self.columns = whole.tocsc()
        self._find_missing()

    def _find_missing(self) -> None:
        positions = np.flatnonzero(np.isnan(self.columns.data))
        columns = np.searchsorted(self.columns.indptr, positions, side="right") - 1
        self._with_missing = frozenset(columns.tolist())

    def keep(self, rows: np.ndarray) -> None:
        """Leave the other rows out."""
        self.lines = self.lines[rows]
        self.columns = self.columns.tocsr()[np.flatnonzero(rows)].tocsc()
        self._find_missing()

    def cells(self, i: int) -> Cells:
        """The cells of one attribute."""
        column = self.columns[:, [i]].toarray()[:, 0]
        if self.attributes[i].type == NUMERIC:
            return np.asarray(column)
        if i in self._strings:
            codes = np.nan_to_num(column, nan=0.0) - 1
            return Texts(codes.astype(np.int64), list(self._strings[i]))
        codes = np.nan_to_num(column, nan=-1.0)
        return Texts(codes.astype(np.int64), self.attributes[i].values)

    def has_missing(self, i: int) -> bool:
        # a string that a sparse row leaves out is missing, too
        is_left_out = i in self._strings and self.entries(i).size < self.lines.size
        return is_left_out or i in self._with_missing

    def entries(self, i: int) -> np.ndarray:
        """The entries of an attribute that are not zero."""
        return np.asarray(self.columns.data[self.columns.indptr[i] : self.columns.indptr[i + 1]])

    def median(self, i: int) -> float:
        """Of a numeric attribute with a value; zeros count."""
        entries = self.entries(i)
        present = entries[~np.isnan(entries)]
        n = self.lines.size - (entries.size - present.size)
        if 2 * max((present < 0).sum(), (present > 0).sum()) < n:
            return 0.0
        return float(np.median(np.concatenate([present, np.zeros(n - present.size)])))


def _labels(
    values: _Values, layout: _Layout, place: Place, *, plain: bool, of_training: bool
) -> Targets:
    """Cells of the label attributes; rows without are left out where that is asked for."""
    path, options = place.path, place.options
    if layout.labels and options.missing == "drop":
        keep = ~np.any([is_missing(values.cells(i)) for i in layout.labels], axis=0)
        if not keep.any():
            raise DataError("every row has a missing label", path)
        values.keep(keep)
    attributes = [values.attributes[i] for i in layout.labels]
    names = tuple(attribute.name for attribute in attributes)
    cells = [values.cells(i) for i in layout.labels]
    missing = [(is_missing(one), name) for one, name in zip(cells, names, strict=True)]
    first = [(int(one.argmax()), name) for one, name in missing if one.any()]
    if first:
        row, name = min(first)
        problem = f"the value of attribute {name!r} is missing, which is a label"
        advice = "--missing drop leaves such rows out"
        raise DataError(problem, path, int(values.lines[row]), advice)
    if len(names) == 1 and not plain:
        (texts,) = cells
        if isinstance(texts, np.ndarray):
            large = np.abs(texts) >= _EXACT_BELOW
            if large.any():
                row = int(large.argmax())
                problem = f"class {texts[row]:.17g} of {names[0]!r} is too large a number"
                problem += "; declare the values in braces"
                raise DataError(problem, path, int(values.lines[row]))
            texts = as_texts(texts)
        kind = options.kind_of(names[0])
        separator = _infer.tag_separator(list(texts.values), kind)
        are_classes = attributes[0].type == NOMINAL or not of_training
        return Targets(names, texts, separator, are_classes)
    numbers = [
        _label(one, attribute, path) for one, attribute in zip(cells, attributes, strict=True)
    ]
    Y = np.column_stack(numbers) if numbers else np.zeros((values.lines.size, 0))
    return Targets(names, Y)


def _label(cells: Cells, attribute: Attribute, path: Path) -> np.ndarray:
    """0 and 1, proportions, or plain numbers."""
    if isinstance(cells, np.ndarray):
        return cells
    known = no_and_yes(cells.values) or own_numbers(cells.values)
    if known is None or (attribute.type == NOMINAL and not set(known.values()) <= {0.0, 1.0}):
        problem = f"label {attribute.name!r} has other values than 0 and 1, or no and yes"
        raise DataError(problem, path, attribute.line)
    return cells.numbers(known.get, "")


def _table(
    values: _Values,
    layout: _Layout,
    labels: Targets,
    columns: Columns | None,
    notes: list[str],
    place: Place,
    *,
    plain: bool,
) -> Table:
    path, options = place.path, place.options
    n = values.lines.size
    of_training = columns is None
    if columns is None:
        learned = [_learn(values, i, place) for i in layout.features]
        if options.missing == "drop":
            used = [
                i
                for i, one in zip(layout.features, learned, strict=True)
                if not isinstance(one, Ignored) and one.can_be_missing and values.has_missing(i)
            ]
            keep = np.ones(n, dtype=bool)
            for i in used:
                keep &= ~is_missing(values.cells(i))
            if not keep.any():
                raise DataError("every row has a missing value", path)
            if not keep.all():
                labels = labels[keep]
                values.keep(keep)
                learned = [_learn(values, i, place) for i in layout.features]
        columns = Columns(tuple(learned), missing_values=tuple(options.missing_values))
        sources = {values.attributes[i].name: i for i in layout.features}
    else:
        sources = {values.attributes[i].name: i for i in layout.features}
        for column in columns.used:
            _check_type(column, values.attributes[sources[column.name]], path)
    check_width(columns, path)
    X, tally = _features(columns, values, sources, path)
    Y, kind, target_names, target_notes = labels.read(values.lines, path, plain=plain)
    Y = Y.astype(np.uint8) if kind == "indicators" else Y
    every_note = (*notes, *column_notes(columns, tally, of_training=of_training), *target_notes)
    if values.lines.size < values.n_read:
        left_out = values.n_read - values.lines.size
        note = f"left out: {left_out} of {values.n_read} rows, with missing values"
        every_note = (note, *every_note)
    names = columns.feature_names
    return Table(X, Y, kind, names, target_names, every_note, columns, values.lines)


def _learn(values: _Values, i: int, place: Place) -> Column:
    """The recipe of an attribute."""
    attribute, options = values.attributes[i], place.options
    name, forced = attribute.name, options.kind_of(attribute.name)
    if forced == "ignored":
        return Ignored(name, "as told")
    missing = values.has_missing(i)
    if missing and options.missing == "error" and forced != "tags":
        row = int(is_missing(values.cells(i)).argmax())
        problem = f"the value of attribute {name!r} is missing"
        advice = "--missing drop leaves such rows out, --missing impute replaces the values"
        raise DataError(problem, place.path, int(values.lines[row]), advice)
    allows = options.missing != "error"
    if attribute.type == NUMERIC and forced in (None, "number"):
        if missing or _infer.may_be_id(name):
            numbers = values.cells(i)
            assert isinstance(numbers, np.ndarray)
            return _infer.learn_number(name, numbers, options, PLAIN, Unit())
        return Number(name, values.median(i) if allows else None)
    cells = values.cells(i)
    texts = as_texts(cells)
    if attribute.type == NOMINAL and forced in (None, "number", "category"):
        return _nominal(attribute, texts, place, marks=missing and options.missing == "impute")
    sketch = Sketch("text", frozenset({""}))
    sketch.add(
        [texts.values[code] if code >= 0 else "" for code in texts.codes.tolist()],
        values.lines.tolist(),
        underscores=True,
    )
    held = sketch.texts if sketch.is_complete else None
    is_code = own_numbers(texts.values) is not None  # declared as strings, so they are no numbers
    return _infer.learn_texts(name, sketch, held, place, is_code=is_code)


def _nominal(attribute: Attribute, texts: Texts, place: Place, *, marks: bool) -> Column:
    """A nominal attribute: a number where it is 0 and 1, or where that is asked for."""
    name, values, options = attribute.name, attribute.values, place.options
    forced = options.kind_of(name)
    allows = options.missing != "error"
    if len(values) > MAX_CATEGORIES or any(len(value) > MAX_TEXT for value in values):
        problem = f"attribute {name!r} declares more than {MAX_CATEGORIES} values, or one of more "
        raise DataError(f"{problem}than {MAX_TEXT} characters", place.path, attribute.line)
    answers, numbers = no_and_yes(values), own_numbers(values)
    column: Number | Boolean | Ordinal
    if forced == "category":
        return Category(name, values, marks, allows)
    if answers is not None:
        column = Boolean(name)
    elif numbers is not None and (forced == "number" or set(numbers.values()) <= {0.0, 1.0}):
        column = Number(name)
    elif options.nominal == "positions":
        column = Ordinal(name, values=values)
    elif forced == "number":
        problem = f"attribute {name!r} has the values {listed(values)}, which are no numbers"
        raise DataError(problem, place.path, attribute.line)
    elif options.categories == "error":
        problem = f"attribute {name!r} has the values {listed(values)}, which are no numbers"
        advice = f"--categories encode makes features of them, --ignore {_infer.option(name)} "
        raise DataError(problem, place.path, attribute.line, f"{advice}leaves it out")
    else:
        return Category(name, values, marks, allows)
    present = texts.codes >= 0
    if not present.any():
        return Ignored(name, "no row has a value")
    fill = float(np.median(column.encode(texts[present], Tally())[:, 0])) if allows else None
    return replace(column, fill=fill, marks_missing=marks)


def _check_type(column: Column, attribute: Attribute, path: Path) -> None:
    """Raise where no value of an attribute can be one of the training file's."""
    if isinstance(column, Category | Ordinal) and attribute.type == NUMERIC:
        if not any(map(PLAIN.matches, column.values)):
            problem = f"attribute {attribute.name!r} is numeric; in the training file its values"
            raise DataError(f"{problem} are {listed(column.values)}", path, attribute.line)
    elif (
        isinstance(column, Number)
        and attribute.type == NOMINAL
        and own_numbers(attribute.values) is None
    ):
        problem = f"attribute {attribute.name!r} has the values {listed(attribute.values)}"
        raise DataError(f"{problem}; in the training file it is a number", path, attribute.line)


def _features(
    columns: Columns, values: _Values, sources: dict[str, int], path: Path
) -> tuple[Matrix, Tally]:
    """All features: neighboring columns of plain numbers stay together, and sparse."""
    tally = Tally()
    blocks: list[Matrix] = []
    run: list[int] = []

    def flush() -> None:
        if run:
            blocks.append(values.columns[:, run])
            run.clear()

    for column in columns.used:
        i = sources[column.name]
        is_number = isinstance(column, Number) and values.attributes[i].type == NUMERIC
        if is_number and column.is_plain and not values.has_missing(i):
            run.append(i)
        else:
            flush()
            blocks.append(encode_column(column, values.cells(i), tally, values.lines, path))
    flush()
    if len(blocks) == 1 and sparse.issparse(blocks[0]):
        X = blocks[0].tocsr()
        cells = X.shape[0] * X.shape[1]
        return (X.toarray() if X.nnz >= DENSE_FROM * cells else X), tally
    return join_features(blocks, values.lines.size), tally
