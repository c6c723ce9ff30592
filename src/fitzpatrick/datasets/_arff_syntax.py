r"""The syntax of ARFF: attributes, quotes, escapes, and the fields of dense and sparse rows.

Within quotes a backslash escapes, as Weka writes it: ``'Swainson\'s Thrush'``.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from ._errors import DataError

NOMINAL, NUMERIC, STRING, DATE = "nominal", "numeric", "string", "date"
_TYPES = {
    "numeric": NUMERIC,
    "real": NUMERIC,
    "integer": NUMERIC,
    "string": STRING,
    "date": DATE,
}
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_TOKEN = re.compile(rf"\s*({_QUOTED}|[^\s'\"{{][^\s{{]*)")
_FIELD = re.compile(rf"\s*(?:({_QUOTED})|((?:[^,'\"\s][^,]*)?))\s*(,|\Z)")
_PAIR = re.compile(rf"\s*(\d+)\s+(?:({_QUOTED})|([^,'\"\s][^,]*))\s*(,|\Z)", re.ASCII)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Attribute:
    """A declared attribute.

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
            twice = next(value for value in values if values.count(value) > 1)
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
