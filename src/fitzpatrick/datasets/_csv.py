"""CSV files: separators, the line of names, row names, comments, blank rows; pandas does the rest.

What pandas parses then is well-formed: columns that the first rows show to be numbers as numbers,
the others as words.
"""

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._errors import DataError
from ._frame import Cells, Frame, Notes, Texts, find_pandas
from ._numbers import CLASS_NAMES_TOO, COMMA, MISSING_WORDS, PLAIN, NumberFormat, plain_number
from ._table import MAX_FEATURES, counted, listed, numbered
from ._text import read_text
from .columns import MAX_TEXT
from .options import ReadOptions

_SEPARATORS = "\t;|,"  # where two would do, the one that is rarer within cells
_EXCEL = re.compile(r'"?sep=(.)"?', re.IGNORECASE)
_SAMPLE_LINES = 20
_SAMPLE_CHARACTERS = 1 << 20
_SAMPLE_ROWS = 200  # that show which columns are numbers
_SHOWN_LINES = 5
_MAX_FIELD = 1 << 17  # characters
_COMMENT, _LONE_COMMENT = re.compile("#"), re.compile("#[^,]*,+$")
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
# what 1.234 and 1,234 may be, besides a number with a fraction
_MAY_BE_GROUPED = {PLAIN: NumberFormat(",", "."), COMMA: NumberFormat(".", ",")}


class Record(NamedTuple):
    """The fields of a row, and the lines where it begins and ends."""

    fields: list[str]
    line: int
    last: int

    @property
    def is_blank(self) -> bool:
        return not any(map(str.strip, self.fields))


class CsvFile:
    """A CSV file whose line of names has been read.

    Attributes:
        names: position of the columns that have a name, no two the same.
        header_line: number of the line of names.
        doubt: why a name may be unknown here, as a note: the first line may be no line of names, or
            the sheet not the right one; empty if nothing says so.
    """

    word = "column"

    def __init__(
        self, path: Path, content: bytes | None = None, first_line: int = 1, *,
        has_header: bool = True,
    ) -> None:  # fmt: skip
        """Read the names and find out how fields are separated.

        ``content`` is the table of a file of another format, as CSV that begins in ``first_line``.
        """
        self.path, self.notes, self.header_line, self.doubt = path, list[str](), None, ""
        is_csv = content is None
        content = read_text(path, self.notes) if content is None else content.replace(b"\r", b" ")
        lines = content.split(b"\n")
        start, head, separator = _sample(lines)
        separator = separator if is_csv else ","
        header, data = _header(head, separator or _find_separator(head, path), is_csv=is_csv)
        header = header if has_header else data
        self.separator = separator or _find_separator(head[header:], path)
        line = first_line + start + header
        sample = _records(head[header:], line, self.separator, path, is_sample=True)
        records = [one for one in sample if one.fields]
        if not records:
            raise DataError("no line of names" if has_header else "no row", path)
        first, *rest = records
        self._body_line = first.last + 1 if has_header else first.line
        if not lines[-1]:  # what follows the end of the last line
            lines.pop()
        self._body = lines[self._body_line - first_line :]
        self._has_row_names = False
        found = list(numbered("column_", len(first.fields), 1))
        if has_header:
            self.header_line = first.line or None
            found = list(map(_plain_name, first.fields))
            found[0] = found[0].lstrip("# ") if header < data else found[0]
            found = self._named(found, [one for one in rest if not one.is_blank])
        self._columns = _unique([name or i for i, name in enumerate(found)], self.notes)
        self.names = dict.fromkeys(name for name in self._columns if isinstance(name, str))

    def _named(self, found: list[str], rows: list[Record]) -> list[str]:
        """The names of all columns; empty for row names, and where rows end in a separator."""
        line, longest = self.header_line, max(map(len, found))
        if rows and len(rows[0].fields) == len(found) + 1:
            self._has_row_names = bool(rows[0].fields[-1].strip())
            if len(found) == 1 and self._has_row_names:
                problem = f"the first line names one column, and this has two fields, {rows[0][0]};"
                problem += " quote numbers with decimal commas, or separate fields by ';'"
                raise DataError(problem, self.path, rows[0].line)
            found = ["", *found] if self._has_row_names else [*found, ""]
        if len(found) > MAX_FEATURES:
            raise DataError(f"more than {MAX_FEATURES} columns", self.path, line)
        if longest > MAX_TEXT:
            problem = f"a name of {longest} characters: the first line does not hold names"
            raise DataError(problem, self.path, line)
        if not longest:
            raise DataError("the first line names no column", self.path, line)
        if not found[0]:
            note = "left out: the first column, which has no name, as row names have none"
            self.notes.append(note)
        doubt = _doubt(found, [one.fields for one in rows if len(one.fields) == len(found)])
        if doubt:
            self.doubt = "the first line is taken for the names of the columns, though it has "
            self.doubt += f"{doubt}; if it is a row of data, say --no-header"
            self.notes.append(self.doubt)
        return found

    def known_as(self, names: Iterable[str]) -> list[str]:
        """Names in one line, since spreadsheets break long ones."""
        return list(map(_plain_name, names))

    def targets(self, targets: Iterable[str] | None) -> list[str]:
        return self.known_as(targets or ())

    def read(
        self, names: Sequence[str], options: ReadOptions, words: Collection[str], classes: str
    ) -> Frame:
        """The named columns.

        ``words`` are columns of words, whatever they look like. ``classes`` is the column of class
        names, which may be called ``-`` or ``None``.
        """
        table, lines = self._rows()
        if not lines.size:
            raise DataError("no row below the line of names", self.path)
        nameless = [column for column in self._columns[1:] if isinstance(column, int)]
        cells_of = table.parse(nameless, dtype=object, na_filter=False).to_numpy().T
        for i, cells in zip(nameless, cells_of, strict=True):
            row = next((row for row, cell in enumerate(cells) if cell.strip()), None)
            if row is not None:
                where = f" in line {self.header_line}" if self.header_line else ""
                problem = f"column {i + 1} has no name{where}, and the value {cells[row][:40]!r} "
                problem += "here; write a name for it"
                raise DataError(problem, self.path, int(lines[row]))
        missing = MISSING_WORDS.union(options.missing_values)
        known = map(plain_number, options.missing_values)
        told = [number for number in known if number is not None]
        numbers = table.numbers([name for name in names if name not in words])
        numbers = {name: one for name, one in numbers.items() if not np.isin(one[0], told).any()}
        rest = table.words([name for name in names if name not in numbers])
        no_names = missing - CLASS_NAMES_TOO.difference(options.missing_values)
        marks = {name: mark for name, (_, mark) in numbers.items()}
        found: dict[str, Cells] = {name: one for name, (one, _) in numbers.items()}
        for name in list(rest):
            found[name] = Texts.of(rest.pop(name), no_names if name == classes else missing)
        notes, semicolons = Notes(self.notes), self.separator == ";"
        return Frame(self.path, options, lines, found, notes, marks, semicolons)

    def cells(self, names: Sequence[str]) -> dict[str, list[str]]:
        found = self._rows()[0].words(names)
        return {name: found[name].tolist() for name in names}

    def _rows(self) -> tuple["_Text", np.ndarray]:
        """The rows as well-formed CSV, and the line of each; blank ones and comments are left out,
        and each is checked for its number of fields.
        """
        body, mark, width = self._body, self.separator.encode(), len(self._columns)
        is_plain = self.separator in _SEPARATORS and not any(b'"' in line for line in body)
        if is_plain and all(line.count(mark) == width - 1 for line in body):
            starts = body if width == 1 else (line for line in body if line.startswith(mark))
            if all(line.replace(mark, b"").strip() for line in starts):
                lines = np.arange(self._body_line, self._body_line + len(body))
                return _Text(b"\n".join(body), self.separator, self._columns), lines
        left_out: dict[str, list[int]] = {"without any value": [], "of comments": []}
        kept, clean = list[int](), io.StringIO()
        writer = csv.writer(clean, lineterminator="\n")
        ends_in_nothing = isinstance(self._columns[-1], int)
        for record in _records(map(bytes.decode, body), self._body_line, self.separator, self.path):
            fields = record.fields
            if record.is_blank and not (width == len(fields) == 1):
                left_out["without any value"] += [record.line] * bool(fields)
                continue
            if len(fields) == width - 1 and ends_in_nothing:
                fields.append("")
            elif len(fields) != width:
                if not fields[0].startswith("#"):
                    problem = f"{len(fields)} fields, expected {width} as in the first line"
                    if self._has_row_names:
                        problem = f"{len(fields)} fields, expected {width}: a row name, and one "
                        problem += f"for each of the {width - 1} names"
                    elif len(fields) > width:
                        separator = repr(self.separator)
                        problem += f"; a field that holds a {separator} needs quotes around it"
                    raise DataError(problem, self.path, record.line)
                left_out["of comments"].append(record.line)
                continue
            kept.append(record.line)
            writer.writerow(fields)
        for what, found in left_out.items():
            if found:
                shown = listed(map(str, found), most=_SHOWN_LINES)
                note = f"left out: {counted(len(found), 'line')} {what}"
                self.notes.append(f"{note} (line{'s' * (len(found) > 1)} {shown})")
        text = _Text(clean.getvalue().encode(), ",", self._columns)
        return text, np.asarray(kept, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Text:
    """Well-formed CSV without a line of names; columns without a name go by their position."""

    content: bytes
    separator: str
    columns: Sequence[str | int]

    def words(self, names: Sequence[str], n_rows: int | None = None) -> dict[str, np.ndarray]:
        found = self.parse(names, nrows=n_rows, dtype=object, na_filter=False)
        return {name: one.to_numpy() for name, one in found.items()}

    def numbers(self, names: Sequence[str]) -> dict[str, tuple[np.ndarray, str]]:
        """Columns of numbers, and their decimal marks, if the first rows leave no doubt of them."""
        marks = {name: _mark(cells) for name, cells in self.words(names, _SAMPLE_ROWS).items()}
        certain = set(marks.values())
        mark = "," if "," in certain and "." not in certain else "."
        chosen = [name for name, one in marks.items() if one in ("", mark)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns of several types are words
            found = self.parse(chosen, decimal=mark, na_values=sorted(MISSING_WORDS))
        has_codes = False
        if any(one.kind in "iu" for one in found.dtypes):  # 007 is no whole number
            text = np.frombuffer(b"\n" + self.content + b"\n", np.uint8)
            zeros = np.flatnonzero(text == ord("0"))
            zeros = zeros[text[zeros + 1] - ord("0") < 10]  # bytes below that of 0 wrap around
            before = np.frombuffer(f'\n" {self.separator}'.encode(), np.uint8)
            has_codes = bool(np.isin(text[zeros - 1], before).any())
        numbers = {}
        for name, one in found.items():
            kind = one.dtype.kind
            if (kind in "iu" and not has_codes) or (kind == "f" and marks[name] == mark):
                numbers[name] = one.to_numpy(np.float64), mark if kind == "f" else ""
        return {name: one for name, one in numbers.items() if not np.isinf(one[0]).any()}

    def parse(self, columns: Sequence[str | int], **options: Any) -> Any:
        """A data frame; ``columns`` are names, or positions without a name, in any order."""
        pandas = find_pandas()
        if tuple(map(int, pandas.__version__.split(".")[:2])) < (3, 1):  # exact from then on
            options["float_precision"] = "round_trip"
        return pandas.read_csv(
            io.BytesIO(self.content), sep=self.separator, header=None, names=self.columns,
            usecols=columns, index_col=False, keep_default_na=False, skip_blank_lines=False,
            engine="c", **options,
        )  # fmt: skip


def _mark(cells: Iterable[str]) -> str | None:
    """The decimal mark of numbers, empty for whole ones; None for words, and where it is open."""
    present = [cell.strip() for cell in cells if cell.strip() not in MISSING_WORDS]
    if present and all(map(_WHOLE.fullmatch, present)):
        return ""
    for plain, grouped in _MAY_BE_GROUPED.items():
        if all(map(plain.matches, present)) and not all(map(grouped.matches, present)):
            return plain.decimal
    return None


def _records(
    lines: Iterable[str], first_line: int, separator: str, path: Path, *, is_sample: bool = False
) -> Iterator[Record]:
    """Fields of each row; a quoted field may go on in the next line."""
    is_spaced, before = separator == " ", 0
    ended = (f"{line}\n" for line in lines)
    reader = csv.reader(ended, delimiter=separator, strict=True, skipinitialspace=is_spaced)
    try:
        for fields in reader:
            if max(map(len, fields), default=0) > _MAX_FIELD:  # others may raise csv's own limit
                raise csv.Error("field limit")
            if is_spaced and len(fields) > 1 and not fields[-1]:
                fields.pop()  # a space at the end of the line
            yield Record(fields, first_line + before, first_line + reader.line_num - 1)
            before = reader.line_num
    except csv.Error as error:
        is_open = "unexpected end" in str(error)
        if is_sample and is_open:
            return
        problem = f"not CSV ({error}); quotes within a quoted field are doubled"
        if is_open or "field limit" in str(error):
            problem = "a quote that begins in this row is not closed"
            if reader.line_num - before <= 1:
                problem = f"a field of more than {_MAX_FIELD} characters, or a quote is not closed"
        raise DataError(problem, path, first_line + before) from None


def _sample(lines: Sequence[bytes]) -> tuple[int, list[str], str | None]:
    """The first lines from the first that is not blank, its position, and Excel's separator."""
    start, separator, head, size = 0, None, list[str](), 0
    for start, line in enumerate(map(bytes.decode, lines)):  # noqa: B007  (used below)
        match = _EXCEL.fullmatch(line.strip(" ;,\t")) or _EXCEL.fullmatch(line)
        if match and separator is None:
            separator = match[1]
        elif line.strip():
            break
    for line in map(bytes.decode, lines[start:]):
        head.append(line)
        size += len(line)
        if line.strip() and (len(head) >= _SAMPLE_LINES or size > _SAMPLE_CHARACTERS):
            break
    return start, head, separator


def _header(head: Sequence[str], separator: str, *, is_csv: bool) -> tuple[int, int]:
    """Positions of the line of names and of the first line that is no comment.

    A comment directly above the data, with as many fields, holds the names: ``# a,b,c``. In tables
    of other formats, a comment stands alone in its row.
    """
    is_comment = (_COMMENT if is_csv else _LONE_COMMENT).match
    data = next((i for i, line in enumerate(head) if not is_comment(line)), len(head))
    if data == len(head):
        return max(data - 1, 0), data
    above, below = (head[i].count(separator) for i in (data - 1, data))
    cells = (cell.strip(' "') for cell in head[data].split(separator))
    has_names = is_csv and data and above and above == below and any(map(PLAIN.matches, cells))
    return (data - 1, data) if has_names else (data, data)


def _find_separator(head: Sequence[str], path: Path) -> str:
    """The separator with which the first rows have the same number of fields, and the most."""
    lines = [line for line in head if not line.startswith("#")] or head

    def score(separator: str) -> tuple[bool, int]:
        """True if the rows agree with the names; and the number of names."""
        try:
            records = list(_records(lines, 1, separator, path, is_sample=True))
        except DataError:
            return False, 1
        counts = [len(one.fields) for one in records if not one.is_blank]
        if not counts or counts[0] == 1:
            return False, 1
        return all(0 <= count - counts[0] <= 1 for count in counts), counts[0]

    best = max(_SEPARATORS, key=score)
    if score(best)[1] > 1:
        return best
    return " " if score(" ")[0] else ","


def _doubt(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """What speaks for a row of data: most fields are numbers, or all are like those below."""
    n_named, numbers = sum(map(bool, names)), [name for name in names if PLAIN.matches(name)]
    do_count = (np.diff(np.asarray(numbers, dtype=np.float64)) == 1.0).all()
    if numbers and 2 * len(numbers) >= n_named and not do_count:
        return f"{len(numbers)} numbers ({listed(numbers, most=3)})"
    columns = ({_plain_name(cell) for cell in column} for column in zip(*rows, strict=True))
    known = [name for name, cells in zip(names, columns, strict=False) if name and name in cells]
    if not known or n_named < 2 or len({*known, *numbers}) < len({*names} - {""}):
        return ""
    return f"values of the rows below it ({listed(known, most=3)})"


def _unique(names: list[str | int], notes: list[str]) -> list[str | int]:
    """Names that occur again get a number, as pandas does: a, a.1."""
    taken, counts, seen = set(names), dict.fromkeys(names, 0), set[str | int]()
    again: dict[str | int, list[str]] = {}
    for i, name in enumerate(names):
        if name in seen:
            while names[i] in taken:
                counts[name] += 1
                names[i] = f"{name}.{counts[name]}"
            taken.add(names[i])
            again.setdefault(name, []).append(str(names[i]))
        seen.add(name)
    for name, others in again.items():
        notes.append(f"another column called {name} is read as {listed(others)}")
    return names


def _plain_name(name: str) -> str:
    return " ".join(name.split())
