"""Tables of other programs as CSV text: Parquet, Excel workbooks, JSON lines.

They become the CSV that their program would have written, so that one set of rules serves them all.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ._errors import DataError
from ._frame import find_pandas
from ._table import MAX_FEATURES, counted, listed
from ._text import MAX_RATIO, RATIO_FROM, read_lines, refused

MAX_CELLS = 200_000_000


def parquet_as_csv(path: Path) -> bytes:
    pandas = find_pandas()
    try:
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise DataError("Parquet files need pyarrow: pip install pyarrow", path) from None
    with refused("not a Parquet file that can be read", path):
        file = parquet.ParquetFile(path)
        _check_size(file.metadata.num_rows, file.metadata.num_columns, path)
        nested = [field.name for field in file.schema_arrow if field.type.num_fields]
        if nested:
            problem = f"column {nested[0]!r} holds lists or objects; expected texts, numbers, true"
            raise DataError(f"{problem} and false", path)
        frame = pandas.read_parquet(path, engine="pyarrow")
    index = any(name is not None for name in frame.index.names)
    return bytes(frame.to_csv(index=index, lineterminator="\n").encode())


def workbook_as_csv(path: Path, sheet: str) -> tuple[bytes, list[str]]:
    """A sheet of an Excel workbook, by openpyxl, and the names of all sheets.

    By default it is the first. Formulas are what they last came to.
    """
    rows, names = _sheet(path, sheet, data_only=True)
    if any(None in row for row in rows):  # an empty cell, or a formula that was never computed
        for line, (row, formulas) in enumerate(zip(rows, _sheet(path, sheet)[0], strict=True), 1):
            for cell, formula in zip(row, formulas, strict=True):
                if cell is None and isinstance(formula, str) and formula.startswith("="):
                    problem = f"the formula {formula[:40]!r} has no stored result; open the "
                    problem += "workbook in a spreadsheet program and save it"
                    raise DataError(problem, path, line)
    width = max(
        (i + 1 for row in rows for i, cell in enumerate(row) if cell is not None), default=0
    )
    return _as_csv([*row[:width], *[None] * (width - len(row))] for row in rows), names


def _sheet(
    path: Path, name: str, *, data_only: bool = False
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The cells of a sheet, formulas or what they last came to; the names of all sheets."""
    try:
        openpyxl = import_module("openpyxl")
    except ModuleNotFoundError:
        problem = "Excel workbooks need openpyxl: pip install openpyxl, or save the sheet as CSV"
        raise DataError(problem, path) from None
    with refused("not an Excel workbook that can be read", path):
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > max(RATIO_FROM, MAX_RATIO * path.stat().st_size):
            raise DataError(f"unpacks to {size} bytes; it is not read", path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=data_only)
        names = [one.title for one in book.worksheets]
        if name and name not in names:
            raise DataError(f"no sheet is called {name!r}; the sheets are {listed(names)}", path)
        sheet, rows, width = book[name or names[0]], list[tuple[Any, ...]](), 1
        _check_size(sheet.max_row or 0, sheet.max_column or 0, path)
        for row in sheet.iter_rows(values_only=True):  # a sheet need not say how large it is
            rows.append(row)
            width = max(width, len(row))
            _check_size(len(rows), width, path)  # as large as they will be with equal widths
        book.close()
        return rows, names


def json_lines_as_csv(path: Path) -> bytes:
    """JSON lines: an object of plain values in each line; the first line names the columns."""
    names: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    for number, line in read_lines(path):
        try:
            row = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON ({error})", path, number) from None
        nested = not isinstance(row, dict) or any(isinstance(v, dict | list) for v in row.values())
        if nested:
            problem = "expected an object of texts, numbers, true, false and null"
            raise DataError(problem, path, number)
        rows.append(row)
        names |= dict.fromkeys(row)
        _check_size(len(rows), len(names), path)
    return _as_csv([list(names), *([row.get(name) for name in names] for row in rows)])


def _check_size(n_rows: int, n_columns: int, path: Path) -> None:
    if n_columns > MAX_FEATURES or n_rows * n_columns > MAX_CELLS:
        size = f"{counted(n_rows, 'row')} of {counted(n_columns, 'column')}"
        raise DataError(f"{size} are more than {MAX_CELLS} cells", path)


def _as_csv(rows: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        cells = ["" if cell is None else str(cell) for cell in row]
        writer.writerow([" ".join(cell.split()) if "\n" in cell else cell for cell in cells])
    return text.getvalue().encode(errors="replace")
