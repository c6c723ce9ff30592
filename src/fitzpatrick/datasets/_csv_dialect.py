"""The outside of a CSV file: separators, the line of names, row names, comments, blank rows.

Spreadsheets, pandas and R write the same table in a dozen ways. Each is told by its form alone, and
what is left out is noted; the cells themselves are not looked at.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ._errors import DataError
from ._table import MAX_FEATURES
from ._text import read_lines
from .columns import MAX_TEXT

_SEPARATORS = "\t;|,"  # where two would do, the one that is rarer within cells
_EXCEL = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_SAMPLE_LINES = 20
_SAMPLE_CHARACTERS = 1 << 20
_CHUNK_CELLS = 50_000  # at a time, so that they stay in the cache
_MIN_CHUNK_ROWS = 50  # unless that is more than the next number: 100 MB
_MAX_CHUNK_CELLS = 2_000_000
_SHOWN_LINES = 5
_MAX_FIELD = 1 << 17  # characters


@dataclass(frozen=True)
class Record:
    """The fields of a row, the line where it begins, and whether it has an underscore."""

    fields: list[str]
    line: int
    underscores: bool


@dataclass(frozen=True)
class Chunk:
    """Some rows by column: cells of each column that was asked for, and the line of each row."""

    columns: list[tuple[str, ...]]
    lines: list[int]
    underscores: bool


@dataclass(eq=False)
class CsvFile:
    """A CSV file whose line of names has been read.

    Attributes:
        path: the file.
        names: of the columns that have one, no two the same.
        separator: between fields.
        notes: what was left out; complete when all chunks have been read.
    """

    path: Path
    names: tuple[str, ...]
    separator: str
    notes: list[str]
    _positions: tuple[int, ...]
    _nameless: tuple[int, ...]
    _width: int
    header_line: int
    _has_row_names: bool = field(default=False)

    @staticmethod
    def open(path: Path) -> "CsvFile":
        """Read the names and find out how fields are separated."""
        notes: list[str] = []
        lines = read_lines(path, notes)
        head, separator = _sample(lines)
        header, data = _header(head, separator or _find_separator(head, path))
        separator = separator or _find_separator(head[header:], path)
        records = _records(iter(head[header:]), separator, path, is_sample=True)
        try:
            first = next(records)
        except StopIteration:
            raise DataError("no line of names", path) from None
        names = [plain_name(name) for name in first.fields]
        if header < data:
            names[0] = names[0].lstrip("# ")
        second = next((one for one in records if any(map(str.strip, one.fields))), None)
        has_row_names = False
        if second is not None and len(second.fields) == len(names) + 1:
            if second.fields[-1].strip():
                names, has_row_names = ["", *names], True
            else:  # every line but the first ends in a separator
                names = [*names, ""]
        if len(names) > MAX_FEATURES:
            raise DataError(f"more than {MAX_FEATURES} columns", path, first.line)
        long = next((name for name in names if len(name) > MAX_TEXT), None)
        if long is not None:
            problem = f"a name of {len(long)} characters: the first line does not hold names"
            raise DataError(problem, path, first.line)
        if not any(names):
            raise DataError("the first line names no column", path, first.line)
        nameless = tuple(i for i, name in enumerate(names) if not name)
        positions = tuple(i for i, name in enumerate(names) if name)
        if 0 in nameless:
            notes.append("left out: the first column, which has no name, as row names have none")
        unique = _unique([names[i] for i in positions], notes)
        return CsvFile(
            path, unique, separator, notes, positions, nameless, len(names), first.line,
            has_row_names,
        )  # fmt: skip

    def chunks(self, names: Sequence[str], notes: list[str] | None = None) -> Iterator[Chunk]:
        """The rows, some at a time, with the named columns.

        Args:
            names: of the columns.
            notes: gets sentences on rows that are left out.
        """
        position = dict(zip(self.names, self._positions, strict=True))
        chosen = [position[name] for name in names]
        size = _CHUNK_CELLS // self._width
        size = max(1, size, min(_MIN_CHUNK_ROWS, _MAX_CHUNK_CELLS // self._width))
        blank: list[int] = []
        comments: list[int] = []
        rows = self._rows(blank, comments)
        while block := list(islice(rows, size)):
            cells = list(zip(*(record.fields for record in block), strict=True))
            for i in self._nameless:
                if i:
                    self._check_empty(i, cells[i], block)
            yield Chunk(
                [cells[i] for i in chosen],
                [record.line for record in block],
                any(record.underscores for record in block),
            )
        for left_out, what in ((blank, "without any value"), (comments, "of comments")):
            if left_out and notes is not None:
                shown = ", ".join(map(str, left_out[:_SHOWN_LINES]))
                dots = ", …" * (len(left_out) > _SHOWN_LINES)
                line = "line" if len(left_out) == 1 else "lines"
                notes.append(f"left out: {len(left_out)} {line} {what} ({line} {shown}{dots})")

    def _rows(self, blank: list[int], comments: list[int]) -> Iterator[Record]:
        lines = (one for one in read_lines(self.path, []) if one[0] >= self.header_line)
        records = _records(lines, self.separator, self.path)
        next(records)
        width = self._width
        for record in records:
            fields = record.fields
            if len(fields) == width:
                if width > 1 and not fields[0] and not any(map(str.strip, fields)):
                    blank.append(record.line)
                else:
                    yield record
            elif not fields or not any(map(str.strip, fields)):
                if fields:
                    blank.append(record.line)
            elif fields[0].startswith("#"):
                comments.append(record.line)
            elif len(fields) == width - 1 and width - 1 in self._nameless:
                yield Record([*fields, ""], record.line, record.underscores)
            else:
                raise DataError(self._ragged(len(fields)), self.path, record.line)

    def _ragged(self, count: int) -> str:
        problem = f"{count} fields, expected {self._width}"
        if self._has_row_names:
            return f"{problem}: a row name, and one for each of the {self._width - 1} names"
        hint = ""
        if count > self._width:
            hint = f"; a field that holds a {self.separator!r} needs quotes around it"
        return f"{problem} as in the first line{hint}"

    def _check_empty(self, i: int, cells: Sequence[str], block: list[Record]) -> None:
        row = next((row for row, cell in enumerate(cells) if cell.strip()), None)
        if row is not None:
            problem = f"column {i + 1} has no name in line {self.header_line}, and the value "
            problem += f"{cells[row][:40]!r} here; write a name for it"
            raise DataError(problem, self.path, block[row].line)


def _records(
    lines: Iterator[tuple[int, str]], separator: str, path: Path, *, is_sample: bool = False
) -> Iterator[Record]:
    """Fields of each row; a quoted field may go on in the next line."""
    state = [0, 0, False]  # first line of the row, last line read, underscores

    def following() -> Iterator[str]:
        for number, line in lines:
            state[1] = number
            state[0] = state[0] or number
            if "_" in line:
                state[2] = True
            yield line + "\n"

    reader = csv.reader(
        following(), delimiter=separator, strict=True, skipinitialspace=separator == " "
    )
    while True:
        state[0], state[2] = 0, False
        limit = csv.field_size_limit(_MAX_FIELD)  # of all readers; others may have raised it
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if is_sample and "unexpected end" in str(error):
                return
            first, last = state[0] or 1, state[1]
            if "unexpected end" in str(error) or "field limit" in str(error):
                problem = "a quote that begins in this row is not closed"
                if last == first:
                    problem = (
                        f"a field of more than {_MAX_FIELD} characters, or a quote is not closed"
                    )
            else:
                problem = f"not CSV ({error}); quotes within a quoted field are doubled"
            raise DataError(problem, path, first) from None
        finally:
            csv.field_size_limit(limit)
        if separator == " " and len(fields) > 1 and not fields[-1]:
            fields.pop()  # a space at the end of the line
        yield Record(fields, state[0], bool(state[2]))


def _sample(lines: Iterator[tuple[int, str]]) -> tuple[list[tuple[int, str]], str | None]:
    """The first lines that are not blank, and the separator that Excel's first line names."""
    head: list[tuple[int, str]] = []
    separator = None
    size = 0
    for number, line in lines:
        if not line.strip():
            if head:
                head.append((number, line))
            continue
        match = _EXCEL.fullmatch(line.strip(" ;,\t")) or _EXCEL.fullmatch(line)
        if match and not head and separator is None:
            separator = match[1]
            continue
        head.append((number, line))
        size += len(line)
        if len(head) >= _SAMPLE_LINES or size > _SAMPLE_CHARACTERS:
            break
    return head, separator


def _header(head: list[tuple[int, str]], separator: str) -> tuple[int, int]:
    """Positions of the line of names and of the first line that is no comment.

    A comment directly above the data, with as many fields, holds the names: ``# a,b,c``.
    """
    data = next((i for i, (_, line) in enumerate(head) if not line.startswith("#")), None)
    if data is None:
        return (len(head) - 1, len(head)) if head else (0, 0)
    if data == 0:
        return 0, 0
    above, below = (head[i][1].count(separator) for i in (data - 1, data))
    has_numbers = any(map(_is_number, head[data][1].split(separator)))
    return (data - 1, data) if above and above == below and has_numbers else (data, data)


def _is_number(text: str) -> bool:
    try:
        float(text.strip(' "'))
    except ValueError:
        return False
    return True


def _find_separator(head: list[tuple[int, str]], path: Path) -> str:
    """The separator with which the first rows have the same number of fields, and the most."""
    best, best_score = ",", (False, 1)
    for separator in _SEPARATORS:
        score = _score(head, separator, path)
        if score[1] > 1 and score > best_score:
            best, best_score = separator, score
    if best_score == (False, 1):
        agrees, count = _score(head, " ", path)
        if agrees and count > 1:
            return " "
    return best


def _score(head: list[tuple[int, str]], separator: str, path: Path) -> tuple[bool, int]:
    """Whether the rows agree with the names, and the number of names."""
    lines = [one for one in head if not one[1].startswith("#")] or head
    try:
        records = _records(iter(lines), separator, path, is_sample=True)
        counts = [len(one.fields) for one in records if any(map(str.strip, one.fields))]
    except DataError:
        return False, 1
    if not counts:
        return False, 1
    return all(0 <= count - counts[0] <= 1 for count in counts), counts[0]


def _unique(names: list[str], notes: list[str]) -> tuple[str, ...]:
    """Names that occur again get a number, as pandas does: a, a.1."""
    seen = set(names)
    used: set[str] = set()
    result = []
    for name in names:
        new, number = name, 0
        while new in used or (number and new in seen):
            number += 1
            new = f"{name}.{number}"
        if number:
            notes.append(f"another column called {name} is read as {new}")
        used.add(new)
        result.append(new)
    return tuple(result)


def plain_name(name: str) -> str:
    """A column's name in one line: spreadsheets break long ones."""
    return " ".join(name.split())


def column_names(path: Path) -> tuple[str, ...]:
    """The names of a CSV file's columns."""
    return CsvFile.open(path).names
