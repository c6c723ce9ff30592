r"""ARFF as Mulan and MEKA use it for multi-label data: dense or sparse rows, labels as attributes.

Which attributes are labels is said by the caller, by the XML file that Mulan puts beside the data
(``<labels><label name="…"/></labels>``), or by MEKA's ``-C`` in the relation's name. A backslash
escapes within quotes, as Weka writes it: ``'Swainson\'s Thrush'``.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from xml.parsers import expat

import numpy as np
from scipy import sparse

from ._errors import DataError, option
from ._frame import Attribute, CellError, Cells, Frame, Notes, Texts, as_texts
from ._numbers import NAN, plain_number
from ._table import DENSE_FROM, MAX_CLASSES, MAX_FEATURES
from ._text import COMPRESSED_SUFFIXES, read_content, read_lines
from .options import ReadOptions

_TYPES = {"numeric": "numeric", "real": "numeric", "integer": "numeric"}
_TYPES |= {"string": "string", "date": "date"}
_QUOTED = r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\""
_TOKEN = re.compile(rf"\s*+({_QUOTED}|[^\s'\"{{][^\s{{]*+)")
_FIELD = re.compile(rf"\s*+(?:({_QUOTED})|((?:[^,'\"\s][^,]*+)?))\s*+(,|\Z)")
_PAIR = re.compile(rf"\s*+(\d++)\s++(?:({_QUOTED})|([^,'\"\s][^,]*+))\s*+(,|\Z)", re.ASCII)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_MEKA = re.compile(r"-C\s++(-?\d{1,9})(?!\d)")
_MISSING = "?"
MAX_XML_BYTES = 16 << 20
MAX_DEPTH = 100
_PART = re.compile(r"(?:[-_](?:train|test)(?:[-_]?sparse)?|[-_]sparse)$", re.IGNORECASE)


class ArffFile:
    """An ARFF file whose declarations have been read.

    Attributes:
        names: declarations, by name, in their order.
        relation: what stands behind ``@relation``.
    """

    word = "attribute"
    header_line, doubt = None, ""

    def __init__(self, path: Path) -> None:
        self.path, self.relation, self.notes = path, "", list[str]()
        self.names: dict[str, Attribute] = {}
        numbered = read_lines(path, self.notes)
        for number, text in _with_content(numbered):
            keyword, rest = (*text.split(maxsplit=1), "")[:2]
            try:
                match keyword.lower():
                    case "@relation":
                        self.relation = rest
                    case "@attribute":
                        attribute = _read_attribute(rest.strip(), number)
                        if attribute.name in self.names:
                            raise ValueError(f"attribute {attribute.name!r} is declared twice")
                        if len(self.names) == MAX_FEATURES:
                            raise ValueError(f"more than {MAX_FEATURES} attributes")
                        self.names[attribute.name] = attribute
                    case "@data":
                        self._body, self._body_line = [line for _, line in numbered], number + 1
                        return
                    case _:
                        expected = "@relation, @attribute or @data"
                        raise ValueError(f"expected {expected}, got {text[:40]!r}")
            except ValueError as error:
                raise DataError(str(error), path, number) from None
        raise DataError("no sample in the file", path)

    def known_as(self, names: Iterable[str]) -> list[str]:
        """Names without the needless escapes of Mulan's XML files."""
        return [one if one in self.names else unescape(one) for one in names]

    def targets(self, targets: Iterable[str] | None) -> list[str]:
        """Names of the labels: as given, by the XML file beside the data, or by MEKA's ``-C``."""
        targets = labels_beside(self.path) if targets is None else targets
        if targets is not None:
            return self.known_as(targets)
        found = _MEKA.findall(self.relation.partition(":")[2])
        count, names = int(found[-1]) if found else 0, list(self.names)
        if count == 0 or abs(count) > len(names):
            problem = "which attributes are labels is not known: put Mulan's XML file with the "
            problem += "label names beside the file, or -C and their number into the relation's"
            advice = "--targets NAMES, or --targets FILE.xml, names them"
            raise DataError(f"{problem} name", self.path, None, advice)
        return names[:count] if count > 0 else names[count:]

    def read(self, names: Collection[str], options: ReadOptions, *_: object) -> Frame:
        """The named attributes; dates are refused."""
        for name in names:
            kind, line = self.names[name].type, self.names[name].line
            if kind not in ("nominal", "numeric", "string"):
                what = "a date" if kind == "date" else f"of the type {kind[:40]!r}"
                problem = f"attribute {name!r} is {what}, expected a number, a nominal one or a"
                advice = f"--ignore {option(name)} leaves it out"
                raise DataError(f"{problem} string", self.path, line, advice)
        missing, attributes = frozenset(options.missing_values), self.names
        lines, cells = self._read(names, missing)
        if missing:
            attributes = {
                name: replace(one, values=tuple(word for word in one.values if word not in missing))
                for name, one in attributes.items()
            }
        return Frame(self.path, options, lines, cells, Notes(self.notes), attributes=attributes)

    def cells(self, names: Sequence[str]) -> dict[str, list[str]]:
        texts = {name: as_texts(one) for name, one in self._read(names)[1].items()}
        words = {name: [*one.values, ""] for name, one in texts.items()}  # the last: missing
        return {name: [words[name][i] for i in one.codes.tolist()] for name, one in texts.items()}

    def _read(
        self, names: Collection[str], missing: frozenset[str] = frozenset()
    ) -> tuple[np.ndarray, dict[str, Cells]]:
        """The line of each row, and columns by name; ``missing`` are words for gaps, besides ``?``.

        Columns of numbers without gaps are sparse if most of the file is zero.
        """
        width = len(self.names)
        indices, texts, ends, numbers = array("q"), list[str](), array("q", [0]), array("q")
        for line, text in _with_content(enumerate(self._body, self._body_line)):
            try:
                positions, fields = _split_row(text, width)
            except ValueError as error:
                raise DataError(str(error), self.path, line) from None
            indices.extend(positions)
            texts.extend(fields)
            ends.append(len(texts))
            numbers.append(line)
        if not numbers:
            raise DataError("no sample in the file", self.path)
        lines, n = np.array(numbers, dtype=np.int64), len(numbers)
        order = sparse.csr_array((np.arange(len(texts)), indices, ends), (n, width)).tocsc()
        by_column = np.array(texts, dtype=object)[order.data]
        position = {name: i for i, name in enumerate(self.names)}
        given, n_given = dict[str, tuple[np.ndarray, np.ndarray, Sequence[str] | None]](), 0
        for name in names:
            own = slice(*order.indptr[position[name] : position[name] + 2])
            rows = order.indices[own]
            try:
                values, words = _values(self.names[name], by_column[own].tolist(), missing)
            except CellError as error:
                raise DataError(str(error), self.path, int(lines[rows[error.row]])) from None
            given[name] = rows, values, words
            n_given += int((values[1:] != values[0]).sum())
        is_sparse = n_given < DENSE_FROM * n * max(len(names), 1)
        cells: dict[str, Cells] = {}
        for name, (rows, values, words) in given.items():
            left_out, values = values[0], values[1:]
            if words is None and is_sparse and not np.isnan(values).any():
                rows, values = rows[values != 0.0], values[values != 0.0]
                cells[name] = sparse.csc_array((values, rows, [0, rows.size]), (n, 1))
                continue
            column = np.full(n, left_out)
            column[rows] = values
            cells[name] = column if words is None else Texts(column, words)
        return lines, cells


def _with_content(numbered: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Lines without the space around them; blank ones and comments are left out."""
    stripped = ((number, line.strip()) for number, line in numbered)
    return (one for one in stripped if one[1] and not one[1].startswith("%"))


def _values(
    attribute: Attribute, texts: Sequence[str], missing: frozenset[str]
) -> tuple[np.ndarray, Sequence[str] | None]:
    """What a sparse row leaves out, and what the texts are: numbers, or positions among words.

    Left out are 0, the first declared word, or a missing string. The words come second. Raises
    :class:`CellError`.
    """
    gaps, left_out, words = {_MISSING} | missing, "0", None
    find: Callable[[str], float | None] = plain_number
    gap, problem = NAN, "is not a number"
    if attribute.type != "numeric":
        if attribute.type == "nominal":
            left_out, words = attribute.values[0], [w for w in attribute.values if w not in gaps]
        else:
            gaps, left_out = gaps | {""}, ""
            words = list(dict.fromkeys(text for text in texts if text not in gaps))
        find, gap = {word: i for i, word in enumerate(words)}.get, -1
        problem = "was not declared"
    values = [gap if text in gaps else find(text) for text in (left_out, *texts)]
    if None in values:
        row = values.index(None) - 1
        what = f"the value of attribute {attribute.name!r} is {texts[row][:40]!r}"
        raise CellError(row, f"{what}, which {problem}")
    return np.array(values), words


def unescape(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 1:
            return _ESCAPED.get(code, code)
        number = int(code[1:], 16)
        return "\ufffd" if 0xD800 <= number < 0xE000 else chr(number)  # half a character

    return _ESCAPE.sub(replaced, text) if "\\" in text else text


def _read_attribute(text: str, line: int) -> Attribute:
    """What follows ``@attribute``, a name and a type; raises ValueError."""
    match = _TOKEN.match(text)
    if match is None:
        if text[:1] in ("'", '"'):
            raise ValueError("the attribute's name has no closing quote")
        raise ValueError("an attribute without a name")
    name, declared = match[1], text[match.end() :].strip()
    name = unescape(name[1:-1]) if name[0] in "'\"" else name
    if not declared.startswith("{"):
        word = (declared.lower().split(maxsplit=1) or [""])[0]
        return Attribute(name, _TYPES.get(word, declared.lower()), (), line)
    if not declared.endswith("}"):
        raise ValueError("the list of values has no closing brace")
    values = tuple(split_fields(declared[1:-1]))
    twice, count = Counter(values).most_common(1)[0]
    if count > 1:
        raise ValueError(f"attribute {name!r} declares the value {twice[:40]!r} twice")
    return Attribute(name, "nominal", values, line)


def _split_row(text: str, width: int) -> tuple[Sequence[int], list[str]]:
    """Positions and fields of a row, dense or sparse; raises ValueError."""
    if text.startswith("{"):
        return split_pairs(text, width)
    fields = split_fields(text)
    if len(fields) != width:
        raise ValueError(f"{len(fields)} values, expected {width}")
    return range(width), fields


def split_fields(text: str) -> list[str]:
    """Fields between commas, without quotes and escapes; raises ValueError."""
    if "'" not in text and '"' not in text:
        return [field.strip() for field in text.split(",")]
    fields: list[str] = []
    start = 0
    while True:
        match = _FIELD.match(text, start)
        if match is None:
            raise ValueError("a quote is not closed, or stands within a word")
        fields.append(unescape(match[1][1:-1]) if match[1] else match[2].strip())
        start = match.end()
        if not match[3]:
            return fields


def split_pairs(text: str, width: int) -> tuple[list[int], list[str]]:
    """Positions and fields of a sparse row; raises ValueError."""
    if not text.endswith("}"):
        raise ValueError("a sparse row has no closing brace")
    positions, fields = list[int](), list[str]()
    inner, previous, start = text[1:-1].strip(), -1, 0
    while start < len(inner):
        match = _PAIR.match(inner, start)
        if match is None:
            shown = inner[start : start + 40].strip()
            raise ValueError(f"{shown!r} is not of the form index value")
        index = int(match[1]) if len(match[1]) <= 12 else width
        if index >= width:
            problem = f"attribute index {match[1][:20]} is out of range, expected 0 to {width - 1}"
            raise ValueError(problem)
        if index <= previous:
            raise ValueError(f"attribute index {index} is not in rising order")
        positions.append(index)
        fields.append(unescape(match[2][1:-1]) if match[2] else match[3].strip())
        previous, start = index, match.end()
    return positions, fields


def read_label_names(xml: Path) -> list[str]:
    """The labels that Mulan's XML file names, in its order, nested ones included.

    A document type, which is where entities come from, is refused.
    """
    content = read_content(xml)
    if len(content) > MAX_XML_BYTES:
        raise DataError(f"larger than {MAX_XML_BYTES >> 20} MiB", xml)
    found, depth = list[str](), 0
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError("declares entities, which no list of labels needs", xml)

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH or len(found) > MAX_CLASSES:
            what = f"{MAX_DEPTH} levels" if depth > MAX_DEPTH else f"{MAX_CLASSES} labels"
            raise DataError(f"more than {what}", xml, parser.CurrentLineNumber)
        if tag.rpartition(":")[2] == "label" and "name" in attributes:
            found.append(attributes["name"])

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"not well-formed XML ({error})", xml, error.lineno) from None
    except DataError:
        raise
    except (LookupError, ValueError) as error:  # of its encoding
        raise DataError(f"not XML that can be read ({error})", xml) from None
    if not found:
        raise DataError("names no label", xml)
    return found


def labels_beside(path: Path) -> list[str] | None:
    """Labels of the XML file beside the data: ``Corel5k.xml`` for ``Corel5k-train-sparse.arff``."""
    stem = path.name
    for suffix in COMPRESSED_SUFFIXES:
        stem = stem.removesuffix(suffix)
    stem = re.sub(r"\.arff$", "", stem, flags=re.IGNORECASE)
    for candidate in (stem, _PART.sub("", stem), *(stem.rpartition(mark)[0] for mark in "-_")):
        xml = path.parent / f"{candidate}.xml"
        if candidate and xml.is_file():
            return read_label_names(xml)
    return None


def expand_targets(
    targets: Sequence[str | Path] | str | Path | None, path: Path
) -> tuple[str, ...] | None:
    """Names of targets; an XML file, as given or beside the data, stands for its labels."""
    if targets is None:
        return None
    names: list[str] = []
    for target in [targets] if isinstance(targets, str | Path) else targets:
        if isinstance(target, Path) or target.lower().endswith(".xml"):
            beside = path.parent / target
            names += read_label_names(beside if beside.is_file() else Path(target))
        else:
            names.append(target)
    return tuple(names)
