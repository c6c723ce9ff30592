"""ARFF as Mulan and MEKA use it for multi-label data: dense or sparse rows, labels as attributes.

Which attributes are labels is said by the caller, by the XML file that Mulan puts beside the data,
or by MEKA's ``-C`` in the relation's name. Nominal attributes become numbers: their own where all
values are numbers, 0 and 1 where they are no and yes or false and true, in either order, else their
position in the declaration. A single label attribute holds class names. A file that is read against
another one, such as a test file, has the numbers of that one's declarations.
"""

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from ._errors import DataError
from ._table import IGNORE, MAX_FEATURES, Codes, Table, check_target_cells, compact, listed
from ._targets import check_names, read_classes, read_targets
from ._targets import number as parse_number
from ._text import read_lines

_NOMINAL = "nominal"
_TYPES = (_NOMINAL, "numeric", "real", "integer")
_MAX_XML_BYTES = 16 << 20
_MEKA = re.compile(r":\s*.*-C\s+(-?\d+)")
_EXACT_BELOW = 2.0**53  # whole numbers from here on are not all told apart
_NO_YES = (("0", "1"), ("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"))


@dataclass(frozen=True)
class _Attribute:
    name: str
    kind: str
    codes: dict[str, float] | None  # nominal: value → number
    line: int

    @property
    def is_binary(self) -> bool:
        """Whether it can be an indicator, or hold proportions."""
        return self.codes is None or _by_meaning(list(self.codes)) is not None

    @property
    def is_coded(self) -> bool:
        """Whether its values are not the numbers that stand for them."""
        return self.codes is not None and self.codes != _own_numbers(self.codes)

    @property
    def default(self) -> float:
        """What an entry that a sparse row leaves out stands for."""
        return 0.0 if self.codes is None else next(iter(self.codes.values()), 0.0)

    def texts(self, values: np.ndarray) -> list[str]:
        """Values as they stand in the file, numbers in their shortest form."""
        if self.codes is None:
            return [repr(value).removesuffix(".0") for value in values.tolist()]
        text = {code: text for text, code in self.codes.items()}
        return [text[code] for code in values.tolist()]

    def number(self, text: str) -> float:
        if self.codes is not None:
            return self.codes[text]
        value = parse_number(text)
        if not np.isfinite(value):
            raise ValueError
        return value


def _codes(values: list[str]) -> dict[str, float]:
    """A number for each value, no two the same."""
    positions = {value: float(position) for position, value in enumerate(values)}
    return _by_meaning(values) or _own_numbers(values) or positions


def _own_numbers(values: Iterable[str]) -> dict[str, float] | None:
    """The numbers that the values are, if all are, finite and different."""
    try:
        numbers = {value: parse_number(value) for value in values}
    except ValueError:
        return None
    distinct = len(set(numbers.values())) == len(numbers)
    return numbers if distinct and np.isfinite(list(numbers.values())).all() else None


def _by_meaning(values: list[str]) -> dict[str, float] | None:
    """0 for no and 1 for yes, if that is what two values say."""
    for no, yes in _NO_YES:
        if sorted(value.lower() for value in values) == [no, yes]:
            return {value: float(value.lower() == yes) for value in values}
    return None


def read_arff(
    path: Path,
    targets: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    codes: Codes | None = None,
    ignore: Sequence[str] = (),
    plain: bool = False,
) -> Table:
    """Read one file, line by line.

    Args:
        path: the file, plain or compressed.
        targets: names of the label attributes; without them, the XML file of the same stem or the
            ``-C`` option in the relation's name. An empty list: there are no labels.
        features: names of the features; by default all that are not labels or ignored.
        codes: the numbers of the features' values, as in the table of another file; by default
            as this file declares them.
        ignore: names of attributes that are not read, whatever their type.
        plain: whether labels are numbers as they are, such as counts.

    Raises:
        DataError: with the line, for whatever is not in the format.
    """
    attributes: list[_Attribute] = []
    relation = ""
    layout: _Layout | None = None
    indices, values, starts = array("q"), array("d"), array("q", [0])
    numbers = array("q")
    for number, line in read_lines(path):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if layout is not None:
            _row(text, layout, indices, values, path, number)
            starts.append(len(indices))
            numbers.append(number)
            continue
        keyword, rest = (*text.split(maxsplit=1), "")[:2]
        match keyword.lower():
            case "@relation":
                relation = rest.strip().strip("'\"")
            case "@attribute":
                attributes.append(_attribute(rest.strip(), path, number))
                if len(attributes) > MAX_FEATURES:
                    raise DataError(f"more than {MAX_FEATURES} attributes", path, number)
            case "@data":
                layout = _layout(attributes, relation, targets, features, codes, ignore, path)
            case _:
                problem = f"expected @relation, @attribute or @data, got {text[:40]!r}"
                raise DataError(problem, path, number)
    if layout is None or not numbers:
        raise DataError("no sample in the file", path)
    whole = sparse.csr_array(
        (
            np.frombuffer(values, dtype=np.float64).copy() if values else np.zeros(0),
            np.frombuffer(indices, dtype=np.int64) if indices else np.zeros(0, np.int64),
            np.frombuffer(starts, dtype=np.int64),
        ),
        (len(numbers), len(attributes)),
    )
    whole.sort_indices()
    columns = whole.tocsc()
    X = compact(columns[:, layout.features].tocsr())
    read = [layout.attributes[i] for i in layout.features]
    feature_names = tuple(feature.name for feature in read)
    coded = {feature.name: feature.codes for feature in read if feature.is_coded}
    check_target_cells(len(numbers), len(layout.labels), path)
    Y = columns[:, layout.labels].toarray()
    labels = [attributes[i] for i in layout.labels]
    if len(labels) == 1 and not plain:
        inexact = np.flatnonzero(np.abs(Y[:, 0]) >= _EXACT_BELOW)
        if labels[0].codes is None and inexact.size:
            problem = f"class {Y[inexact[0], 0]:.17g} of {labels[0].name!r} is too large a number"
            raise DataError(f"{problem}; declare the values in braces", path, numbers[inexact[0]])
        Y, classes = read_classes(labels[0].texts(Y[:, 0]), numbers, labels[0].name, path)
        return Table(X, Y, "labels", feature_names, tuple(classes), codes=coded)
    for label in labels:
        if not label.is_binary:
            problem = f"label {label.name!r} has other values than 0 and 1, or no and yes"
            raise DataError(problem, path, label.line)
    Y, kind, notes = read_targets(Y, numbers, path, plain=plain)
    Y = Y.astype(np.uint8) if kind == "indicators" else Y
    return Table(X, Y, kind, feature_names, tuple(label.name for label in labels), notes, coded)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Positions of the labels and of the features, and what a sparse row leaves unsaid."""

    attributes: tuple[_Attribute, ...]
    labels: np.ndarray
    features: np.ndarray
    used: frozenset[int]
    defaults: tuple[tuple[int, float], ...]


def _layout(
    attributes: list[_Attribute],
    relation: str,
    targets: Sequence[str] | None,
    features: Sequence[str] | None,
    codes: Codes | None,
    ignore: Sequence[str],
    path: Path,
) -> _Layout:
    position: dict[str, int] = {}
    for i, attribute in enumerate(attributes):
        if attribute.name in position:
            raise DataError(f"attribute {attribute.name!r} is declared twice", path, attribute.line)
        position[attribute.name] = i
    targets = _xml_labels(path) if targets is None else targets
    check_names(targets or (), ignore, path)
    for name in (*(targets or ()), *(features or ()), *ignore):
        if name not in position:
            problem = f"no attribute is called {name!r}; the attributes are {listed(position)}"
            raise DataError(problem, path)
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
    used = frozenset([*labels, *chosen])
    for i in sorted(used):
        if attributes[i].kind not in _TYPES:
            attribute = attributes[i]
            problem = f"attribute {attribute.name!r} has the type {attribute.kind[:40]!r}, expected"
            raise DataError(f"{problem} numeric or nominal{IGNORE}", path, attribute.line)
    if codes is not None:
        attributes = attributes.copy()
        for i in chosen:
            attributes[i] = _recoded(attributes[i], codes.get(attributes[i].name), path)
    return _Layout(
        attributes=tuple(attributes),
        labels=np.asarray(labels, np.int64),
        features=np.asarray(chosen, np.int64),
        used=used,
        defaults=tuple((i, attributes[i].default) for i in sorted(used) if attributes[i].default),
    )


def _recoded(attribute: _Attribute, codes: Mapping[str, float] | None, path: Path) -> _Attribute:
    """The attribute with the numbers that its values have in the training file."""
    own = attribute.codes
    if codes is None:
        if not attribute.is_coded:
            return attribute
        problem = f"has the values {listed(own or ())}; in the training file it is a number"
    elif own is None:
        problem = f"is {attribute.kind}; in the training file its values are {listed(codes)}"
    else:
        foreign = [value for value in own if value not in codes]
        if not foreign:
            return replace(attribute, codes={value: codes[value] for value in own})
        problem = f"has the value {foreign[0][:40]!r}, which is none of those of the training file"
        problem += f": {listed(codes)}"
    raise DataError(f"attribute {attribute.name!r} {problem}", path, attribute.line)


def _attribute(rest: str, path: Path, number: int) -> _Attribute:
    if rest[:1] in ("'", '"'):
        end = rest.find(rest[0], 1)
        if end < 0:
            raise DataError("the attribute's name has no closing quote", path, number)
        name, kind = rest[1:end], rest[end + 1 :].strip()
    else:
        name, _, kind = rest.replace("\t", " ").partition(" ")
        kind = kind.strip()
    if kind.startswith("{") and kind.endswith("}"):
        return _Attribute(name, _NOMINAL, _codes(_fields(kind[1:-1], path, number)), number)
    return _Attribute(name, kind.lower(), None, number)


def _row(
    text: str,
    layout: _Layout,
    indices: "array[int]",
    values: "array[float]",
    path: Path,
    number: int,
) -> None:
    """Append the row's non-zero entries."""
    attributes = layout.attributes
    if text.startswith("{"):
        if not text.endswith("}"):
            raise DataError("a sparse row has no closing brace", path, number)
        pairs = _sparse_pairs(text[1:-1], len(attributes), path, number)
        given = {index for index, _ in pairs}
        for index, value in layout.defaults:
            if index not in given:
                indices.append(index)
                values.append(value)
    else:
        fields = _fields(text, path, number)
        if len(fields) != len(attributes):
            problem = f"{len(fields)} values, expected {len(attributes)}"
            raise DataError(problem, path, number)
        pairs = list(enumerate(fields))
    for index, field in pairs:
        if index not in layout.used:
            continue
        try:
            value = attributes[index].number(field)
        except (KeyError, ValueError):
            what = "is missing" if field == "?" else f"is {field[:40]!r}, which was not declared"
            problem = f"the value of attribute {attributes[index].name!r} {what}"
            raise DataError(problem, path, number) from None
        if value != 0.0:
            indices.append(index)
            values.append(value)


def _sparse_pairs(body: str, width: int, path: Path, number: int) -> list[tuple[int, str]]:
    pairs: list[tuple[int, str]] = []
    previous = -1
    for field in _fields(body, path, number) if body.strip() else []:
        index, _, value = field.partition(" ")
        if not (index.isascii() and index.isdigit() and value.strip()):
            raise DataError(f"{field[:40]!r} is not of the form index value", path, number)
        if len(index) > 12 or int(index) >= width:
            problem = f"attribute index {index[:20]} is out of range, expected 0 to {width - 1}"
            raise DataError(problem, path, number)
        if int(index) <= previous:
            raise DataError(f"attribute index {index} is not in rising order", path, number)
        previous = int(index)
        pairs.append((previous, value.strip().strip("'\"")))
    return pairs


def _fields(text: str, path: Path, number: int) -> list[str]:
    """Split at commas outside quotes, without the quotes."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    fields, current, quote = [], "", ""
    escaped = False
    for character in text:
        if escaped:
            current, escaped = current + character, False
        elif character == "\\":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
            current += "" if not quote else character
        elif character in "'\"":
            quote = character
        elif character == ",":
            fields.append(current.strip())
            current = ""
        else:
            current += character
    if quote:
        raise DataError("a quote is not closed", path, number)
    return [*fields, current.strip()]


def _meka_labels(relation: str, width: int, path: Path) -> list[int]:
    """The first, or the last, so many attributes."""
    match = _MEKA.search(relation)
    count = int(match.group(1)) if match else 0
    if count == 0 or abs(count) > width:
        raise DataError(
            "which attributes are labels is not known: name them (--targets), put the XML file "
            "with the label names beside the file, or give -C in the relation's name",
            path,
        )
    return list(range(count) if count > 0 else range(width + count, width))


def _xml_labels(path: Path) -> list[str] | None:
    """Label names from Mulan's XML file: ``emotions.xml`` beside ``emotions-train.arff``."""
    stem = path.name.split(".")[0]
    for candidate in (stem, stem.rpartition("-")[0], stem.rpartition("_")[0]):
        xml = path.parent / f"{candidate}.xml"
        if candidate and xml.is_file():
            break
    else:
        return None
    if xml.stat().st_size > _MAX_XML_BYTES:
        raise DataError(f"larger than {_MAX_XML_BYTES >> 20} MiB", xml)
    content = xml.read_bytes()
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise DataError("declares entities, which no list of labels needs", xml)
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise DataError(f"not well-formed XML ({error})", xml, error.position[0]) from None
    found = [
        tag.attrib["name"]
        for tag in root.iter()
        if tag.tag.endswith("label") and "name" in tag.attrib
    ]
    if not found:
        raise DataError("names no label", xml)
    return found
