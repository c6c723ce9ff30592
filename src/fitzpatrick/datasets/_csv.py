"""CSV files: separators, the line of names, row names, comments, blank rows; pandas does the rest.

Spreadsheets, pandas and R write the same table in a dozen ways. Each is told by its form alone, and
what is left out is noted. What pandas parses then is well-formed: columns that the first rows show
to be numbers as numbers, the others as words.
"""

import csv
import io
import re
import warnings
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import DataError
from ._frame import Frame, as_texts_of, find_pandas
from ._numbers import CLASS_NAMES_TOO, COMMA, MISSING_WORDS, PLAIN, NumberFormat, own_numbers
from ._table import MAX_FEATURES, listed
from ._text import read_text
from .columns import MAX_TEXT, Cells
from .options import ReadOptions

_SEPARATORS = "\t;|,"  # where two would do, the one that is rarer within cells
_EXCEL = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_SAMPLE_LINES = 20
_SAMPLE_CHARACTERS = 1 << 20
_SAMPLE_ROWS = 200  # that show which columns are numbers
_SHOWN_LINES = 5
_MAX_FIELD = 1 << 17  # characters
_POINTS = NumberFormat(",", ".")  # what 1.234 may be, besides a decimal
_COMMAS = NumberFormat(".", ",")
_CODE = re.compile(r"\s*0\d+\s*", re.ASCII)


@dataclass(frozen=True)
class Record:
    """The fields of a row, and the lines where it begins and ends."""

    fields: list[str]
    line: int
    last: int


@dataclass(eq=False)
class CsvFile:
    """A CSV file whose line of names has been read.

    Attributes:
        path: the file.
        names: of the columns that have one, no two the same.
        separator: between fields.
        notes: what was left out.
        header_line: where the names stand.
    """

    path: Path
    names: tuple[str, ...]
    separator: str
    notes: list[str]
    header_line: int
    _body: list[bytes]
    _body_line: int
    _positions: tuple[int, ...]
    _nameless: tuple[int, ...]
    _width: int
    _has_row_names: bool

    @staticmethod
    def open(path: Path, content: bytes | None = None, first_line: int = 1) -> "CsvFile":
        """Read the names and find out how fields are separated.

        Args:
            path: the file.
            content: its table as CSV, of a file of another format.
            first_line: number of the first line.
        """
        notes: list[str] = []
        lines = (read_text(path, notes) if content is None else content).split(b"\n")
        head, separator = _sample(enumerate(map(bytes.decode, lines), first_line))
        header, data = _header(head, separator or _find_separator(head, path))
        separator = separator or _find_separator(head[header:], path)
        with closing(_records(iter(head[header:]), separator, path, is_sample=True)) as records:
            first = next(records, None)
            if first is None:
                raise DataError("no line of names", path)
            second = next((one for one in records if any(map(str.strip, one.fields))), None)
        names = [plain_name(name) for name in first.fields]
        if header < data:
            names[0] = names[0].lstrip("# ")
        has_row_names = False
        if second is not None and len(second.fields) == len(names) + 1:
            if len(names) == 1 and second.fields[-1].strip():
                raise DataError(
                    f"the first line names one column, and this has two fields, {second.fields}; "
                    "quote numbers with decimal commas, or separate fields by ';'",
                    path,
                    second.line,
                )
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
        notes += _note_on_numbers([names[i] for i in positions])
        unique = _unique([names[i] for i in positions], notes)
        return CsvFile(
            path, unique, separator, notes, first.line, lines[first.last + 1 - first_line :],
            first.last + 1, positions, nameless, len(names), has_row_names,
        )  # fmt: skip

    def read(
        self, names: Sequence[str], words: Collection[str], options: ReadOptions, classes: str = ""
    ) -> Frame:
        """The named columns.

        Args:
            names: of the columns.
            words: those that are words, whatever they look like.
            options: more words for missing values.
            classes: the column of class names, which may be called ``-`` or ``None``.
        """
        text, separator, lines = self._rows()
        if not lines.size:
            raise DataError("no row below the line of names", self.path)
        table = _Text(text, separator, self._width)
        for i in self._nameless:
            self._check_empty(i, table, lines)
        position = dict(zip(self.names, self._positions, strict=True))
        missing = MISSING_WORDS.union(options.missing_values)
        numbers = table.numbers([position[name] for name in names if name not in words])
        told = list((own_numbers(options.missing_values) or {}).values())
        numbers = {i: one for i, one in numbers.items() if not np.isin(one[0], told).any()}
        rest = table.words([position[name] for name in names if position[name] not in numbers])
        cells: dict[str, Cells] = {}
        for name in names:
            i = position[name]
            lacking = (
                missing
                if name != classes
                else missing - CLASS_NAMES_TOO.difference(options.missing_values)
            )
            cells[name] = numbers[i][0] if i in numbers else as_texts_of(rest.pop(i), lacking)
        known = {name: numbers[position[name]][1] for name in names if position[name] in numbers}
        return Frame(self.path, options, lines, cells, self.notes, known, self.separator == ";")

    def cells(self, names: Sequence[str]) -> dict[str, list[str]]:
        """Columns as they are, by name."""
        text, separator, _ = self._rows()
        position = dict(zip(self.names, self._positions, strict=True))
        found = _Text(text, separator, self._width).words([position[name] for name in names])
        return {name: found[position[name]].tolist() for name in names}

    def _rows(self) -> tuple[bytes, str, np.ndarray]:
        """The rows as well-formed CSV, its separator, and the line of each row."""
        body, mark, width = self._body, self.separator.encode(), self._width
        if body and not body[-1]:
            body.pop()
        is_plain = self.separator in _SEPARATORS and not any(b'"' in line for line in body)
        if is_plain and all(line.count(mark) == width - 1 for line in body):
            starts = body if width == 1 else (line for line in body if line.startswith(mark))
            if all(line.replace(mark, b"").strip() for line in starts):
                lines = np.arange(self._body_line, self._body_line + len(body))
                return b"\n".join(body), self.separator, lines
        return self._cleaned(body)

    def _cleaned(self, body: list[bytes]) -> tuple[bytes, str, np.ndarray]:
        """The rows without blank ones and comments, each checked for its number of fields."""
        left_out: dict[str, list[int]] = {"without any value": [], "of comments": []}
        blank, comments = left_out.values()
        lines: list[int] = []
        width, is_clean = self._width, self.separator in _SEPARATORS
        with closing(self._records(body)) as records:
            for record in records:
                fields = record.fields
                if len(fields) == width:
                    if width > 1 and not fields[0] and not any(map(str.strip, fields)):
                        blank.append(record.line)
                        continue
                elif not any(map(str.strip, fields)):
                    is_clean = False
                    blank += [record.line] * bool(fields)
                    continue
                elif fields[0].startswith("#"):
                    comments.append(record.line)
                    continue
                elif len(fields) == width - 1 and width - 1 in self._nameless:
                    is_clean = False
                else:
                    raise DataError(self._ragged(len(fields)), self.path, record.line)
                lines.append(record.line)
        for what, dropped in left_out.items():
            if dropped:
                shown = ", ".join(map(str, dropped[:_SHOWN_LINES]))
                dots = ", …" * (len(dropped) > _SHOWN_LINES)
                line = "line" if len(dropped) == 1 else "lines"
                note = f"left out: {len(dropped)} {line} {what} ({line} {shown}{dots})"
                self.notes.append(note)
        if is_clean and not blank and not comments:
            return b"\n".join(body), self.separator, np.asarray(lines, dtype=np.int64)
        clean, kept = io.StringIO(), set(lines)
        writer = csv.writer(clean, lineterminator="\n")
        with closing(self._records(body)) as records:
            for record in records:
                if record.line in kept:
                    writer.writerow([*record.fields, ""][:width])
        return clean.getvalue().encode(), ",", np.asarray(lines, dtype=np.int64)

    def _records(self, body: list[bytes]) -> Generator[Record, None, None]:
        numbered = enumerate(map(bytes.decode, body), self._body_line)
        return _records(numbered, self.separator, self.path)

    def _ragged(self, count: int) -> str:
        problem = f"{count} fields, expected {self._width}"
        if self._has_row_names:
            return f"{problem}: a row name, and one for each of the {self._width - 1} names"
        hint = ""
        if count > self._width:
            hint = f"; a field that holds a {self.separator!r} needs quotes around it"
        return f"{problem} as in the first line{hint}"

    def _check_empty(self, i: int, table: "_Text", lines: np.ndarray) -> None:
        if i == 0:
            return
        cells = table.words([i])[i]
        row = next((row for row, cell in enumerate(cells) if cell.strip()), None)
        if row is not None:
            problem = f"column {i + 1} has no name in line {self.header_line}, and the value "
            problem += f"{cells[row][:40]!r} here; write a name for it"
            raise DataError(problem, self.path, int(lines[row]))


@dataclass(frozen=True, eq=False)
class _Text:
    """Well-formed CSV without a line of names."""

    content: bytes
    separator: str
    width: int

    def words(self, columns: Sequence[int], n_rows: int | None = None) -> dict[int, Any]:
        """Columns as they are, by position."""
        frame = self._parse(columns, nrows=n_rows, dtype=object, na_filter=False)
        return {i: frame[i].to_numpy() for i in columns}

    def numbers(self, columns: Sequence[int]) -> dict[int, tuple[np.ndarray, str]]:
        """Columns of numbers, and their decimal marks, if the first rows leave no doubt of them."""
        marks: dict[int, set[str]] = {}
        for i, cells in self.words(columns, _SAMPLE_ROWS).items():
            present = [cell.strip() for cell in cells if cell.strip() not in MISSING_WORDS]
            if present and all(map(str.isdecimal, present)):
                marks[i] = {""}
            else:
                marks[i] = {
                    one.decimal
                    for one, other in ((PLAIN, _POINTS), (COMMA, _COMMAS))
                    if all(map(one.matches, present)) and not all(map(other.matches, present))
                }
        has_commas = (
            self.separator != "," and {","} in marks.values() and {"."} not in marks.values()
        )
        mark = "," if has_commas else "."
        chosen = [i for i, found in marks.items() if found in ({""}, {mark})]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns of several types are words
            frame = self._parse(chosen, decimal=mark, na_values=sorted(MISSING_WORDS))
        kept = {i: frame[i] for i in chosen}
        wholes = [i for i in chosen if kept[i].dtype.kind in "iu"]
        if wholes and self._has_codes():
            cells = self.words(wholes)
            wholes = [i for i in wholes if not any(map(_CODE.fullmatch, cells[i]))]
        found = {i: (kept[i].to_numpy(np.float64), "") for i in wholes}
        for i, column in kept.items():
            if column.dtype.kind == "f" and marks[i] == {mark}:
                numbers = column.to_numpy(np.float64)
                if not np.isinf(numbers).any():
                    found[i] = numbers, mark
        return found

    def _has_codes(self) -> bool:
        """Whether a field may begin with a zero and another digit: 007."""
        text = np.frombuffer(b"\n" + self.content + b"\n", np.uint8)
        zeros = np.flatnonzero(text == ord("0"))
        zeros = zeros[text[zeros + 1] - ord("0") < 10]
        before = np.frombuffer(f'\n" {self.separator}'.encode(), np.uint8)
        return bool(np.isin(text[zeros - 1], before).any())

    def _parse(self, columns: Sequence[int], **options: Any) -> Any:
        pandas = find_pandas()
        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):  # exact from then on
            options["float_precision"] = "round_trip"
        return pandas.read_csv(
            io.BytesIO(self.content),
            sep=self.separator,
            header=None,
            names=range(self.width),
            usecols=columns,
            index_col=False,
            keep_default_na=False,
            skip_blank_lines=False,
            engine="c",
            **options,
        )


def _note_on_numbers(names: Sequence[str]) -> list[str]:
    """That the first line may be a row of data: most of its fields are numbers, and no count."""
    numbers = [name for name in names if PLAIN.matches(name)]
    first = own_numbers(numbers[:1]) or {}
    start = next(iter(first.values()), 0.0)
    is_count = [float(name) for name in numbers] == [start + i for i in range(len(numbers))]
    if 2 * len(numbers) < len(names) or not numbers or is_count:
        return []
    note = f"the first line is taken for the names of the columns, though it has {len(numbers)} "
    note += f"numbers ({listed(numbers[:3])}{', …' * (len(numbers) > 3)}); if it is a row of data"
    return [f"{note}, put a line of names above it"]


def _records(
    lines: Iterator[tuple[int, str]], separator: str, path: Path, *, is_sample: bool = False
) -> Generator[Record, None, None]:
    """Fields of each row; a quoted field may go on in the next line."""
    state = [0, 0]  # first line of the row, last line read

    def following() -> Iterator[str]:
        for number, line in lines:
            state[1] = number
            state[0] = state[0] or number
            yield line + "\n"

    limit = csv.field_size_limit(_MAX_FIELD)  # of all readers; others may have raised it
    reader = csv.reader(
        following(), delimiter=separator, strict=True, skipinitialspace=separator == " "
    )
    try:
        for fields in reader:
            if separator == " " and len(fields) > 1 and not fields[-1]:
                fields.pop()  # a space at the end of the line
            yield Record(fields, state[0], state[1])
            state[0] = 0
    except csv.Error as error:
        if is_sample and "unexpected end" in str(error):
            return
        first, last = state[0] or 1, state[1]
        if "unexpected end" in str(error) or "field limit" in str(error):
            problem = "a quote that begins in this row is not closed"
            if last == first:
                problem = f"a field of more than {_MAX_FIELD} characters, or a quote is not closed"
        else:
            problem = f"not CSV ({error}); quotes within a quoted field are doubled"
        raise DataError(problem, path, first) from None
    finally:
        csv.field_size_limit(limit)


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
        with closing(_records(iter(lines), separator, path, is_sample=True)) as records:
            counts = [len(one.fields) for one in records if any(map(str.strip, one.fields))]
    except DataError:
        return False, 1
    if not counts:
        return False, 1
    return all(0 <= count - counts[0] <= 1 for count in counts), counts[0]


def _unique(names: list[str], notes: list[str]) -> tuple[str, ...]:
    """Names that occur again get a number, as pandas does: a, a.1."""
    taken = set(names)
    again: dict[str, list[str]] = {}
    result: list[str] = []
    counts: dict[str, int] = {}
    for name in names:
        new = name
        if name in counts:
            while new in taken:
                counts[name] += 1
                new = f"{name}.{counts[name]}"
            again.setdefault(name, []).append(new)
            taken.add(new)
        counts.setdefault(name, 0)
        result.append(new)
    for name, others in again.items():
        notes.append(f"another column called {name} is read as {listed(others)}")
    return tuple(result)


def plain_name(name: str) -> str:
    """A column's name in one line: spreadsheets break long ones."""
    return " ".join(name.split())
