"""ARFF as Mulan and MEKA use it for multi-label data: dense or sparse rows, labels as attributes.

Which attributes are labels is said by the caller, by the XML file that Mulan puts beside the data,
or by MEKA's ``-C`` in the relation's name. Nominal attributes become numbers: their own where all
values are numbers, else their position in the declaration.
"""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from ._errors import DataError
from ._table import MAX_FEATURES, Table, compact
from ._text import read_lines

_NUMERIC = {"numeric", "real", "integer"}
_MAX_XML_BYTES = 16 << 20
_MEKA = re.compile(r":\s*.*-C\s+(-?\d+)")


@dataclass(frozen=True)
class _Attribute:
    name: str
    codes: dict[str, float] | None  # nominal: value → number; None: numeric

    def number(self, text: str) -> float:
        if self.codes is not None:
            return self.codes[text]
        value = float(text)
        if not np.isfinite(value):
            raise ValueError
        return value


def read_arff(path: Path, targets: Sequence[str] | None = None) -> Table:
    """Read one file, line by line.

    Args:
        path: the file, plain or compressed.
        targets: names of the label attributes; without them, the XML file of the same stem or the
            ``-C`` option in the relation's name. An empty list: there are no labels.

    Raises:
        DataError: with the line, for whatever is not in the format.
    """
    attributes: list[_Attribute] = []
    relation = ""
    in_data = False
    indices, values, starts = array("q"), array("d"), array("q", [0])
    first_row = 0
    for number, line in read_lines(path):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if in_data:
            first_row = first_row or number
            _row(text, attributes, indices, values, path, number)
            starts.append(len(indices))
            continue
        keyword, _, rest = text.partition(" ")
        match keyword.lower():
            case "@relation":
                relation = rest.strip().strip("'\"")
            case "@attribute":
                attributes.append(_attribute(rest.strip(), path, number))
                if len(attributes) > MAX_FEATURES:
                    raise DataError(f"more than {MAX_FEATURES} attributes", path, number)
            case "@data":
                in_data = True
            case _:
                problem = f"expected @relation, @attribute or @data, got {text[:40]!r}"
                raise DataError(problem, path, number)
    if not in_data or len(starts) == 1:
        raise DataError("no sample in the file", path)
    names = [attribute.name for attribute in attributes]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"attribute {twice!r} is declared twice", path)
    labels = _label_columns(names, relation, targets, path)
    whole = sparse.csr_array(
        (
            np.frombuffer(values, dtype=np.float64).copy() if values else np.zeros(0),
            np.frombuffer(indices, dtype=np.int64) if indices else np.zeros(0, np.int64),
            np.frombuffer(starts, dtype=np.int64),
        ),
        (len(starts) - 1, len(attributes)),
    )
    features = np.setdiff1d(np.arange(len(names)), labels)
    if features.size == 0:
        raise DataError("every attribute is a label; there is no feature", path)
    columns = whole.tocsc()
    Y = columns[:, labels].toarray()
    if not np.isin(Y, (0, 1)).all():
        row, column = (int(i[0]) for i in np.nonzero(~np.isin(Y, (0, 1))))
        raise DataError(
            f"label {names[labels[column]]!r} of sample {row + 1} is {Y[row, column]:g}, "
            "expected 0 or 1",
            path,
        )
    return Table(
        X=compact(columns[:, features].tocsr()),
        Y=Y.astype(np.uint8),
        kind="indicators",
        feature_names=tuple(names[i] for i in features),
        target_names=tuple(names[i] for i in labels),
    )


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
        nominal = _fields(kind[1:-1], path, number)
        try:
            codes = {value: float(value) for value in nominal}
        except ValueError:
            codes = {value: float(position) for position, value in enumerate(nominal)}
        return _Attribute(name, codes)
    if kind.lower() not in _NUMERIC:
        problem = f"attribute {name!r} has the type {kind[:40]!r}, expected numeric or nominal"
        raise DataError(problem, path, number)
    return _Attribute(name, None)


def _row(
    text: str,
    attributes: list[_Attribute],
    indices: "array[int]",
    values: "array[float]",
    path: Path,
    number: int,
) -> None:
    """Append the row's non-zero entries."""
    if text.startswith("{"):
        if not text.endswith("}"):
            raise DataError("a sparse row has no closing brace", path, number)
        pairs = _sparse_pairs(text[1:-1], len(attributes), path, number)
    else:
        fields = _fields(text, path, number)
        if len(fields) != len(attributes):
            problem = f"{len(fields)} values, expected {len(attributes)}"
            raise DataError(problem, path, number)
        pairs = list(enumerate(fields))
    for index, field in pairs:
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


def _label_columns(
    names: list[str], relation: str, targets: Sequence[str] | None, path: Path
) -> np.ndarray:
    if targets is None:
        targets = _xml_labels(path)
    if targets is not None:
        unknown = [name for name in targets if name not in names]
        if unknown:
            raise DataError(f"no attribute is called {unknown[0]!r}", path)
        position = {name: i for i, name in enumerate(names)}
        return np.asarray([position[name] for name in targets], dtype=np.int64)
    match = _MEKA.search(relation)
    count = int(match.group(1)) if match else 0
    if count == 0 or abs(count) > len(names):
        raise DataError(
            "which attributes are labels is not known: name them, put the XML file with the label "
            "names beside the file, or give -C in the relation's name",
            path,
        )
    return np.arange(count) if count > 0 else np.arange(len(names) + count, len(names))


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
